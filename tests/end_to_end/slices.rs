//! MIG: the slices that are decided here are those that the node's plugin can make.

use std::collections::BTreeMap;

use berth_sandbox::agent::{card::Card, cut::Cut, node::Node, wire::Release};
use k8s_openapi::api::core::v1 as core;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::{
    quotas::bound,
    support::floor::Floor,
    world::{World, annotation, pod},
};

const FULL_AND_UNKNOWN: &str =
    "0/2 nodes are available: 1 Insufficient GPU memory, 2 node(s) had no free MIG slice of the size.";
const NO_SLICE: &str = "0/1 nodes are available: 1 node(s) had no free MIG slice of the size.";

fn a100(uuid: &str, cut: Cut) -> Card {
    Card::new(uuid, 0, 40_960).slots(7).product("NVIDIA A100-SXM4-40GB").mig(cut)
}

fn slices(pod: &core::Pod) -> Vec<String> {
    let entries: Vec<Value> =
        serde_json::from_str(annotation(pod, "hami.io/vgpu-mig-allocations")).expect("the entries are JSON");
    let slice = |entry: &Value| {
        assert!(entry["migUUID"].is_string(), "the plugin made it: {entry}");
        format!("{}@{}", entry["profile"].as_str().unwrap(), entry["placement"]["start"])
    };
    entries.iter().map(slice).collect()
}

pub(crate) async fn a_card_is_cut_slice_by_slice(floor: Floor) {
    let node = Node::new("mig-1").card(a100("GPU-mig-1", Cut::a100_40gb())).hami(Release::V2_10);
    let Some(world) = World::start(floor, vec![node]).await else { return };
    world.create(pod("small", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}))).await;
    let small = world.running("small").await;
    assert_eq!(annotation(&small, "hami.io/vgpu-devices-allocated"), "GPU-mig-1,NVIDIA,4864,15:;");
    assert_eq!(slices(&small), ["1g.5gb@6"]);
    world.create(pod("pair", &json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "8000"}))).await;
    assert_eq!(slices(&world.running("pair").await), ["2g.10gb@0", "2g.10gb@2"]);
    world.create(pod("large", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}))).await;
    assert_eq!(world.unschedulable("large").await, NO_SLICE);
    world.delete("pair").await;
    assert_eq!(slices(&world.running("large").await), ["3g.20gb@0"]);
    world.agents_are_content();
}

pub(crate) async fn a_card_is_filled_to_its_last_slice(floor: Floor) {
    let node = Node::new("mig-1").card(a100("GPU-mig-1", Cut::a100_40gb())).hami(Release::V2_10);
    let Some(world) = World::start(floor, vec![node]).await else { return };
    for at in 0..7 {
        let name = format!("slice-{at}");
        world.create(pod(&name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000"}))).await;
        assert_eq!(slices(&world.running(&name).await), [format!("1g.5gb@{}", 6 - at)]);
    }
    world.agents_are_content();
}

pub(crate) async fn a_card_is_cut_by_one_geometry_at_a_time(floor: Floor) {
    let groups = [("group1", 7), ("group2", 4), ("group3", 2), ("group4", 1)];
    let groups: BTreeMap<String, u32> =
        groups.into_iter().map(|(group, slices)| (group.to_owned(), slices)).collect();
    let node = Node::new("mig-1").card(a100("GPU-mig-1", Cut::Grouped(groups))).volcano();
    let Some(world) = World::start(floor, vec![node]).await else { return };
    let vgpu = |memory: &str| json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory});
    let ids = |pod: &core::Pod| annotation(pod, "volcano.sh/vgpu-ids-new").to_owned();
    world.create(pod("first", &vgpu("8000"))).await;
    assert_eq!(ids(&world.running("first").await), "GPU-mig-1[group2-0],NVIDIA,10240,0:");
    world.create(pod("second", &vgpu("4000"))).await;
    assert_eq!(ids(&world.running("second").await), "GPU-mig-1[group2-3],NVIDIA,5120,0:");
    world.create(pod("large", &vgpu("20000"))).await;
    assert_eq!(world.unschedulable("large").await, NO_SLICE);
    world.delete("first").await;
    world.delete("second").await;
    assert_eq!(ids(&world.running("large").await), "GPU-mig-1[group3-0],NVIDIA,20480,0:");
    world.agents_are_content();
}

