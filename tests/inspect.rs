//! The commands that look at a cluster, against a real API server: with the rights that the documentation lists they say of the live cluster what they say
//! of its dump, and the dump holds nothing that a user would not show.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    controlplane::Options,
    floor::{Cluster, Floor},
    identity::Identity,
    installed::{call, printed},
    objects::{create, grant},
};

/// May do what docs/inspect.md lists.
const READER: &str = "reader";

const CLUSTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cases/why_waits/cluster.yaml");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/inspect.md");

/// What no file may hold.
const PRIVATE: &str = "do-not-show";

fn objects() -> Vec<Value> {
    let mut objects: Vec<Value> =
        serde_saphyr::from_multiple(&std::fs::read_to_string(CLUSTER).unwrap()).unwrap();
    let applied = json!({"kubectl.kubernetes.io/last-applied-configuration": PRIVATE});
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "none", "env": [{"name": "KEY", "value": PRIVATE}]}]},
    });
    objects.extend([
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "private", "namespace": "team", "annotations": applied},
            "spec": {"schedulerName": "berth", "containers": [{
                "name": "main", "image": "none", "command": ["sh", PRIVATE], "args": [PRIVATE],
                "env": [{"name": "TOKEN", "value": PRIVATE}],
                "readinessProbe": {"exec": {"command": [PRIVATE]}},
                "lifecycle": {"preStop": {"exec": {"command": [PRIVATE]}}},
                "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "90000"}},
            }]},
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "team"},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        }),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "other", "namespace": "koordinator-system"}, "data": {"key": PRIVATE},
        }),
    ]);
    for object in objects.iter_mut().filter(|object| object["kind"] == "Pod") {
        for container in object["spec"]["containers"].as_array_mut().unwrap() {
            container["image"] = "none".into();
        }
    }
    objects
}

/// The JSON that a call has printed that could read all lists.
fn said(args: &[&str]) -> Value {
    let output = call(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("can't list"), "{errors}");
    printed(&output)
}

fn holds_nothing_private(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let texts = files.map(|file| std::fs::read_to_string(file).unwrap());
    texts.inspect(|text| assert!(!text.contains(PRIVATE), "{text}")).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_said_of_a_live_cluster_is_said_of_its_dump() {
    let options =
        Options { identities: vec![Identity::new(READER, &["system:authenticated"])], ..Options::default() };
    let Some(mut cluster) = Cluster::start_with(Floor::Real, options).await else { return };
    let client = cluster.client.clone();
    for namespace in ["team", "koordinator-system"] {
        create(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
            .await;
    }
    for object in &objects() {
        create(&client, object).await;
    }
    grant(&client, PAGE, READER).await;
    let kubeconfig = cluster.control_plane().unwrap().kubeconfig(READER);
    let kubeconfig = kubeconfig.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("cluster");
    let out = dump.to_str().unwrap();
    let written = call(&["dump", "--out", out, "--kubeconfig", kubeconfig]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    assert!(holds_nothing_private(&dump) >= 4);
    let again = call(&["dump", "--out", out, "--kubeconfig", kubeconfig]);
    let refused = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.code() == Some(2) && refused.contains("is not empty"), "{refused}");

    let now = ["--at", "2036-01-01T00:00:00Z", "-o", "json"];
    let both = |command: &[&str]| {
        let of = |cluster: &[&str]| said(&[command, cluster, &now].concat());
        let (live, dumped) = (of(&["--kubeconfig", kubeconfig]), of(&["-f", out]));
        assert_eq!(live, dumped, "{command:?}");
        live
    };
    let waits = both(&["why", "-n", "team", "private"]);
    assert_eq!((&waits["outcome"], &waits["queue"]["of"]), (&json!("Waiting"), &json!(3)));
    assert_eq!(waits["change"][0]["field"], "spec.containers[0].resources.limits[nvidia.com/gpumem]");
    assert_eq!(waits["change"][0]["to"], "81920");
    assert_eq!(both(&["why", "-n", "team", "other"])["outcome"], "NotOurs");
    let held = both(&["who", "GPU-a-0"]);
    assert_eq!(held["nodes"][0]["cards"][0]["holders"][0]["name"], "holder");
    both(&["fits"]);
    let used = both(&["top"]);
    assert_eq!((&used["nodes"][0]["memoryUsed"], &used["nodes"][0]["pods"]), (&20_000.into(), &1.into()));
    both(&["top", "models"]);
    let teams = both(&["top", "namespaces"]);
    assert_eq!(
        (&teams["namespaces"][0]["namespace"], &teams["namespaces"][0]["waiting"]),
        (&"team".into(), &3.into())
    );
    let live = said(&[&["simulate", "--from-cluster", "--kubeconfig", kubeconfig], &now[..]].concat());
    let dumped = said(&[&["simulate", "-f", out], &now[..]].concat());
    assert_eq!(live, dumped);
    let pods: Vec<_> = live["pods"].as_array().unwrap().iter().map(|pod| &pod["name"]).collect();
    assert_eq!(pods.len(), 4, "the pods of the ReplicaSet are no others: {pods:?}");
}
