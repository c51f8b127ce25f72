//! A shadow beside the scheduler that serves the cluster: rights to read, one Deployment, one Service; no webhook and no policy.
//!
//! Made of the objects of the installation, so that a shadow may read what a binder reads. Its names are its own, so that it can stand
//! beside an installation and be removed without it.

use serde_json::{Value, json};

use super::API_SERVICE;

/// Of every object but the namespace, and its label.
const NAME: &str = "berth-shadow";
const LABEL: &str = "app.kubernetes.io/name";
/// The port of probes, metrics and report.
const PORT: &str = "https";
const READING: [&str; 3] = ["get", "list", "watch"];

/// The objects of a shadow.
pub(super) fn reading(objects: Vec<Value>) -> Vec<Value> {
    objects.into_iter().filter_map(read_only).collect()
}

fn read_only(mut object: Value) -> Option<Value> {
    let role = match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => return Some(object),
        "Service" if object["metadata"]["name"] == API_SERVICE => return None,
        "ServiceAccount" | "ConfigMap" | "Service" | "Deployment" => NAME,
        "ClusterRole" if object["metadata"]["name"] == "berth:binder" => "berth:shadow",
        "ClusterRoleBinding" if object["roleRef"]["name"] == "berth:binder" => "berth:shadow",
        _ => return None,
    };
    object["metadata"]["name"] = role.into();
    object["metadata"]["labels"][LABEL] = NAME.into();
    match object["kind"].as_str().unwrap_or_default() {
        "ClusterRole" => drop_writes(&mut object),
        "ClusterRoleBinding" => {
            object["roleRef"]["name"] = role.into();
            object["subjects"][0]["name"] = NAME.into();
        }
        "Service" => {
            object["spec"]["selector"][LABEL] = NAME.into();
            let port = &mut object["spec"]["ports"][0];
            (port["name"], port["targetPort"]) = (PORT.into(), PORT.into());
        }
        "Deployment" => deploy(&mut object["spec"]),
        _ => {}
    }
    Some(object)
}

/// Leaves the verbs that read, and the rules that have some.
fn drop_writes(role: &mut Value) {
    let Some(rules) = role["rules"].as_array_mut() else { return };
    for rule in rules.iter_mut() {
        if let Some(verbs) = rule["verbs"].as_array_mut() {
            verbs.retain(|verb| verb.as_str().is_some_and(|verb| READING.contains(&verb)));
        }
    }
    rules.retain(|rule| rule["verbs"].as_array().is_some_and(|verbs| !verbs.is_empty()));
}

fn deploy(spec: &mut Value) {
    spec["replicas"] = 1.into();
    spec["selector"]["matchLabels"][LABEL] = NAME.into();
    let template = &mut spec["template"];
    template["metadata"]["labels"][LABEL] = NAME.into();
    let pod = &mut template["spec"];
    pod["serviceAccountName"] = NAME.into();
    if let Some(pod) = pod.as_object_mut() {
        // One replica has no other to stay away from, and nothing depends on it.
        pod.remove("affinity");
        pod.remove("priorityClassName");
    }
    for volume in pod["volumes"].as_array_mut().into_iter().flatten() {
        if let Some(map) = volume.get_mut("configMap") {
            map["name"] = NAME.into();
        }
    }
    let container = &mut pod["containers"][0];
    if let Some(args) = container["args"].as_array_mut() {
        args.push(json!("--shadow"));
    }
    container["ports"][0]["name"] = PORT.into();
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        container[probe]["httpGet"]["port"] = PORT.into();
    }
}
