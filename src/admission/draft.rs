//! A pod with its changes: explicit patch operations on the JSON of the request, and the resulting pod.
//!
//! It creates missing parents and escapes keys. It rewrites no other field, and loses no field that it does not know.

use std::{collections::BTreeMap, sync::Arc};

use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, jsonptr::PointerBuf};
use serde_json::{Value, json};

use crate::{
    dialect::koordinator::completion,
    object::{Container, EnvVar, Pod, Quantity},
};

/// A pod, with its patch.
#[derive(Clone, Debug)]
pub struct Draft {
    pod: Pod,
    operations: Vec<PatchOperation>,
}

/// One of the pod's lists of containers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContainerList {
    /// `spec.initContainers`
    Init,
    /// `spec.containers`
    App,
}

impl ContainerList {
    /// The list's key in the spec.
    pub fn key(self) -> &'static str {
        match self {
            Self::Init => "initContainers",
            Self::App => "containers",
        }
    }

    /// The pod's list.
    pub fn of(self, pod: &Pod) -> &[Arc<Container>] {
        match self {
            Self::Init => &pod.spec.init_containers,
            Self::App => &pod.spec.containers,
        }
    }

    /// One of the list, to be changed.
    fn at(self, pod: &mut Pod, at: usize) -> &mut Container {
        let containers = match self {
            Self::Init => &mut pod.spec.init_containers,
            Self::App => &mut pod.spec.containers,
        };
        Arc::make_mut(&mut containers[at])
    }
}

impl Draft {
    /// A draft without changes.
    pub fn new(pod: &Pod) -> Self {
        Self { pod: pod.clone(), operations: Vec::new() }
    }

    /// The pod after the patch.
    pub fn pod(&self) -> &Pod {
        &self.pod
    }

    /// The patch operations.
    pub fn into_operations(self) -> Vec<PatchOperation> {
        self.operations
    }

    /// Sets the scheduler's name.
    pub fn set_scheduler_name(&mut self, name: &str) {
        let present = self.pod.spec.scheduler_name.replace(name.to_owned()).is_some();
        self.set(["spec", "schedulerName"], name.into(), present);
    }

    /// Sets an annotation.
    pub fn set_annotation(&mut self, key: &str, value: &str) {
        if self.pod.metadata.annotations.is_none() {
            self.set(["metadata", "annotations"], json!({}), false);
        }
        let annotations = self.pod.metadata.annotations.get_or_insert_with(BTreeMap::new);
        let present = annotations.insert(key.to_owned(), value.to_owned()).is_some();
        self.set(["metadata", "annotations", key], value.into(), present);
    }

    /// Adds a limit, and the equal request that an extended resource must have.
    pub fn add_limit(&mut self, list: ContainerList, at: usize, resource: &str, amount: u32) {
        let resources = &mut list.at(&mut self.pod, at).resources;
        let position = at.to_string();
        let bare = resources.limits.is_none() && resources.requests.is_none();
        let sections = [("limits", &mut resources.limits), ("requests", &mut resources.requests)];
        let mut additions: Vec<(Vec<&str>, Value)> = Vec::new();
        if bare {
            additions.push((vec!["resources"], json!({})));
        }
        for (section, amounts) in sections {
            if amounts.is_none() {
                additions.push((vec!["resources", section], json!({})));
            }
            amounts.get_or_insert_default().insert(resource.to_owned(), Quantity::from(amount.to_string()));
            additions.push((vec!["resources", section, resource], amount.to_string().into()));
        }
        for (path, value) in additions {
            let whole = ["spec", list.key(), position.as_str()].into_iter().chain(path);
            self.operations.push(add(whole, value));
        }
    }

    /// Completes what a container asks by Koordinator's names, in its limits and in its requests.
    pub fn complete(&mut self, list: ContainerList, at: usize) {
        let resources = &mut list.at(&mut self.pod, at).resources;
        let position = at.to_string();
        for (section, amounts) in [("limits", &mut resources.limits), ("requests", &mut resources.requests)] {
            let Some(amounts) = amounts else { continue };
            let path =
                |name| PointerBuf::from_tokens(["spec", list.key(), &position, "resources", section, name]);
            let completion = completion::of(amounts);
            if let Some(name) = completion.removed {
                amounts.remove(name);
                self.operations.push(PatchOperation::Remove(RemoveOperation { path: path(name) }));
            }
            for (name, amount) in completion.added {
                amounts.insert(name.to_owned(), Quantity::from(amount.to_string()));
                let value = amount.to_string().into();
                self.operations.push(PatchOperation::Add(AddOperation { path: path(name), value }));
            }
        }
    }

    /// Adds an environment variable, unless the container has one of that name.
    pub fn add_variable(&mut self, list: ContainerList, at: usize, name: &str, value: &str) {
        let container = list.at(&mut self.pod, at);
        let position = at.to_string();
        let path = ["spec", list.key(), position.as_str(), "env"];
        let known = container.env.as_ref();
        if known.is_some_and(|known| known.iter().any(|variable| variable.name == name)) {
            return;
        }
        if known.is_none() {
            self.operations.push(add(path, json!([])));
        }
        let variable = EnvVar { name: name.into(), value: Some(value.into()) };
        container.env.get_or_insert_default().push(variable);
        let end = path.into_iter().chain(["-"]);
        self.operations.push(add(end, json!({"name": name, "value": value})));
    }

    /// Adds an environment variable whose value is an annotation of the pod, unless the container has one of that name.
    pub fn add_variable_of_annotation(&mut self, list: ContainerList, at: usize, name: &str, key: &str) {
        let operations = self.operations.len();
        self.add_variable(list, at, name, "");
        if self.operations.len() == operations {
            return;
        }
        let source = json!({"fieldRef": {"fieldPath": format!("metadata.annotations['{key}']")}});
        if let Some(PatchOperation::Add(AddOperation { value, .. })) = self.operations.last_mut() {
            *value = json!({"name": name, "valueFrom": source});
        }
        if let Some(variable) = list.at(&mut self.pod, at).env.as_mut().and_then(|env| env.last_mut()) {
            variable.value = None;
        }
    }

    /// Sets the runtime class.
    pub fn set_runtime_class(&mut self, class: &str) {
        let present = self.pod.spec.runtime_class_name.replace(class.to_owned()).is_some();
        self.set(["spec", "runtimeClassName"], class.into(), present);
    }

    fn set<'a>(&mut self, path: impl IntoIterator<Item = &'a str>, value: Value, present: bool) {
        let operation = add(path, value);
        self.operations.push(match operation {
            PatchOperation::Add(AddOperation { path, value }) if present => {
                PatchOperation::Replace(ReplaceOperation { path, value })
            }
            operation => operation,
        });
    }
}

fn add<'a>(path: impl IntoIterator<Item = &'a str>, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path), value })
}
