//! `berth migrate --plan` against a real API server: the plan of a live cluster is that of the same objects in files, with the rights that the
//! documentation lists, and the API server takes its claims.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::{path::Path, process::Output};

use serde_json::{Value, json};

use crate::support::{
    controlplane::Options,
    floor::{Cluster, Floor},
    identity::Identity,
    installed::{call, printed},
    objects::{api, create, grant},
};

/// May do what docs/migrate.md lists.
const READER: &str = "reader";

const POOL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/pool.yaml");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/migrate.md");

/// The pool of the example, and a pod whose hints have quotes in them.
fn pool() -> Vec<Value> {
    let mut objects: Vec<Value> =
        serde_saphyr::from_multiple(&std::fs::read_to_string(POOL).unwrap()).unwrap();
    let uuids = (0..200).map(|at| format!("GPU-{at:08}-0000-0000-0000-000000000000"));
    let uuids: Vec<String> = uuids.chain(["GPU-2a\"\\".to_owned(), "GPU-1b".to_owned()]).collect();
    objects.push(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "picky", "namespace": "research", "annotations": {
            "nvidia.com/use-gpuuuid": uuids.join(","),
            "nvidia.com/nouse-gputype": "V100,\") || true || (\",NVIDIA-NVIDIA H100",
        }},
        "spec": {"nodeName": "gpu-1", "containers": [{"name": "main", "image": "none", "resources": {
            "limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100", "nvidia.com/gpucores": "10"},
        }}]},
        "status": {"phase": "Running", "startTime": "2026-05-04T10:00:00Z"},
    }));
    objects
}

fn berth(args: &[&str]) -> Output {
    call(&[&["migrate", "--plan"], args].concat())
}

fn file(folder: &Path, name: &str, objects: &[Value]) -> String {
    let path = folder.join(name);
    std::fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_pool_is_planned_as_its_files_are_and_the_api_server_takes_the_claims() {
    let options =
        Options { identities: vec![Identity::new(READER, &["system:authenticated"])], ..Options::default() };
    let Some(mut cluster) = Cluster::start_with(Floor::Real, options).await else { return };
    let client = cluster.client.clone();
    for namespace in ["serving", "research"] {
        create(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
            .await;
    }
    let objects = pool();
    for object in &objects {
        create(&client, object).await;
    }
    grant(&client, PAGE, READER).await;
    let kubeconfig = cluster.control_plane().unwrap().kubeconfig(READER);
    let live = |form: &str| berth(&["--kubeconfig", kubeconfig.to_str().unwrap(), "-o", form]);
    let folder = tempfile::tempdir().unwrap();
    let of_files = berth(&["-f", &file(folder.path(), "pool.json", &objects), "-o", "json"]);
    let plan = live("json");
    assert_eq!((plan.status.code(), of_files.status.code()), (Some(1), Some(1)));
    assert_eq!(printed(&plan), printed(&of_files));
    let picky = printed(&plan)["pods"].as_array().unwrap().iter().find(|pod| pod["name"] == "picky").cloned();
    assert_eq!(picky.unwrap()["devices"][0]["uuid"], "GPU-1b");

    let list = printed(&live("claims"));
    let items = list["items"].as_array().unwrap();
    let kinds: Vec<&str> = items.iter().map(|item| item["kind"].as_str().unwrap()).collect();
    let count = |kind: &str| kinds.iter().filter(|known| **known == kind).count();
    assert_eq!((count("ResourceClaimTemplate"), count("ResourceClaim")), (2, 4), "{kinds:?}");
    for item in items {
        create(&client, item).await;
        let stored = api(&client, item).get(item["metadata"]["name"].as_str().unwrap()).await.unwrap();
        let claim = |spec: &Value| normal(spec.get("spec").unwrap_or(spec));
        assert_eq!(claim(&stored.data["spec"]), claim(&item["spec"]), "nothing was dropped or defaulted");
    }
}

/// Quantities as the API server respells them.
fn normal(spec: &Value) -> Value {
    match spec {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), normal(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::String(text) => {
            let amount = berth::object::Quantity::from(text.as_str()).amount();
            amount.map_or_else(|_| spec.clone(), |amount| json!(amount.binary().as_str()))
        }
        other => other.clone(),
    }
}
