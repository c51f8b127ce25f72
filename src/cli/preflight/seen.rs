//! What was read of the cluster, object by object, as far as the examinations need it.
//!
//! It must not judge. What can't be read of an object is kept beside it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::version::Info;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{finding::called, program::Program, trust::TrustedNamespaces};
use crate::{
    cli::documents::{Document, DocumentPlace},
    dialect::{marks, protected},
    excerpt::brief,
    object::{self, Namespace, Node, Pod, PodGroup, Workloads},
};

/// Where errors say that an object stood.
const CLUSTER: &str = "the cluster";

/// Everything that was read.
#[derive(Debug, Default)]
pub struct Seen {
    /// The kinds of workloads that are known.
    pub kinds: Workloads,
    /// Whose programs and settings are believed.
    pub trust: TrustedNamespaces,
    /// The API server's version.
    pub info: Option<Info>,
    /// The versions of each API group that is served; empty where they are unknown.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Feature gates of the API server.
    pub gates: BTreeMap<String, bool>,
    /// Namespaces by name.
    pub namespaces: BTreeMap<String, Namespace>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Who last wrote the annotations of device plugins.
    pub writers: Vec<Writer>,
    /// Pods that have not ended.
    pub pods: Vec<Pod>,
    /// Schedulers and device plugins, each once.
    pub programs: Vec<Program>,
    /// What looks like one in a namespace that is not trusted: shown, and asked nothing.
    pub strangers: Vec<Program>,
    /// Workloads with pod templates that no other workload controls.
    pub workloads: Vec<Document>,
    /// Groups of pods with their mark `volcano.sh/preemptable`.
    pub pod_groups: BTreeMap<(String, String), Option<String>>,
    /// Mutating webhook configurations.
    pub webhooks: Vec<Value>,
    /// Bindings of admission policies.
    pub policy_bindings: Vec<Value>,
    /// DRA's classes of devices.
    pub device_classes: Vec<Value>,
    /// ConfigMaps of the trusted namespaces in which schedulers run.
    pub config_maps: Vec<SeenConfigMap>,
    /// Whether an account may write assignments, by `namespace/name`.
    pub access: BTreeMap<String, bool>,
    /// What could not be read.
    pub gaps: Vec<Gap>,
}

/// The last write of a node's annotations that only device plugins and schedulers write.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Writer {
    /// The node.
    pub node: String,
    /// The field manager, which is the program's name unless it sets another.
    pub manager: String,
    /// The annotations.
    pub keys: Vec<String>,
}

/// A ConfigMap.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SeenConfigMap {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its texts.
    pub data: BTreeMap<String, String>,
}

/// Something that could not be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Gap {
    /// What was asked for, such as `pods` or `Pod team-a/p`.
    pub what: String,
    /// Why not.
    pub reason: String,
    /// What it means for the examination.
    pub kind: GapKind,
}

/// What a gap means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GapKind {
    /// Nothing can be said about the cluster.
    Essential,
    /// A part was not examined.
    Part,
    /// One object can't be read.
    Object,
    /// Whether an account may write assignments is unknown.
    Access,
    /// Something that no examination depends on is unknown.
    Detail,
}

impl Seen {
    /// Takes in an object of a kind that is read; others are passed over.
    pub fn take(&mut self, mut object: Value) {
        let kind = text(&object, "/kind").to_owned();
        match kind.as_str() {
            "Namespace" => {
                if let Some(namespace) = self.read::<Namespace>(&object) {
                    self.namespaces.insert(namespace.metadata.name.clone(), namespace);
                }
            }
            "Node" => {
                self.writers.extend(writers(&object));
                let node = self.read(&object);
                self.nodes.extend(node);
            }
            "Pod" => self.take_pod(&object),
            "PodGroup" => {
                if let Some(PodGroup { metadata, .. }) = self.read(&object) {
                    let mark = metadata.annotation(marks::PREEMPTABLE).map(str::to_owned);
                    self.pod_groups.insert((metadata.namespace, metadata.name), mark);
                }
            }
            "MutatingWebhookConfiguration" => self.webhooks.push(object),
            "ValidatingAdmissionPolicyBinding" => self.policy_bindings.push(object),
            "DeviceClass" => self.device_classes.push(object),
            "ConfigMap" => {
                let map = config_map(&object);
                self.config_maps.extend(self.trust.covers(&map.namespace).then_some(map));
            }
            _ => {
                if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                    metadata.remove("managedFields");
                }
                self.take_workload(object);
            }
        }
    }

    /// Whether nodes and pods were read, so that something can be said of them.
    pub fn reads_the_cluster(&self) -> bool {
        self.gaps.iter().all(|gap| gap.kind != GapKind::Essential)
    }

    /// Notes what could not be read.
    pub fn miss(
        &mut self,
        what: impl Into<String>,
        reason: &(impl std::fmt::Display + ?Sized),
        kind: GapKind,
    ) {
        self.gaps.push(Gap { what: what.into(), reason: brief(reason), kind });
    }

    fn take_pod(&mut self, object: &Value) {
        let pod: Option<Pod> = self.read(object);
        let runs = pod.filter(|pod| !pod.is_terminal());
        if runs.is_some() {
            self.learn_program(object);
        }
        self.pods.extend(runs);
    }

    fn take_workload(&mut self, object: Value) {
        let place = DocumentPlace { file: CLUSTER.to_owned(), document: 1, item: None };
        let document = Document { value: object, place };
        if self.kinds.of_object(document.api_version(), document.kind()).is_some()
            && !is_made_by_another(&document.value)
            && !has_ended(&document.value)
        {
            self.learn_program(&document.value);
            self.workloads.push(document);
        }
    }

    /// A program is known by its workload; pods add what runs without one, or under one that could not be listed.
    fn learn_program(&mut self, object: &Value) {
        let Some(program) = Program::read(object) else { return };
        let all = if self.trust.believes(&program) { &mut self.programs } else { &mut self.strangers };
        match all.iter_mut().find(|known| known.is_same(&program)) {
            Some(known) if known.kind == "Pod" && program.kind != "Pod" => *known = program,
            Some(_) => {}
            None => all.push(program),
        }
    }

    fn read<T: DeserializeOwned>(&mut self, object: &Value) -> Option<T> {
        let read: Result<T, _> = object::read(object);
        let name = called(
            text(object, "/kind"),
            text(object, "/metadata/namespace"),
            text(object, "/metadata/name"),
        );
        read.map_err(|error| self.miss(name, &error, GapKind::Object)).ok()
    }
}

