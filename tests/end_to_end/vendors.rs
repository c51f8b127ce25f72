//! A cluster of all vendors: each pod finds the nodes of its own, and their plugins find what they read.

use berth::config::Config;
use berth_sandbox::agent::plugin::Spelling;
use serde_json::{Value, json};

use crate::{
    machines::{amd_node, ascend_node, biren_node, cambricon_node, hami_node, hygon_node, iluvatar_node},
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

const SETTINGS: &str = "
dialects:
  hami: {enable-ascend: true, enable-iluvatar: true, amd: {}, biren: {}, cambricon: {}}
";

/// Every vendor is served.
pub(crate) fn settings() -> Config {
    Config::parse(SETTINGS, "berth.yaml").expect("the settings are good").0
}

async fn world(floor: Floor) -> Option<World> {
    let nodes = vec![
        hami_node("nvidia-1", 2),
        hygon_node("hygon-1", 2),
        ascend_node("ascend-1", 2),
        iluvatar_node("iluvatar-1", 2),
        amd_node("amd-1", 2),
        biren_node("biren-1", 4),
        cambricon_node("cambricon-1", 2, Spelling::Assigned),
    ];
    let mut world = World::without_berth(floor, nodes).await?;
    world.start_berth_with(&settings());
    Some(world)
}

/// A share that goes four times into the two cards of a node, and what is kept of the first: on the card that the vendor's policy
/// names first.
fn asks() -> [(&'static str, Value, &'static str, &'static str); 7] {
    [
        (
            "nvidia",
            json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "20"}),
            "hami.io/vgpu-devices-allocated",
            "GPU-nvidia-1-1,NVIDIA,2000,20:;",
        ),
        (
            "hygon",
            json!({"hygon.com/dcunum": "1", "hygon.com/dcumem": "2000", "hygon.com/dcucores": "20"}),
            "hami.io/dcu-devices-allocated",
            "DCU-hygon-1-1,DCU,2000,20:;",
        ),
        (
            "ascend",
            json!({"huawei.com/Ascend910B3": "1", "huawei.com/Ascend910B3-memory": "16384"}),
            "hami.io/Ascend910B3-devices-allocated",
            "NPU-ascend-1-1,Ascend910B3,16384,0:;",
        ),
        (
            "iluvatar",
            json!({"iluvatar.ai/MR-V100-vgpu": "1", "iluvatar.ai/MR-V100.vMem": "16", "iluvatar.ai/MR-V100.vCore": "20"}),
            "hami.io/MR-V100-devices-allocated",
            "ILU-iluvatar-1-1,MR-V100,4096,20:;",
        ),
        (
            "amd",
            json!({"amd.com/gpu": "1", "amd.com/gpumem": "2000", "amd.com/gpucores": "20"}),
            "hami.io/amd-devices-allocated",
            "AMD-amd-1-1,AMD,2000,60:;",
        ),
        (
            "biren",
            json!({"birentech.com/gpu": "1"}),
            "hami.io/Biren-devices-allocated",
            "card-biren-1-3,Biren,0,0:;",
        ),
        (
            "cambricon",
            json!({"cambricon.com/vmlu": "1", "cambricon.com/mlu.smlu.vmemory": "16", "cambricon.com/mlu.smlu.vcore": "20"}),
            "hami.io/cambricon-mlu-devices-allocated",
            "cambricon-1-cambricon-mlu-1,MLU,4096,20:;",
        ),
    ]
}

pub(crate) async fn each_vendors_pods_go_to_its_nodes(floor: Floor) {
    let Some(world) = world(floor).await else { return };
    let asks = asks();
    for at in 0..4 {
        for (vendor, limits, ..) in &asks {
            world.create(pod(&format!("{vendor}-{at}"), limits)).await;
        }
    }
    world.fleet.answered(28).await;
    for at in 0..4 {
        for (vendor, ..) in &asks {
            let pod = world.running(&format!("{vendor}-{at}")).await;
            assert_eq!(node_of(&pod), format!("{vendor}-1"));
        }
    }
    assert_eq!(world.fleet.rejected(), 0);
    for (vendor, _, key, record) in &asks {
        assert_eq!(annotation(&world.running(&format!("{vendor}-0")).await, key), *record);
    }
    world.agents_are_content();
}

pub(crate) async fn a_share_is_cut_by_its_template(floor: Floor) {
    let Some(mut world) =
        World::without_berth(floor, vec![hami_node("nvidia-1", 2), ascend_node("ascend-1", 2)]).await
    else {
        return;
    };
    world.start_berth_with(&settings());
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
        "0/2 nodes are available: 1 Insufficient GPU memory, 1 node(s) had no GPUs of the kind that the Pod asks for."
    );
    world.agents_are_content();
}
