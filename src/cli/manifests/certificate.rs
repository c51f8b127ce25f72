//! The changes for a certificate of cert-manager: its objects, the injection of `caBundle`, and the rights that the server then no longer
//! needs.
//!
//! `certs/cert-manager.yaml` is the only copy of these objects.

use serde_json::{Value, json};

use super::{ManifestsError, documents};

const FILE: &str = include_str!("../../../deploy/helm/berth/cert-manager.yaml");

/// Whose authority cert-manager's injector writes into `caBundle` (`cert-manager.io/inject-ca-from`, cert-manager v1 `cainjector`).
const INJECT: &str = "cert-manager.io/inject-ca-from";
const CERTIFICATE: &str = "berth-system/berth-webhook";

const SECRET: &str = "berth-webhook-tls";
const FOLDER: &str = "/etc/berth-tls";

/// The objects as they are where cert-manager makes the certificate.
pub(super) fn kept_by_cert_manager(objects: Vec<Value>) -> Result<Vec<Value>, ManifestsError> {
    let mut changed: Vec<Value> = objects.into_iter().filter_map(changed).collect();
    let namespace = changed.iter().position(|object| object["kind"] == "Namespace");
    let after = namespace.map_or(0, |at| at + 1);
    changed.splice(after..after, documents("certs/cert-manager.yaml", FILE)?);
    Ok(changed)
}

/// `None`: a right that is of no more use.
fn changed(mut object: Value) -> Option<Value> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let webhooks =
        object["metadata"]["name"] == "berth:webhook" || object["roleRef"]["name"] == "berth:webhook";
    match kind {
        "Role" | "RoleBinding" if webhooks => return None,
        "ClusterRole" if webhooks => {
            if let Some(rules) = object["rules"].as_array_mut() {
                rules.retain(|rule| rule["apiGroups"] != json!(["admissionregistration.k8s.io"]));
            }
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            object["metadata"]["annotations"] = json!({ INJECT: CERTIFICATE });
        }
        "Deployment" => mount(&mut object["spec"]["template"]["spec"]),
        _ => {}
    }
    Some(object)
}

/// The Secret as files, unless it is the binder alone, whose probes are served with a certificate that it makes itself.
fn mount(pod: &mut Value) {
    let Some(args) = pod["containers"][0]["args"].as_array_mut() else { return };
    if args.contains(&json!("--scheduler-only")) {
        return;
    }
    for (flag, file) in [("--tls-cert-file", "tls.crt"), ("--tls-private-key-file", "tls.key")] {
        args.extend([json!(flag), json!(format!("{FOLDER}/{file}"))]);
    }
    if let Some(mounts) = pod["containers"][0]["volumeMounts"].as_array_mut() {
        mounts.push(json!({"name": "tls", "mountPath": FOLDER, "readOnly": true}));
    }
    if let Some(volumes) = pod["volumes"].as_array_mut() {
        volumes.push(json!({"name": "tls", "secret": {"secretName": SECRET}}));
    }
}