/// A pod that HAMi's scheduler of v2.5 to v2.9 has placed, whose card was cut by one of its templates, and that has gone on running
/// since; nobody has ever seen it pending on its node.
async fn running_by_a_template(world: &World, name: &str, node: &str, devices: &str) {
    let mut old = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"}));
    old["spec"]["schedulerName"] = json!("hami-scheduler");
    old["metadata"]["labels"] = json!({"hami.io/vgpu-node": node});
    old["metadata"]["annotations"] = json!({
        "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1700000000", "hami.io/bind-time": "1700000000",
        "hami.io/bind-phase": "success", "hami.io/vgpu-devices-to-allocate": ";",
        "hami.io/vgpu-devices-allocated": devices,
    });
    world.create(old).await;
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    world.pods().patch_status(name, &PatchParams::default(), &running).await.unwrap();
    let target = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
    let binding: core::Binding = serde_json::from_value(target).unwrap();
    let bound: kube::Result<kube::core::Status> =
        world.pods().create_subresource("binding", name, &PostParams::default(), &binding).await;
    bound.unwrap();
}

/// The number of a template does not say where its slice lies, so nothing more is cut from that card.
pub(crate) async fn a_slice_of_an_old_template_keeps_its_card_and_counts_as_what_it_is(floor: Floor) {
    let cards = [0, 1].map(|at| a100(&format!("GPU-mig-{at}"), Cut::a100_40gb()));
    let new = cards.into_iter().fold(Node::new("mig-1"), Node::card).hami(Release::V2_10);
    // Older plugins do not say what a card can be cut into.
    let old = Node::new("mig-2").card(a100("GPU-mig-2", Cut::Whole)).hami(Release::V2_9);
    let Some(mut world) = World::without_berth(floor, vec![new, old]).await else { return };
    bound(&world, "gpus", json!({"limits.nvidia.com/gpumem": "70k"})).await;
    running_by_a_template(&world, "old", "mig-1", "GPU-mig-0[1-2],NVIDIA,9856,0:;").await;
    running_by_a_template(&world, "older", "mig-2", "GPU-mig-2[0-3],NVIDIA,4864,0:;").await;
    world.start_berth();
    let share =
        |name: &str, memory: &str| pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory}));
    let card = |pod: &core::Pod| annotation(pod, "hami.io/vgpu-devices-allocated").to_owned();
    let beside =
        [("large", "16000", "3g.20gb@4"), ("one", "9000", "2g.10gb@0"), ("two", "9000", "2g.10gb@2")];
    for (name, memory, slice) in beside {
        world.create(share(name, memory)).await;
        let pod = world.running(name).await;
        assert!(card(&pod).starts_with("GPU-mig-1,"), "{}", card(&pod));
        assert_eq!(slices(&pod), [slice]);
    }
    world.create(share("beyond", "16000")).await;
    let used = 9856 + 4864 + 19_968 + 2 * 9856;
    let over = format!(
        "exceeded quota: gpus, requested: limits.nvidia.com/gpumem=16000, used: limits.nvidia.com/gpumem={used}, \
         limited: limits.nvidia.com/gpumem=70000"
    );
    assert_eq!(world.unschedulable("beyond").await, over);
    world.delete("beyond").await;
    world.create(share("next", "9000")).await;
    assert_eq!(world.unschedulable("next").await, FULL_AND_UNKNOWN);
    world.delete("old").await;
    let next = world.running("next").await;
    assert_eq!(
        (card(&next).as_str(), slices(&next)),
        ("GPU-mig-0,NVIDIA,9856,29:;", vec!["2g.10gb@0".to_owned()])
    );
    world.agents_are_content();
}
