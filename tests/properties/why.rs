//! The change that `berth why` names is true: with it the pod fits. Where it names none, no smaller amount of memory would do.

use berth::{
    cli::{
        documents::{Document, DocumentPlace},
        inspect::why::{PodOutcome, explain},
    },
    config::Config,
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Up to three nodes with up to three cards of up to 40,000 MiB, and cpu for few pods.
fn nodes() -> impl Strategy<Value = Vec<Value>> {
    let cards = prop::collection::vec(1..5_u32, 0..4);
    prop::collection::vec((cards, 1..5_u32, any::<bool>()), 1..4).prop_map(|nodes| {
        let node = |(at, (cards, cpu, trains)): (usize, (Vec<u32>, u32, bool))| {
            let card = |(index, units): (usize, u32)| {
                json!({
                    "id": format!("GPU-{at}-{index}"), "index": index, "count": 4, "devmem": units * 10_000,
                    "devcore": 100, "type": if trains { "NVIDIA-A100" } else { "NVIDIA-T4" },
                    "mode": "hami-core", "health": true,
                })
            };
            let cards: Vec<Value> = cards.into_iter().enumerate().map(card).collect();
            let registered = json!({"hami.io/node-nvidia-register": json!(cards).to_string()});
            let pool = if trains { "train" } else { "serve" };
            json!({
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": format!("n{at}"), "labels": {"pool": pool}, "annotations": registered},
                "status": {"allocatable": {"cpu": cpu.to_string(), "memory": "64Gi", "pods": "10"}},
            })
        };
        nodes.into_iter().enumerate().map(node).collect()
    })
}

/// What a pod asks for, which may be far too much.
fn pod() -> impl Strategy<Value = Value> {
    let limits = (1..4_u32, 1..60_u32, prop::option::of(1..110_u32), 100..6000_u32);
    let wishes = (prop::option::of("train|serve|none"), prop::option::of("A100|T4|H100"));
    (limits, wishes).prop_map(|((count, memory, cores, cpu), (pool, model))| {
        let mut limits = json!({
            "nvidia.com/gpu": count.to_string(), "nvidia.com/gpumem": (memory * 1000).to_string(),
        });
        if let Some(cores) = cores.filter(|cores| *cores <= 100) {
            limits["nvidia.com/gpucores"] = cores.to_string().into();
        }
        let resources = json!({"limits": limits, "requests": {"cpu": format!("{cpu}m")}});
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "asked", "namespace": "team", "uid": "asked", "annotations": {}},
            "spec": {"schedulerName": "berth", "containers": [{"name": "main", "resources": resources}]},
        });
        if let Some(model) = model {
            pod["metadata"]["annotations"]["nvidia.com/use-gputype"] = model.into();
        }
        if let Some(pool) = pool {
            pod["spec"]["nodeSelector"] = json!({"pool": pool});
        }
        pod
    })
}

fn documents(objects: &[Value]) -> Vec<Document> {
    let document = |(at, value): (usize, &Value)| {
        let place = DocumentPlace { file: "f".to_owned(), document: at + 1, item: None };
        Document { value: value.clone(), place }
    };
    objects.iter().enumerate().map(document).collect()
}

/// What comes of the pod beside these nodes: on how many it fits, and the patch that is named.
fn explained(nodes: &[Value], pod: &Value) -> (usize, Value) {
    let objects: Vec<Value> = nodes.iter().chain([pod]).cloned().collect();
    let found =
        explain((&documents(&objects), &[]), &Config::default(), ("team", "asked"), Timestamp::UNIX_EPOCH)
            .unwrap();
    assert_eq!(found.outcome, PodOutcome::Waiting);
    let fitting = serde_json::to_value(&found).unwrap()["fitting"].as_u64().unwrap_or(0);
    (usize::try_from(fitting).unwrap(), found.change.patch())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn with_the_change_that_is_named_the_pod_fits(nodes in nodes(), pod in pod()) {
        let (fitting, patch) = explained(&nodes, &pod);
        if fitting > 0 {
            prop_assert_eq!(patch, json!([]), "nothing is to be changed");
            return Ok(());
        }
        let change: json_patch::Patch = serde_json::from_value(patch.clone()).unwrap();
        let mut changed = pod.clone();
        json_patch::patch(&mut changed, &change).unwrap();
        if !change.0.is_empty() {
            prop_assert!(explained(&nodes, &changed).0 > 0, "{patch} of {pod} on {nodes:?}");
            return Ok(());
        }
        // No change: not even the least of all amounts would do, nor would one wish less.
        let mut least = pod;
        let resources = &mut least["spec"]["containers"][0]["resources"];
        resources["requests"]["cpu"] = "1m".into();
        for limit in resources["limits"].as_object_mut().unwrap().values_mut() {
            *limit = "1".into();
        }
        prop_assert_eq!(explained(&nodes, &least).0, 0, "{} on {:?}", least, nodes);
    }
}
