//! Cards of the vendors whose plugins speak HAMi's protocol: shares and whole cards, in the vendor's units, and what does not fit.

use berth_sandbox::agent::{Answer, Behaviour};
use serde_json::{Value, json};

use crate::{
    machines::{amd_node, biren_node, hygon_node, iluvatar_node},
    support::floor::Floor,
    vendors::settings,
    world::{World, and_container, annotation, phase, pod},
};

async fn world(floor: Floor, node: berth_sandbox::agent::node::Node) -> Option<World> {
    let mut world = World::without_berth(floor, vec![node]).await?;
    world.start_berth_with(&settings());
    Some(world)
}

/// What is kept of a pod's assignment, once the pod runs and nothing of it is left to allocate.
async fn kept(world: &World, name: &str, key: &str) -> String {
    let pod = world.running(name).await;
    let left = annotation(&pod, &format!("hami.io/{key}-devices-to-allocate"));
    assert!(!left.contains(','), "{name} has `{left}` left to allocate");
    annotation(&pod, &format!("hami.io/{key}-devices-allocated")).to_owned()
}

fn iluvatar(count: u32, blocks: Option<u32>, cores: Option<u32>) -> Value {
    let mut limits = json!({"iluvatar.ai/MR-V100-vgpu": count.to_string()});
    for (name, amount) in [("iluvatar.ai/MR-V100.vMem", blocks), ("iluvatar.ai/MR-V100.vCore", cores)] {
        if let Some(amount) = amount {
            limits[name] = json!(amount.to_string());
        }
    }
    limits
}

pub(crate) async fn iluvatar_counts_in_blocks_and_computes_alone_on_several(floor: Floor) {
    let Some(world) = world(floor, iluvatar_node("ilu-1", 3)).await else { return };
    let allocated = async |name: &str| kept(&world, name, "MR-V100").await;
    world.create(pod("share", &iluvatar(1, Some(64), Some(25)))).await;
    assert_eq!(allocated("share").await, "ILU-ilu-1-2,MR-V100,16384,25:;");
    // A part of the memory of two cards, and all of their compute.
    world.create(pod("pair", &iluvatar(2, Some(32), Some(10)))).await;
    assert_eq!(allocated("pair").await, "ILU-ilu-1-1,MR-V100,8192,100:ILU-ilu-1-0,MR-V100,8192,100:;");
    world.create(pod("large", &iluvatar(1, Some(65), None))).await;
    assert_eq!(
        world.unschedulable("large").await,
        "0/1 nodes are available: 1 Insufficient GPU memory, 1 node(s) had no GPU cores left."
    );
    world.delete("pair").await;
    assert_eq!(allocated("large").await, "ILU-ilu-1-1,MR-V100,16640,0:;");
    world.delete("share").await;
    world.delete("large").await;
    world.create(pod("whole", &iluvatar(3, None, None))).await;
    let whole = "ILU-ilu-1-2,MR-V100,32768,100:ILU-ilu-1-1,MR-V100,32768,100:ILU-ilu-1-0,MR-V100,32768,100:;";
    assert_eq!(allocated("whole").await, whole);
    world.agents_are_content();
}

fn amd(count: u32, memory: Option<u32>, cores: Option<u32>) -> Value {
    let mut limits = json!({"amd.com/gpu": count.to_string()});
    for (name, amount) in [("amd.com/gpumem", memory), ("amd.com/gpucores", cores)] {
        if let Some(amount) = amount {
            limits[name] = json!(amount.to_string());
        }
    }
    limits
}

