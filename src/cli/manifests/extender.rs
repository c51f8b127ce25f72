//! The objects of an extender of kube-scheduler: a binder apart from the webhook, of one replica, which answers kube-scheduler over its own
//! Service and asks it for a certificate.
//!
//! The webhook stays as it is: a client certificate that kube-scheduler shows must not be asked of API servers.

use serde_json::{Value, json};

/// The Service that kube-scheduler asks, and the Secret with the certificate of both sides and their authority.
const SERVICE: &str = "berth-extender";
const SECRET: &str = "berth-extender-tls";
const FOLDER: &str = "/etc/berth-extender";
/// The Deployment that `--split` makes of the binder.
const BINDER: &str = "berth-binder";

/// The objects of both halves, the binder's for kube-scheduler.
pub(super) fn asked_by_kube_scheduler(objects: Vec<Value>) -> Vec<Value> {
    let mut changed: Vec<Value> = objects.into_iter().filter_map(changed).collect();
    let service = changed.iter().find(|object| object["kind"] == "Service").map(service);
    changed.extend(service);
    changed
}

/// `None`: the disruption budget of a single replica, which would let no node be drained.
fn changed(mut object: Value) -> Option<Value> {
    let of_binder = object["metadata"]["name"] == BINDER;
    match object["kind"].as_str().unwrap_or_default() {
        "PodDisruptionBudget" if of_binder => return None,
        "Deployment" if of_binder => serve(&mut object["spec"]),
        _ => {}
    }
    Some(object)
}

/// One replica, since one that does not lead can't bind; the old one ends before the new one starts, for the same reason.
fn serve(spec: &mut Value) {
    spec["replicas"] = 1.into();
    spec["strategy"] = json!({"type": "Recreate"});
    let pod = &mut spec["template"]["spec"];
    if let Some(pod) = pod.as_object_mut() {
        pod.remove("affinity");
    }
    if let Some(args) = pod["containers"][0]["args"].as_array_mut() {
        args.push(json!("--extender"));
        let files = [
            ("--tls-cert-file", "tls.crt"),
            ("--tls-private-key-file", "tls.key"),
            ("--client-ca-file", "ca.crt"),
        ];
        args.extend(
            files.into_iter().flat_map(|(flag, file)| [json!(flag), json!(format!("{FOLDER}/{file}"))]),
        );
    }
    if let Some(mounts) = pod["containers"][0]["volumeMounts"].as_array_mut() {
        mounts.push(json!({"name": "extender", "mountPath": FOLDER, "readOnly": true}));
    }
    if let Some(volumes) = pod["volumes"].as_array_mut() {
        // Without the authority's key, which `berth certs` keeps in the Secret.
        let items = ["ca.crt", "tls.crt", "tls.key"].map(|key| json!({"key": key, "path": key}));
        volumes.push(json!({"name": "extender", "secret": {"secretName": SECRET, "items": items}}));
    }
}

/// The Service of the binder, made of the webhook's.
fn service(of_webhook: &Value) -> Value {
    let mut object = of_webhook.clone();
    object["metadata"]["name"] = SERVICE.into();
    object["metadata"]["labels"]["app.kubernetes.io/component"] = "binder".into();
    object["spec"]["selector"]["app.kubernetes.io/component"] = "binder".into();
    object
}

/// cert-manager's Certificate for the Secret, by the authority of the webhook's.
pub(super) fn certificate() -> Value {
    let name = format!("{SERVICE}.berth-system.svc");
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": SERVICE, "namespace": "berth-system", "labels": {"app.kubernetes.io/name": "berth"}},
        "spec": {
            "secretName": SECRET,
            "duration": "8760h",
            "renewBefore": "2920h",
            "dnsNames": [name, format!("{name}.cluster.local"), format!("{SERVICE}.berth-system")],
            "usages": ["digital signature", "server auth", "client auth"],
            "privateKey": {"algorithm": "ECDSA", "size": 256, "rotationPolicy": "Always"},
            "issuerRef": {"kind": "Issuer", "name": "berth-webhook-ca"},
        },
    })
}