/// The text at this pointer; empty where there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Whether the workload is made from another kind that is read too: its templates are the same.
fn is_made_by_another(object: &Value) -> bool {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let maker = match text(object, "/kind") {
        "ReplicaSet" => "Deployment",
        "Job" => "CronJob",
        _ => return false,
    };
    owners
        .into_iter()
        .flatten()
        .any(|owner| owner["controller"] == json!(true) && owner["kind"] == json!(maker))
}

/// Whether it is a Job that makes no further pods.
fn has_ended(object: &Value) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let ended = |condition: &Value| {
        matches!(text(condition, "/type"), "Complete" | "Failed") && text(condition, "/status") == "True"
    };
    let phase = text(object, "/status/state/phase");
    let of_volcano = matches!(phase, "Completed" | "Failed" | "Aborted" | "Terminated");
    text(object, "/kind") == "Job" && (of_volcano || conditions.into_iter().flatten().any(ended))
}

/// By `metadata.managedFields`, who owns which annotations of device plugins.
fn writers(node: &Value) -> Vec<Writer> {
    let entries = node.pointer("/metadata/managedFields").and_then(Value::as_array);
    let writer = |entry: &Value| {
        let annotations = entry.pointer("/fieldsV1/f:metadata/f:annotations")?.as_object()?;
        let keys = annotations.keys().filter_map(|key| key.strip_prefix("f:"));
        let keys: Vec<_> = keys.filter(|key| protected::is_on_nodes(key)).map(str::to_owned).collect();
        let node = text(node, "/metadata/name").to_owned();
        (!keys.is_empty()).then(|| Writer { node, manager: text(entry, "/manager").to_owned(), keys })
    };
    entries.into_iter().flatten().filter_map(writer).collect()
}

fn config_map(object: &Value) -> SeenConfigMap {
    let data = object.get("data").and_then(Value::as_object).into_iter().flatten();
    SeenConfigMap {
        namespace: text(object, "/metadata/namespace").to_owned(),
        name: text(object, "/metadata/name").to_owned(),
        data: data.filter_map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned()))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workload_is_read_once_and_only_while_it_makes_pods() {
        let mut seen = Seen::default();
        let job = |name: &str, more: Value| {
            let mut job = json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name}, "spec": {"template": {}}});
            job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            job
        };
        let owner = json!([{"kind": "CronJob", "controller": true}]);
        seen.take(job("runs", json!({})));
        seen.take(job("done", json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}})));
        seen.take(job("made", json!({"metadata": {"name": "made", "ownerReferences": owner}})));
        seen.take(json!({"kind": "Lease", "metadata": {"name": "l"}}));
        let names: Vec<_> = seen.workloads.iter().filter_map(Document::name).collect();
        assert_eq!(names, ["runs"]);
    }

    #[test]
    fn the_writers_of_a_nodes_annotations_are_known_by_their_fields() {
        let mut seen = Seen::default();
        seen.take(json!({"kind": "Node", "metadata": {"name": "n", "managedFields": [
            {"manager": "nvidia-device-plugin", "fieldsV1": {"f:metadata": {"f:annotations": {
                ".": {}, "f:hami.io/node-nvidia-register": {}, "f:note": {}}}}},
            {"manager": "kubelet", "fieldsV1": {"f:metadata": {"f:annotations": {"f:volumes": {}}}}},
        ]}}));
        let keys = vec!["hami.io/node-nvidia-register".to_owned()];
        let manager = "nvidia-device-plugin".to_owned();
        assert_eq!(seen.writers, [Writer { node: "n".to_owned(), manager, keys }]);
    }

    #[test]
    fn an_object_that_can_not_be_read_ends_nothing() {
        let mut seen = Seen::default();
        seen.take(
            json!({"kind": "Pod", "metadata": {"namespace": "a", "name": "bad"}, "spec": {"containers": 3}}),
        );
        seen.take(json!({"kind": "Pod", "metadata": {"namespace": "a", "name": "good"}}));
        assert_eq!((seen.pods.len(), seen.gaps.len()), (1, 1));
        assert_eq!(seen.gaps[0].what, "Pod a/bad");
        assert!(seen.gaps[0].reason.starts_with("spec.containers: "), "{:?}", seen.gaps);
    }
}
