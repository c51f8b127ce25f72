//! The objects of an extender of kube-scheduler: a binder apart from the webhook, of one replica, which answers kube-scheduler over its own
//! Service and asks it for a certificate.
//!
//! The webhook stays as it is: a client certificate that kube-scheduler shows must not be asked of API servers.

use serde_json::{Value, json};

/// The Service that kube-scheduler asks, and the Secret with the certificate of both sides and their authority.
const SERVICE: &str = "berth-extender";
const SECRET: &str = "berth-extender-tls";
const FOLDER: &str = "/etc/berth-extender";
/// The webhook about pods without a share.
const ADOPTION: &str = "adopt.berth.dev";
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
        "MutatingWebhookConfiguration" => keep_pods_without_shares(&mut object["webhooks"]),
        "Deployment" if of_binder => serve(&mut object["spec"]),
        _ => {}
    }
    Some(object)
}

/// kube-scheduler places and binds pods without a share, so no namespace gives them to Berth.
fn keep_pods_without_shares(webhooks: &mut Value) {
    if let Some(webhooks) = webhooks.as_array_mut() {
        webhooks.retain(|webhook| webhook["name"] != ADOPTION);
    }
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{
        Cli, Command,
        manifests::{self, InstallationSettings},
    };

    fn objects(flags: &[&str]) -> Vec<Value> {
        let cli = Cli::try_parse_from([&["berth", "manifests"], flags].concat()).unwrap();
        let Command::Manifests(args) = cli.command else { panic!("{flags:?}") };
        manifests::objects(&args, &InstallationSettings::default()).unwrap()
    }

    fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
        objects.iter().filter(|object| object["kind"] == kind).collect()
    }

    #[test]
    fn an_extender_is_one_binder_that_asks_for_a_certificate_beside_an_unchanged_webhook() {
        let (apart, extender) = (objects(&["--split"]), objects(&["--extender", "--replicas", "3"]));
        let deployment = |objects: &[Value], name: &str| {
            of_kind(objects, "Deployment")
                .into_iter()
                .find(|object| object["metadata"]["name"] == name)
                .unwrap()
                .clone()
        };
        let mut webhook = deployment(&apart, "berth-webhook");
        webhook["spec"]["replicas"] = 3.into();
        assert_eq!(deployment(&extender, "berth-webhook"), webhook);
        let binder = deployment(&extender, "berth-binder");
        assert_eq!(binder["spec"]["replicas"], 1);
        let pod = &binder["spec"]["template"]["spec"];
        let flags: Vec<_> =
            pod["containers"][0]["args"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let cli = Cli::try_parse_from([&["berth"], &flags[..]].concat()).unwrap();
        let Command::Serve(serve) = cli.command else { panic!("{flags:?}") };
        assert!(serve.scheduler_only && serve.beside.extender, "{flags:?}");
        let files = [serve.tls_cert_file, serve.tls_private_key_file, serve.client_ca_file];
        let mounted = pod["containers"][0]["volumeMounts"][1]["mountPath"].as_str().unwrap();
        assert!(
            files.iter().flatten().all(|file| file.starts_with(mounted)) && files.iter().all(Option::is_some),
            "{files:?}"
        );
        assert_eq!(pod["volumes"][1]["secret"]["secretName"], "berth-extender-tls");
        let service = of_kind(&extender, "Service")
            .into_iter()
            .find(|object| object["metadata"]["name"] == "berth-extender")
            .unwrap();
        let labels = &binder["spec"]["template"]["metadata"]["labels"];
        for (label, value) in service["spec"]["selector"].as_object().unwrap() {
            assert_eq!(&labels[label], value);
        }
        let budgets = of_kind(&extender, "PodDisruptionBudget");
        assert_eq!(budgets.len(), 1, "a budget of one replica would let no node be drained: {budgets:?}");
    }

    #[test]
    fn cert_manager_makes_the_certificate_of_the_extender() {
        let objects = objects(&["--extender", "--cert-manager", "--namespace", "gpu"]);
        let certificates = of_kind(&objects, "Certificate");
        let extender =
            certificates.iter().find(|object| object["metadata"]["name"] == "berth-extender").unwrap();
        assert_eq!(extender["spec"]["secretName"], "berth-extender-tls");
        assert_eq!(extender["spec"]["dnsNames"][0], "berth-extender.gpu.svc");
        assert_eq!(extender["metadata"]["namespace"], "gpu");
        assert!(
            of_kind(&objects, "Issuer")
                .iter()
                .any(|issuer| issuer["metadata"]["name"] == extender["spec"]["issuerRef"]["name"])
        );
    }
}
