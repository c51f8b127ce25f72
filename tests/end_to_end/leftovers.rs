//! A cluster that another scheduler served until now: what it decided and what it locked.

use berth::config::Config;
use berth_sandbox::agent::{Answer, Behaviour};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    machines::hami_node,
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

/// A pod that HAMi's scheduler has decided and not bound: its filter writes to the pod before anything else.
pub(crate) fn decided(name: &str, card: &str, memory: u32) -> Value {
    let mut left = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
    left["spec"]["schedulerName"] = json!("hami-scheduler");
    let devices = format!("{card},NVIDIA,{memory},0:;");
    left["metadata"]["labels"] = json!({"hami.io/vgpu-node": "gpu-1"});
    left["metadata"]["annotations"] = json!({
        "hami.io/vgpu-node": "gpu-1", "hami.io/vgpu-time": "1700000000",
        "hami.io/vgpu-devices-to-allocate": devices, "hami.io/vgpu-devices-allocated": devices,
    });
    left
}

pub(crate) async fn a_decision_of_another_scheduler_holds_its_cards(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 1)]).await else { return };
    world.create(decided("theirs", "GPU-gpu-1-0", 10_000)).await;
    world.start_berth();
    world.create(pod("small", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "6000"}))).await;
    world.running("small").await;
    world.create(pod("large", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "6000"}))).await;
    assert_eq!(world.unschedulable("large").await, "0/1 nodes are available: 1 Insufficient GPU memory.");
    world.delete("theirs").await;
    world.running("large").await;
    world.agents_are_content();
}

/// Berth serves under the name of the scheduler that it replaces, so that pods keep theirs.
pub(crate) async fn the_pods_of_a_scheduler_that_is_gone_are_taken_over(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    // Both were decided for the same card, one of them with a lock and nobody to bind it.
    world.create(decided("locked", "GPU-gpu-1-0", 12_000)).await;
    world.create(decided("doubled", "GPU-gpu-1-0", 12_000)).await;
    let lock = "2026-01-01T00:00:00Z,default,locked";
    world.patch_node("gpu-1", json!({"metadata": {"annotations": {"hami.io/mutex.lock": lock}}})).await;
    let text = "schedulerName: hami-scheduler\n";
    let (config, _) = Config::parse(text, "berth.yaml").expect("the settings are good");
    world.start_berth_with(&config);
    let (locked, doubled) = (world.running("locked").await, world.running("doubled").await);
    let cards = [&locked, &doubled].map(|pod| annotation(pod, "hami.io/vgpu-devices-allocated").to_owned());
    assert_eq!([node_of(&locked), node_of(&doubled)], ["gpu-1", "gpu-1"]);
    assert_ne!(cards[0], cards[1], "each has a card of its own");
    let mut third = pod("third", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "12000"}));
    third["spec"]["schedulerName"] = json!("hami-scheduler");
    world.create(third).await;
    assert_eq!(world.unschedulable("third").await, "0/1 nodes are available: 1 Insufficient GPU memory.");
    world.agents_are_content();
}

pub(crate) async fn more_than_a_card_has_is_told_and_nothing_more_is_given_of_it(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    let silent = Behaviour { answer: Answer::Never, ..Behaviour::default() };
    world.fleet.behave("gpu-1", silent).unwrap();
    for (name, devices) in [("twice", "GPU-gpu-1-0,NVIDIA,20000,0:;"), ("broken", "GPU-gpu-1-1,NVIDIA,x,0:;")]
    {
        let mut left = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
        left["spec"]["schedulerName"] = json!("hami-scheduler");
        left["spec"]["nodeName"] = json!("gpu-1");
        left["metadata"]["annotations"] = json!({
            "hami.io/vgpu-node": "gpu-1", "hami.io/bind-phase": "success", "hami.io/vgpu-devices-allocated": devices,
        });
        world.create(left).await;
    }
    world.start_berth();
    world.create(pod("next", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"}))).await;
    assert_eq!(world.unschedulable("next").await, "0/1 nodes are available: 1 Insufficient GPU memory.");
    let event = world.event_when("twice", "CardOvercommitted").await;
    let words = "Pods hold more of card GPU-gpu-1-0 on node gpu-1 than it has: 20000 MiB of 16384 MiB";
    assert_eq!(event.message.as_deref(), Some(words));
    world.event_when("broken", "CardOvercommitted").await;
}

pub(crate) async fn a_card_that_nobody_can_tell_counts_on_each_card_of_its_node(floor: Floor) {
    let nodes = vec![hami_node("gpu-1", 2), hami_node("gpu-2", 1)];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    let silent = Behaviour { answer: Answer::Never, ..Behaviour::default() };
    world.fleet.behave("gpu-1", silent).unwrap();
    let key = "hami.io/vgpu-devices-allocated";
    let mut left = pod("broken", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    left["spec"]["schedulerName"] = json!("hami-scheduler");
    left["spec"]["nodeName"] = json!("gpu-1");
    left["metadata"]["annotations"] =
        json!({"hami.io/vgpu-node": "gpu-1", "hami.io/bind-phase": "success", key: ",NVIDIA,1000,0:;"});
    world.create(left).await;
    // It was served long ago. Were it still pending, kubelet would ask for it as soon as the plugin answers, and be given the next pod's card.
    let running = Patch::Merge(json!({"status": {"phase": "Running"}}));
    world.pods().patch_status("broken", &PatchParams::default(), &running).await.unwrap();
    world.start_berth();
    // The other node goes on.
    let mut small = pod("small", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "9000"}));
    small["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "gpu-2"});
    world.create(small).await;
    assert_eq!(node_of(&world.running("small").await), "gpu-2");
    // Of each card of 16,000 MiB the pod may have the 1,000 that it asks for.
    world.create(pod("next", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "15500"}))).await;
    assert_eq!(world.unschedulable("next").await, "0/2 nodes are available: 2 Insufficient GPU memory.");
    let note = world.event_when("broken", "UnreadableAssignment").await.message.unwrap();
    let words = "metadata.annotations[hami.io/vgpu-devices-allocated]: share `,NVIDIA,1000,0` names no card";
    assert!(note.starts_with(words), "{note}");
    world.fleet.behave("gpu-1", Behaviour::default()).unwrap();
    let mended = json!({"metadata": {"annotations": {key: "GPU-gpu-1-0,NVIDIA,9000,0:;"}}});
    world.pods().patch("broken", &PatchParams::default(), &Patch::Merge(&mended)).await.unwrap();
    let next = world.running("next").await;
    assert_eq!((node_of(&next), annotation(&next, key)), ("gpu-1", "GPU-gpu-1-1,NVIDIA,15500,0:;"));
}
