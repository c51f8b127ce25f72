//! What stands in for the StatefulSet controller: the claims that it makes of `volumeClaimTemplates`, one of each template for each pod.
//!
//! Source: kubernetes `pkg/controller/statefulset/stateful_set_utils.go` (`getPersistentVolumeClaims`, `updateStorage`). The default class is
//! that of the admission plugin `DefaultStorageClass` (`pkg/volume/util/storageclass.go`).

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Value, json};

use crate::{
    cli::documents::{Document, DocumentError},
    object::{
        Metadata,
        constraints::MOST_CLAIMS,
        storage::{PersistentVolumeClaim, StorageClass},
        workload::Places,
    },
    scheduling::world::object::Object,
};

/// The field of the templates.
const TEMPLATES: &str = "spec.volumeClaimTemplates";
/// Marks the class of claims that name none.
const DEFAULT_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// Names the class of a claim in place of its spec.
const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The templates of a StatefulSet; none: it is another workload, or has none.
#[derive(Debug)]
pub(super) struct ClaimTemplates(Vec<PersistentVolumeClaim>);

impl ClaimTemplates {
    /// Reads the templates. Those beyond what a pod may have are left out but for one, for which the pod is refused.
    pub(super) fn of(document: &Document) -> Result<Self, DocumentError> {
        let is_set = document.kind() == "StatefulSet" && matches!(document.api_version(), "" | "apps/v1");
        let field = document.value.pointer("/spec/volumeClaimTemplates");
        let templates = match field.filter(|field| is_set && !field.is_null()) {
            None => return Ok(Self(Vec::new())),
            Some(Value::Array(templates)) => templates,
            Some(_) => return Err(document.error(TEMPLATES, "must be a list")),
        };
        let read = |(at, template): (usize, &Value)| {
            let path = format!("{TEMPLATES}[{at}]");
            let claim: PersistentVolumeClaim = document.read_part(template, &Places::below(&path))?;
            if claim.metadata.name.is_empty() {
                return Err(document.error(&format!("{path}.metadata.name"), "is missing"));
            }
            Ok(claim)
        };
        let read: Result<_, _> = templates.iter().take(MOST_CLAIMS + 1).enumerate().map(read).collect();
        Ok(Self(read?))
    }

    /// Has a pod of the set mount its claims, in place of volumes of the same names, and returns these claims.
    pub(super) fn mount(&self, pod: &mut Document) -> Vec<PersistentVolumeClaim> {
        let namespace = pod.namespace_or_default().to_owned();
        let name = pod.name().unwrap_or_default().to_owned();
        let claim = |template: &PersistentVolumeClaim| {
            let name = format!("{}-{name}", template.metadata.name);
            let uid = format!("claim-{namespace}-{name}");
            let metadata = Metadata { namespace: namespace.clone(), name, uid, ..template.metadata.clone() };
            PersistentVolumeClaim { metadata, ..template.clone() }
        };
        let claims: Vec<_> = self.0.iter().map(claim).collect();
        if let Some(Value::Object(spec)) = pod.value.get_mut("spec").filter(|_| !claims.is_empty()) {
            let volumes = spec.entry("volumes").or_insert(Value::Null);
            if volumes.is_null() {
                *volumes = json!([]);
            }
            if let Value::Array(volumes) = volumes {
                let named: BTreeSet<_> = self.0.iter().map(|one| one.metadata.name.as_str()).collect();
                let replaced =
                    |volume: &Value| volume["name"].as_str().is_some_and(|name| named.contains(name));
                volumes.retain(|volume| !replaced(volume));
                volumes.extend(self.0.iter().zip(&claims).map(|(template, claim)| {
                    let source = json!({"claimName": claim.metadata.name});
                    json!({"name": template.metadata.name, "persistentVolumeClaim": source})
                }));
            }
        }
        claims
    }
}

/// The claims of which the input holds none of the same name. One that names no class has the default class of the input.
pub(super) fn unless_given(made: Vec<PersistentVolumeClaim>, objects: &[Object]) -> Vec<Object> {
    let of_claim = |object: &Object| match object {
        Object::PersistentVolumeClaim(claim) => Some(names(claim)),
        _ => None,
    };
    let mut known: BTreeSet<_> = objects.iter().filter_map(of_claim).collect();
    let default = default_class(objects);
    let classless = |claim: &PersistentVolumeClaim| {
        claim.spec.storage_class_name.is_none() && claim.metadata.annotation(BETA_CLASS).is_none()
    };
    let mut added = Vec::new();
    for mut claim in made {
        if !known.insert(names(&claim)) {
            continue;
        }
        if classless(&claim) {
            claim.spec.storage_class_name.clone_from(&default);
        }
        added.push(Object::PersistentVolumeClaim(Arc::new(claim)));
    }
    added
}

fn names(claim: &PersistentVolumeClaim) -> (String, String) {
    (claim.metadata.namespace.clone(), claim.metadata.name.clone())
}

/// The newest class that is marked as the default, of equals the first by name.
fn default_class(objects: &[Object]) -> Option<String> {
    let marked =
        |class: &StorageClass| DEFAULT_CLASS.iter().any(|key| class.metadata.annotation(key) == Some("true"));
    let classes = objects.iter().filter_map(|object| match object {
        Object::StorageClass(class) if marked(class) => Some(&class.metadata),
        _ => None,
    });
    let by_age = |one: &Metadata| (std::cmp::Reverse(one.creation_timestamp), one.name.clone());
    classes.min_by_key(|one| by_age(one)).map(|one| one.name.clone())
}
