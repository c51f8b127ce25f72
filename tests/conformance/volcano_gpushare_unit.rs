//! Volcano's cards by number: gpushare and gpu-number.

use berth::{
    device::{InitPhase, Quota, Usage},
    dialect::{
        Dialect as _,
        gpushare::{GpuShare, GpuShareSettings, ShareUnit},
    },
    object::Pod,
    scheduling::plugin::allocate::allocate,
};
use serde_json::{Value, json};

use super::{
    table::{Case, Table, Verdict},
    upstream::{list, number, pod, pod_of},
};

const SECOND: &str =
    "more than one container asks; the node's plugin would fail the second, so Berth refuses the pod";

#[test]
fn volcano_gpushare_unit() {
    let table = Table {
        file: "volcano_gpushare_unit.json",
        differences: &[
            ("TestGetGPUMemoryOfPod / GPUs required only in Containers", SECOND),
            ("TestGetGPUMemoryOfPod / GPUs required both in initContainers and Containers", SECOND),
            ("TestGetGPUNumberOfPod / GPUs required only in Containers", SECOND),
            ("TestGetGPUNumberOfPod / GPUs required both in initContainers and Containers", SECOND),
        ],
        not_served: &[(
            "TestReleaseReturnsRemovedAnnotationKeys",
            "Berth writes nothing before the Binding, so there is nothing to take back",
        )],
    };
    table.check(judge);
}

fn dialect(unit: ShareUnit) -> GpuShare {
    GpuShare::new(GpuShareSettings { unit, memory_factor: 1, lock: None })
}

fn judge(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "TestGetGPUMemoryOfPod" => {
            Verdict::of(&json!(asked(ShareUnit::Memory, &pod(&input["pod"]))), &expect["want"])
        }
        "TestGetGPUNumberOfPod" => {
            Verdict::of(&json!(asked(ShareUnit::Cards, &pod(&input["pod"]))), &expect["want"])
        }
        "TestGetDevicesIdleGPUMemory_OverSubscribedCardReportsZero" => {
            let held = held(input);
            let card = card(input);
            let left = card.memory.left(held.card(&card.id).memory).get();
            Verdict::of(&json!({"0": left}), &expect["idle"])
        }
        "TestPredicateGPUbyMemory_OverSubscribedCardNotOffered" => {
            let asked = request(&number(input, "request").to_string());
            let inventory = berth::device::Inventory::new(vec![card(input)]);
            let profile = dialect(ShareUnit::Memory).profile().to_owned();
            let given = allocate(&asked, &inventory, &held(input), &profile, Quota::default());
            let ids: Vec<String> = given
                .iter()
                .flat_map(berth::device::Assignment::shares)
                .map(|share| share.card.to_string())
                .collect();
            Verdict::of(&json!(ids), &expect["ids"])
        }
        "TestGetGPUIndex" => {
            let mut pod = pod(&input["pod"]);
            pod.spec.containers =
                pod_of(&Value::Null, &json!({"volcano.sh/gpu-number": "3"})).spec.containers;
            let carried = dialect(ShareUnit::Cards).assignment(&pod).unwrap();
            let indices = carried.map(|carried| {
                carried
                    .assignment
                    .shares()
                    .map(|share| share.card.as_str().parse::<u32>().unwrap())
                    .collect::<Vec<_>>()
            });
            Verdict::of(&json!(indices), &expect["want"])
        }
        other => panic!("no adapter for {other}"),
    }
}

/// What the whole pod asks; nothing where it is refused.
fn asked(unit: ShareUnit, pod: &Pod) -> Option<u64> {
    let asked = dialect(unit).request(pod, berth::dialect::MissingCount::Refuse).ok()??;
    let memory = |share: berth::device::ShareRequest| share.memory.of(berth::device::MiB::default()).get();
    let shares = asked.containers.iter().filter_map(|container| container.share);
    Some(match unit {
        ShareUnit::Memory => shares.map(memory).sum(),
        ShareUnit::Cards => shares.map(|share| u64::from(share.cards.get())).sum(),
    })
}

fn request(memory: &str) -> berth::device::PodRequest {
    let pod = pod_of(&Value::Null, &json!({"volcano.sh/gpu-memory": memory}));
    dialect(ShareUnit::Memory).request(&pod, berth::dialect::MissingCount::Refuse).unwrap().unwrap()
}

/// The only card, as the node's capacity tells it.
fn card(input: &Value) -> berth::device::Card {
    let capacity = json!({"volcano.sh/gpu-memory": number(&input["device"], "memory").to_string(), "volcano.sh/gpu-number": "1"});
    let node =
        serde_json::from_value(json!({"metadata": {"name": "node"}, "status": {"capacity": capacity}}))
            .unwrap();
    dialect(ShareUnit::Memory).inventory(&node).unwrap().unwrap().cards()[0].clone()
}

fn held(input: &Value) -> Usage {
    let assignment = |held: &Value| {
        let memory = json!({"volcano.sh/gpu-memory": held["gpu-memory"].to_string()});
        let pod = pod_of(&json!({"volcano.sh/gpu-index": "0"}), &memory);
        dialect(ShareUnit::Memory).assignment(&pod).unwrap().unwrap().assignment
    };
    let pods: Vec<_> = list(&input["pods"]).iter().map(assignment).collect();
    Usage::of(pods.iter().map(|pod| (pod, InitPhase::Done)))
}