pub(crate) async fn amd_turns_percent_into_compute_units(floor: Floor) {
    let Some(world) = world(floor, amd_node("amd-1", 2)).await else { return };
    let spread = |name: &str, limits: &Value| {
        let mut pod = pod(name, limits);
        pod["metadata"]["annotations"] = json!({"hami.io/gpu-scheduler-policy": "spread"});
        pod
    };
    let allocated = async |name: &str| kept(&world, name, "amd").await;
    let masked =
        async |name: &str| annotation(&world.running(name).await, "hami.io/amd-cu-allocated").to_owned();
    world.create(spread("share", &amd(1, Some(65_536), Some(33)))).await;
    assert_eq!(allocated("share").await, "AMD-amd-1-1,AMD,65536,100:;");
    assert_eq!(masked("share").await, r#"{"AMD-amd-1-1":"0-99"}"#);
    world.create(spread("pair", &amd(2, Some(1024), Some(50)))).await;
    assert_eq!(allocated("pair").await, "AMD-amd-1-0,AMD,1024,152:AMD-amd-1-1,AMD,1024,152:;");
    assert_eq!(masked("pair").await, r#"{"AMD-amd-1-0":"0-151","AMD-amd-1-1":"100-251"}"#);
    world.create(spread("least", &amd(1, Some(1024), Some(1)))).await;
    assert_eq!(allocated("least").await, "AMD-amd-1-0,AMD,1024,3:;");
    world.create(spread("whole", &amd(2, None, None))).await;
    assert_eq!(world.unschedulable("whole").await, "0/1 nodes are available: 1 Insufficient GPU memory.");
    for name in ["share", "pair", "least"] {
        world.delete(name).await;
    }
    assert_eq!(allocated("whole").await, "AMD-amd-1-1,AMD,196608,304:AMD-amd-1-0,AMD,196608,304:;");
    world.agents_are_content();
}

/// AMD's plugin takes a pod for served after its first Allocate, and fails the second.
pub(crate) async fn amd_serves_one_container_a_pod(floor: Floor) {
    let Some(world) = world(floor, amd_node("amd-1", 2)).await else { return };
    let limits = amd(1, Some(1024), Some(10));
    world.create(and_container(pod("two", &limits), &limits)).await;
    let told = world.unschedulable("two").await;
    assert!(told.contains("spec.containers[1].resources.limits[amd.com/gpu]"), "{told}");
    assert!(told.contains("one container"), "{told}");
    // The segments of others are left out by a decoder that does not know them.
    let mut second = and_container(pod("second", &json!({})), &limits);
    second["spec"]["initContainers"] = json!([{"name": "plain", "image": "train"}]);
    world.create(second).await;
    assert_eq!(kept(&world, "second", "amd").await, ";;AMD-amd-1-1,AMD,1024,30:;");
    world.agents_are_content();
}

pub(crate) async fn biren_gives_cards_whole(floor: Floor) {
    let Some(world) = world(floor, biren_node("biren-1", 4)).await else { return };
    let allocated = async |name: &str| kept(&world, name, "Biren").await;
    let cards = |count: u32| json!({"birentech.com/gpu": count.to_string()});
    world.create(pod("one", &cards(1))).await;
    assert_eq!(allocated("one").await, "card-biren-1-3,Biren,0,0:;");
    let two = and_container(pod("two", &cards(1)), &json!({}));
    world.create(and_container(two, &cards(1))).await;
    assert_eq!(allocated("two").await, "card-biren-1-2,Biren,0,0:;;card-biren-1-1,Biren,0,0:;");
    world.create(pod("pair", &cards(2))).await;
    assert_eq!(
        world.unschedulable("pair").await,
        "0/1 nodes are available: 1 Insufficient birentech.com/gpu."
    );
    world.delete("two").await;
    assert_eq!(allocated("pair").await, "card-biren-1-2,Biren,0,0:card-biren-1-1,Biren,0,0:;");
    world.agents_are_content();
}

/// Biren's plugin says nothing of a failure and keeps the node's lock for the pod that failed.
pub(crate) async fn biren_leaves_a_failed_pods_lock(floor: Floor) {
    let Some(world) = world(floor, biren_node("biren-1", 2)).await else { return };
    let failing = Behaviour { answer: Answer::FailingEvery(2), ..Behaviour::default() };
    world.fleet.behave("biren-1", failing).unwrap();
    for (name, expected) in [("one", "Running"), ("two", "Failed"), ("three", "Running")] {
        world.create(pod(name, &json!({"birentech.com/gpu": "1"}))).await;
        let pod = world.pod_when(name, |pod| matches!(phase(pod), "Running" | "Failed")).await;
        assert_eq!((phase(&pod), annotation(&pod, "hami.io/bind-phase")), (expected, "allocating"), "{name}");
    }
    world.agents_are_content();
}

/// A binder that died between lock and Binding, on a node of another vendor than NVIDIA.
pub(crate) async fn a_restarted_binder_goes_on_with_a_vendors_node(floor: Floor) {
    let nodes = vec![
        hygon_node("hygon-1", 1),
        iluvatar_node("ilu-1", 1),
        amd_node("amd-1", 1),
        biren_node("biren-1", 1),
    ];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    let asks = [
        ("hygon-1", json!({"hygon.com/dcunum": "1"})),
        ("ilu-1", iluvatar(1, None, None)),
        ("amd-1", amd(1, None, None)),
        ("biren-1", json!({"birentech.com/gpu": "1"})),
    ];
    for (node, limits) in &asks {
        world.create(pod(&format!("between-{node}"), limits)).await;
        let lock = format!("2026-01-01T00:00:00Z,default,between-{node}");
        world.annotate_node(node, "hami.io/mutex.lock", json!(lock)).await;
        world.create(pod(&format!("too-much-{node}"), limits)).await;
    }
    world.start_berth_with(&settings());
    for (node, _) in &asks {
        world.running(&format!("between-{node}")).await;
        let told = world.unschedulable(&format!("too-much-{node}")).await;
        assert!(told.starts_with("0/4 nodes are available: "), "{told}");
    }
    world.agents_are_content();
}
