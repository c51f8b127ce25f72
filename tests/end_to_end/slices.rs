//! MIG: the slices that are decided here are those that the node's plugin can make.

use std::collections::BTreeMap;

use berth::sandbox::agent::{
    hami::Release,
    mig::Cut,
    node::{Card, Node},
};
use serde_json::{Value, json};

use crate::{
    support::floor::Floor,
    world::{World, annotation, pod},
};

const NO_SLICE: &str = "0/1 nodes are available: 1 node(s) had no free MIG slice of the size.";

fn a100(uuid: &str, cut: Cut) -> Card {
    Card::new(uuid, 0, 40_960).slots(7).product("NVIDIA A100-SXM4-40GB").mig(cut)
}

fn slices(pod: &k8s_openapi::api::core::v1::Pod) -> Vec<String> {
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
    assert_eq!(annotation(&small, "hami.io/vgpu-devices-allocated"), "GPU-mig-1,NVIDIA,4864,14:;");
    assert_eq!(slices(&small), ["1g.5gb@6"]);
    world.create(pod("pair", &json!({"nvidia.com/gpu": "2", "nvidia.com/gpumem": "8000"}))).await;
    assert_eq!(slices(&world.running("pair").await), ["2g.10gb@0", "2g.10gb@2"]);
    world.create(pod("large", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}))).await;
    assert_eq!(world.unschedulable("large").await, NO_SLICE);
    world.delete("pair").await;
    assert_eq!(slices(&world.running("large").await), ["3g.20gb@0"]);
    world.agents_are_content();
}

pub(crate) async fn a_card_is_cut_by_one_geometry_at_a_time(floor: Floor) {
    let groups = [("group1", 7), ("group2", 4), ("group3", 2), ("group4", 1)];
    let groups: BTreeMap<String, u32> =
        groups.into_iter().map(|(group, slices)| (group.to_owned(), slices)).collect();
    let node = Node::new("mig-1").card(a100("GPU-mig-1", Cut::Grouped(groups))).volcano();
    let Some(world) = World::start(floor, vec![node]).await else { return };
    let vgpu = |memory: &str| json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory});
    let ids = |pod: &k8s_openapi::api::core::v1::Pod| annotation(pod, "volcano.sh/vgpu-ids-new").to_owned();
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
