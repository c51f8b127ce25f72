//! A cluster of several vendors: each pod finds the nodes of its own, and their plugins find what they read.

use berth::config::Config;
use serde_json::{Value, json};

use crate::{
    support::floor::Floor,
    world::{World, annotation, ascend_node, hami_node, hygon_node, node_of, pod},
};

const SETTINGS: &str = "dialects: {hami: {enable-ascend: true}}";

async fn world(floor: Floor) -> Option<World> {
    let nodes = vec![hami_node("nvidia-1", 2), hygon_node("hygon-1", 2), ascend_node("ascend-1", 2)];
    let mut world = World::without_berth(floor, nodes).await?;
    world.start_berth_with(&Config::parse(SETTINGS, "berth.yaml").unwrap().0);
    Some(world)
}

pub(crate) async fn each_vendors_pods_go_to_its_nodes(floor: Floor) {
    let Some(world) = world(floor).await else { return };
    let asks: [(&str, Value); 3] = [
        ("nvidia", json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "20"})),
        ("hygon", json!({"hygon.com/dcunum": "1", "hygon.com/dcumem": "2000", "hygon.com/dcucores": "20"})),
        ("ascend", json!({"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "16384"})),
    ];
    for at in 0..4 {
        for (vendor, limits) in &asks {
            world.create(pod(&format!("{vendor}-{at}"), limits)).await;
        }
    }
    world.fleet.answered(12).await;
    for at in 0..4 {
        for (vendor, _) in &asks {
            let pod = world.running(&format!("{vendor}-{at}")).await;
            assert_eq!(node_of(&pod), format!("{vendor}-1"));
            assert_eq!(annotation(&pod, "hami.io/bind-phase"), "success");
        }
    }
    assert_eq!(world.fleet.rejected(), 0);
    let hygon = world.running("hygon-0").await;
    assert!(annotation(&hygon, "hami.io/dcu-devices-allocated").ends_with(",DCU,2000,20:;"));
    world.agents_are_content();
}

pub(crate) async fn a_share_is_cut_by_its_template(floor: Floor) {
    let Some(world) = world(floor).await else { return };
    let ask = |memory: &str| json!({"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": memory});
    world.create(pod("small", &ask("15000"))).await;
    let small = world.running("small").await;
    let allocated = annotation(&small, "hami.io/Ascend910B3-devices-allocated");
    assert_eq!(allocated, "NPU-ascend-1-1,Ascend910B3,16384,0:;");
    let described = annotation(&small, "huawei.com/Ascend910B3");
    assert_eq!(described, r#"[{"UUID":"NPU-ascend-1-1","temp":"vir05_1c_16g","memory":16384}]"#);
    world.create(pod("whole", &json!({"huawei.com/Ascend910B3": "1"}))).await;
    let whole = world.running("whole").await;
    assert_eq!(annotation(&whole, "huawei.com/Ascend910B3"), r#"[{"UUID":"NPU-ascend-1-0","memory":65536}]"#);
    world.create(pod("too-much", &ask("50000"))).await;
    assert_eq!(
        world.unschedulable("too-much").await,
        "0/3 nodes are available: 1 Insufficient GPU memory, 2 node(s) had no GPUs of the kind that the Pod asks for."
    );
    world.agents_are_content();
}
