//! The pods that a workload would make.

use serde_json::{Map, Value, json};

use crate::cli::documents::{Document, DocumentError};

/// The paths of a workload's pod templates; `None`: this kind has none.
pub(in crate::cli) fn paths(document: &Document) -> Option<Vec<String>> {
    let single = |path: &str| Some(vec![path.to_owned()]);
    match (document.api_version(), document.kind()) {
        ("batch.volcano.sh/v1alpha1", "Job") => Some(tasks(document)),
        (_, "CronJob") => single("spec.jobTemplate.spec.template"),
        (_, "Deployment" | "StatefulSet" | "DaemonSet" | "Job" | "ReplicaSet" | "ReplicationController") => {
            single("spec.template")
        }
        _ => None,
    }
}

fn tasks(document: &Document) -> Vec<String> {
    let tasks = document.value.pointer("/spec/tasks").and_then(Value::as_array);
    (0..tasks.map_or(0, Vec::len)).map(|at| format!("spec.tasks[{at}].template")).collect()
}

/// The pod of the template at this path: its metadata and spec, in the workload's namespace.
pub(in crate::cli) fn pod(document: &Document, path: &str) -> Result<Document, DocumentError> {
    let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
    let Some(Value::Object(template)) = document.value.pointer(&pointer) else {
        return Err(document.error(path, "is missing"));
    };
    let part = |key: &str| template.get(key).filter(|part| !part.is_null()).cloned();
    let mut metadata = part("metadata").unwrap_or_else(|| Value::Object(Map::new()));
    if let (Value::Object(fields), Some(namespace)) = (&mut metadata, document.namespace()) {
        fields.insert("namespace".to_owned(), namespace.into());
    }
    let spec = part("spec").unwrap_or_else(|| Value::Object(Map::new()));
    let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
    Ok(Document { value, place: document.place.clone() })
}
