//! Objects without what no scheduler reads of them and a user may not want to show.

use serde_json::{Map, Value};

use crate::{cli::documents::Document, dialect::koordinator::templates, object::ConfigMap};

/// What is kept of a container: all else may hold what a user would not show.
const OF_CONTAINERS: [&str; 8] =
    ["name", "image", "resources", "restartPolicy", "ports", "resizePolicy", "volumeMounts", "volumeDevices"];

/// Where a pod's specification has containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Holds the whole object as it was applied, environment included.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object without secrets, environment, command lines and templates of pods.
pub(super) fn redacted(mut document: Document) -> Document {
    let is_config_map = document.kind() == "ConfigMap";
    if let Some(metadata) = document.value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    if is_config_map && !document.read::<ConfigMap>().is_ok_and(|map| templates::are_in(&map.metadata)) {
        document.value.as_object_mut().map(|fields| fields.remove("data"));
    }
    if let Some(spec) = document.value.get_mut("spec").and_then(Value::as_object_mut) {
        redact_pod(spec);
        // The pods of a workload are dumped themselves.
        spec.remove("template");
    }
    document
}

fn redact_pod(spec: &mut Map<String, Value>) {
    for key in CONTAINERS {
        for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(fields) = container.as_object_mut() {
                fields.retain(|key, _| OF_CONTAINERS.contains(&key.as_str()));
            }
        }
    }
}
