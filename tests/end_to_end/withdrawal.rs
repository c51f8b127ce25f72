//! Pods that die before a plugin has served them that does not tell the dead from the living, Volcano's or Hygon's: the next pod of the
//! node gets its own cards all the same.
//!
//! These plugins look at neither phase nor deletion, and so do their stand-ins here: without the withdrawal each case ends in a pod that
//! was served with another's assignment.

use berth_sandbox::agent::{Answer, Behaviour, node::Node};
use k8s_openapi::api::core::v1 as core;
use serde_json::{Value, json};

use crate::{
    machines::{hygon_node, volcano_node},
    support::floor::Floor,
    world::{World, annotation, node_of, phase, pod},
};

/// A plugin that would serve the next pod with a dead one's assignment.
struct Plugin {
    node: fn(&str, u32) -> Node,
    limits: Value,
    /// What `left` carries of the second card of `n-1` and waits with.
    left: Value,
    /// The annotation that keeps the assignment for good, and what is kept of a share on the first card of `n-1`.
    record: (&'static str, &'static str),
    phase: &'static str,
    withdrawn: [(&'static str, &'static str); 2],
}

fn volcano() -> Plugin {
    let left = json!({
        "volcano.sh/vgpu-node": "n-1", "volcano.sh/vgpu-time": "1700000000", "volcano.sh/bind-time": "1700000000",
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/vgpu-ids-new": "GPU-n-1-1,NVIDIA,1000,0:",
        "volcano.sh/devices-to-allocate": "GPU-n-1-1,NVIDIA,1000,0:",
    });
    Plugin {
        node: volcano_node,
        limits: json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}),
        left,
        record: ("volcano.sh/vgpu-ids-new", "GPU-n-1-0,NVIDIA,1000,0:"),
        phase: "volcano.sh/bind-phase",
        withdrawn: [("volcano.sh/vgpu-time", "18446744073709551615"), ("volcano.sh/devices-to-allocate", "")],
    }
}

fn hygon() -> Plugin {
    let left = json!({
        "hami.io/vgpu-node": "n-1", "hami.io/vgpu-time": "1700000000", "hami.io/bind-time": "1700000000",
        "hami.io/bind-phase": "allocating",
        "hami.io/dcu-devices-allocated": "DCU-n-1-1,DCU,2000,20:;",
        "hami.io/dcu-devices-to-allocate": "DCU-n-1-1,DCU,2000,20:;",
    });
    Plugin {
        node: hygon_node,
        limits: json!({"hygon.com/dcunum": "1", "hygon.com/dcumem": "1000", "hygon.com/dcucores": "10"}),
        left,
        record: ("hami.io/dcu-devices-allocated", "DCU-n-1-0,DCU,1000,10:;"),
        phase: "hami.io/bind-phase",
        withdrawn: [("hami.io/bind-phase", "failed"), ("hami.io/dcu-devices-to-allocate", "")],
    }
}

impl Plugin {
    fn share(&self, name: &str) -> Value {
        pod(name, &self.limits)
    }

    fn is_withdrawn(&self, pod: &core::Pod) -> bool {
        self.withdrawn.iter().all(|(key, value)| annotation(pod, key) == *value)
    }

    /// A cluster of one node, whose plugin answers nobody for now.
    async fn silent(&self, floor: Floor, cards: u32) -> Option<World> {
        let world = World::without_berth(floor, vec![(self.node)("n-1", cards)]).await?;
        world.fleet.behave("n-1", answering(Answer::Never)).unwrap();
        Some(world)
    }

    /// From now on the plugin answers, and `next` is served with its own.
    async fn serves_the_next(&self, world: &World) {
        world.fleet.behave("n-1", answering(Answer::Promptly)).unwrap();
        let next = world.running("next").await;
        assert_eq!(annotation(&next, self.phase), "success");
        world.agents_are_content();
    }
}

fn answering(answer: Answer) -> Behaviour {
    Behaviour { answer, ..Behaviour::default() }
}

async fn deleted(floor: Floor, plugin: &Plugin) {
    let Some(mut world) = plugin.silent(floor, 1).await else { return };
    world.start_berth();
    let mut dying = plugin.share("dying");
    dying["metadata"]["finalizers"] = json!(["example.com/kept"]);
    world.create(dying).await;
    world.pod_when("dying", |pod| node_of(pod) == "n-1").await;
    world.create(plugin.share("next")).await;
    world.delete("dying").await;
    let dying = world.pod_when("dying", |pod| plugin.is_withdrawn(pod)).await;
    let (key, kept) = plugin.record;
    assert_eq!(annotation(&dying, key), kept, "the record stays");
    plugin.serves_the_next(&world).await;
    assert_eq!(phase(&world.pods().get("dying").await.unwrap()), "Failed");
}

async fn failed(floor: Floor, plugin: &Plugin) {
    let Some(mut world) = plugin.silent(floor, 1).await else { return };
    world.start_berth();
    world.create(plugin.share("evicted")).await;
    world.pod_when("evicted", |pod| node_of(pod) == "n-1").await;
    world.create(plugin.share("next")).await;
    world.fail("evicted", "Evicted").await;
    world.pod_when("evicted", |pod| plugin.is_withdrawn(pod)).await;
    world.pod_when("next", |pod| node_of(pod) == "n-1").await;
    plugin.serves_the_next(&world).await;
}

async fn left(floor: Floor, plugin: &Plugin) {
    let Some(mut world) = plugin.silent(floor, 2).await else { return };
    let mut left = plugin.share("left");
    left["spec"]["schedulerName"] = json!("another");
    left["spec"]["nodeName"] = json!("n-1");
    left["metadata"]["annotations"] = plugin.left.clone();
    world.create(left).await;
    world.fail("left", "OutOfcpu").await;
    world.start_berth();
    world.create(plugin.share("next")).await;
    world.pod_when("left", |pod| plugin.is_withdrawn(pod)).await;
    world.pod_when("next", |pod| node_of(pod) == "n-1").await;
    plugin.serves_the_next(&world).await;
}

pub(crate) async fn a_volcano_pod_deleted_before_its_allocation_is_withdrawn(floor: Floor) {
    deleted(floor, &volcano()).await;
}

pub(crate) async fn a_volcano_pod_that_failed_before_its_allocation_is_withdrawn(floor: Floor) {
    failed(floor, &volcano()).await;
}

pub(crate) async fn a_failed_volcano_pod_that_another_scheduler_left_is_withdrawn(floor: Floor) {
    left(floor, &volcano()).await;
}

pub(crate) async fn a_hygon_pod_deleted_before_its_allocation_is_withdrawn(floor: Floor) {
    deleted(floor, &hygon()).await;
}

pub(crate) async fn a_hygon_pod_that_failed_before_its_allocation_is_withdrawn(floor: Floor) {
    failed(floor, &hygon()).await;
}

pub(crate) async fn a_failed_hygon_pod_that_another_scheduler_left_is_withdrawn(floor: Floor) {
    left(floor, &hygon()).await;
}
