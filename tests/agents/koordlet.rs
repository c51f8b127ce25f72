//! Koordinator's node side: the Device that it writes, and what it does with what a pod was given.

use berth_sandbox::agent::{audit::Violation, card::Health, koordlet::Koordlet, node::Node};
use serde_json::{Value, json};

use super::case::{Case, container, reason};

const ALLOCATED: &str = "scheduling.koordinator.sh/device-allocated";

fn node(name: &str) -> Node {
    Node::new(name).koordlet(Koordlet::new(name, 2, 1).with_functions())
}

fn asks(limits: &Value) -> Value {
    json!({"containers": [container("main", limits)]})
}

fn share(minor: u32, percent: u32) -> Value {
    let resources = json!({"koordinator.sh/gpu-core": percent.to_string(), "koordinator.sh/gpu-memory-ratio": percent.to_string()});
    let given = json!({"gpu": [{"minor": minor, "id": format!("GPU-n1-{minor}"), "resources": resources}]});
    json!({ALLOCATED: given.to_string()})
}

#[tokio::test]
async fn koordlet_publishes_devices_and_starts_pods_with_what_they_were_given() {
    let Some(case) = Case::with_devices(vec![node("n1")]).await else { return };
    let device = case.devices().get("n1").await.unwrap();
    assert_eq!(device.data["spec"]["devices"].as_array().unwrap().len(), 3);
    let of_node = case.nodes().get("n1").await.unwrap();
    let allocatable = of_node.status.unwrap().allocatable.unwrap();
    assert_eq!(allocatable["koordinator.sh/gpu-core"].0, "200");
    assert_eq!(allocatable["koordinator.sh/rdma"].0, "100");
    assert_eq!(of_node.metadata.labels.unwrap()["node.koordinator.sh/gpu-model"], "A100-SXM4-80GB");

    let half = json!({"koordinator.sh/gpu-core": 50, "koordinator.sh/gpu-memory-ratio": 50});
    for name in ["first", "second"] {
        case.create(name, asks(&half)).await;
        case.bind(name, "n1", share(0, 50)).await;
        case.in_phase(name, "Running").await;
    }
    case.assert_clean();

    // The card is full, the next one is not the node's, and the last pod was given nothing.
    for (name, given) in [("over", share(0, 50)), ("unknown", share(7, 50)), ("nothing", json!({}))] {
        case.create(name, asks(&half)).await;
        case.bind(name, "n1", given).await;
        assert_eq!(reason(&case.in_phase(name, "Failed").await), "CreateContainerError", "{name}");
    }
    let violations = case.fleet.violations();
    let [Violation::DeviceOvercommitted { resource, .. }, Violation::DeviceOvercommitted { .. }, unknown] =
        &violations[..]
    else {
        panic!("{violations:?}")
    };
    assert_eq!(resource, "koordinator.sh/gpu-core");
    assert!(matches!(unknown, Violation::UnknownCard { .. }), "{unknown}");
}

#[tokio::test]
async fn an_unhealthy_device_is_published_as_one_and_counts_no_more() {
    let Some(case) = Case::with_devices(vec![node("n1")]).await else { return };
    case.fleet.set_health("n1", "GPU-n1-1", Health::Unhealthy).await.unwrap();
    let device = case.devices().get("n1").await.unwrap();
    assert_eq!(device.data["spec"]["devices"][1]["health"], false);
    let allocatable = case.nodes().get("n1").await.unwrap().status.unwrap().allocatable.unwrap();
    assert_eq!(allocatable["koordinator.sh/gpu"].0, "100");
}
