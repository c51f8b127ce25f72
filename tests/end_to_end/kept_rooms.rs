//! Room that is kept for a pod that waits long: small pods end and come, and a large one gets its place after all; also when Berth is restarted.

use berth::config::Config;
use futures::FutureExt as _;
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use serde_json::{Value, json};

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{LIMIT, World, node_of, pod},
};

/// A pod with so many MiB of a card that has 16,384.
fn share(name: &str, memory: u32) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}))
}

/// Two of these fill a card.
fn small(name: &str) -> Value {
    share(name, 8_000)
}

fn nominated(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.nominated_node_name.as_deref()
}

/// What the pod's status says of room that is kept for it.
fn room(pod: &Pod) -> Option<&PodCondition> {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|condition| condition.type_ == "berth.dev/RoomKept")
}

fn keeping() -> Config {
    Config::parse("scheduling: {pods: {keepRoomAfter: 1s}}", "berth.yaml").expect("the settings are good").0
}

impl World {
    /// Small pods fill the only card, and for each that ends another one comes, until room is kept for the pod `large`. Returns that pod, and the name
    /// of the small one that runs then: half of the card is free.
    async fn until_room_is_kept(&self) -> (Pod, String) {
        let room_is_kept = self.small_pods_come_and_go().boxed();
        tokio::time::timeout(LIMIT, room_is_kept).await.expect("room is kept in time")
    }

    async fn small_pods_come_and_go(&self) -> (Pod, String) {
        for name in ["small-0", "small-1"] {
            self.create(small(name)).await;
            self.running(name).await;
        }
        self.create(share("large", 16_000)).await;
        self.why_it_waits("large").await;
        let [mut oldest, mut other] = ["small-0", "small-1"].map(str::to_owned);
        for at in 2.. {
            let next = format!("small-{at}");
            self.create(small(&next)).await;
            self.delete_and_await(&[&oldest]).await;
            let large = tokio::select! {
                _ = self.running(&next) => None,
                large = self.pod_when("large", |pod| nominated(pod).is_some()) => Some(large),
            };
            let Some(large) = large else {
                (oldest, other) = (other, next);
                continue;
            };
            // It had been given its place before, or not.
            self.delete_and_await(&[&next]).await;
            return (large, other);
        }
        unreachable!("there is no end of numbers")
    }

    /// The pod has its room, and says since when it was kept, as before.
    async fn has_its_room(&self, large: &Pod) {
        let bound = self.running("large").await;
        assert_eq!(node_of(&bound), "gpu-1");
        assert_eq!(room(&bound), room(large));
    }
}

pub(crate) async fn a_large_pod_gets_the_room_that_small_ones_leave(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.start_berth_with(&keeping());
    let (large, last) = world.until_room_is_kept().await;
    assert_eq!(nominated(&large), Some("gpu-1"));
    let kept = room(&large).expect("its status says that room is kept");
    assert_eq!((kept.status.as_str(), kept.reason.as_deref()), ("True", Some("WaitsLong")));
    let is_told = |message: &str| message.contains("room is kept for the pod on node gpu-1 since ");
    world.waits_with("large", is_told).await;

    world.create(small("late")).await;
    world.unschedulable_with("late", "0/1 nodes are available: 1 Insufficient GPU memory.").await;
    world.delete_and_await(&[&last]).await;
    world.has_its_room(&large).await;

    world.delete("large").await;
    world.running("late").await;
    world.agents_are_content();
}

pub(crate) async fn a_restarted_binder_keeps_the_same_room(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.start_berth_with(&keeping());
    let (large, last) = world.until_room_is_kept().await;
    world.kill_berth().await;
    world.create(small("late")).await;
    world.start_berth_with(&keeping());
    world.unschedulable_with("late", "0/1 nodes are available: 1 Insufficient GPU memory.").await;
    let still = world.pods().get("large").await.unwrap();
    assert_eq!((nominated(&still), room(&still)), (Some("gpu-1"), room(&large)));
    world.delete_and_await(&[&last]).await;
    world.has_its_room(&large).await;
    world.agents_are_content();
}
