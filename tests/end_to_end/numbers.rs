//! Cards by number: Volcano's gpushare and gpu-number, with their device plugin.

use berth::config::Config;
use berth_sandbox::agent::strategy::Strategy;
use serde_json::json;

use crate::{
    machines::{gpushare_node, hami_node},
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

fn config(mode: &str) -> Config {
    let text = format!(
        "dialects: {{volcano: {{arguments: {{deviceshare.{mode}: true, deviceshare.NodeLockEnable: true}}}}}}"
    );
    Config::parse(&text, "berth.yaml").expect("the settings are good").0
}

pub(crate) async fn blocks_of_memory_share_the_lowest_card_that_has_room(floor: Floor) {
    let nodes = vec![gpushare_node("numbers", 2, Strategy::Memory), hami_node("hami", 1)];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    world.start_berth_with(&config("GPUSharingEnable"));
    for (name, memory, card) in [("one", "10000", "0"), ("two", "10000", "1"), ("three", "6000", "0")] {
        world.create(pod(name, &json!({"volcano.sh/gpu-memory": memory}))).await;
        let found = world.running(name).await;
        assert_eq!(
            (node_of(&found), annotation(&found, "volcano.sh/gpu-index")),
            ("numbers", card),
            "{name}"
        );
        assert_eq!(annotation(&found, "volcano.sh/gpu-assigned"), "true");
    }
    world.create(pod("four", &json!({"volcano.sh/gpu-memory": "7000"}))).await;
    assert_eq!(
        world.unschedulable("four").await,
        "0/2 nodes are available: 1 Insufficient volcano.sh/gpu-memory, 1 node(s) had no GPUs of the kind that the Pod asks for."
    );
    world.create(pod("hami", &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}))).await;
    assert_eq!(node_of(&world.running("hami").await), "hami");
    let node = world.nodes().get("numbers").await.unwrap();
    assert!(!node.metadata.annotations.unwrap_or_default().contains_key("gpu"), "the lock is given back");
    world.agents_are_content();
}

pub(crate) async fn whole_cards_are_given_once(floor: Floor) {
    let nodes = vec![gpushare_node("numbers", 3, Strategy::Cards)];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    world.start_berth_with(&config("GPUNumberEnable"));
    for (name, cards, indices) in [("pair", "2", "0,1"), ("single", "1", "2")] {
        world.create(pod(name, &json!({"volcano.sh/gpu-number": cards}))).await;
        assert_eq!(annotation(&world.running(name).await, "volcano.sh/gpu-index"), indices);
    }
    world.create(pod("late", &json!({"volcano.sh/gpu-number": "1"}))).await;
    world.unschedulable("late").await;
    world.delete("pair").await;
    assert_eq!(annotation(&world.running("late").await, "volcano.sh/gpu-index"), "0");
    world.agents_are_content();
}

pub(crate) async fn what_the_plugin_would_fail_is_refused(floor: Floor) {
    let nodes = vec![gpushare_node("numbers", 2, Strategy::Memory)];
    let Some(mut world) = World::without_berth(floor, nodes).await else { return };
    world.start_berth_with(&config("GPUSharingEnable"));
    let mut two = pod("two", &json!({"volcano.sh/gpu-memory": "1000"}));
    let mut second = two["spec"]["containers"][0].clone();
    second["name"] = json!("second");
    two["spec"]["containers"].as_array_mut().unwrap().push(second);
    world.create(two).await;
    let message = world.unschedulable("two").await;
    assert!(
        message.contains("spec.containers[1]: Volcano's plugin serves one container of a pod"),
        "{message}"
    );
    assert_eq!(world.fleet.rejected(), 0);
    world.agents_are_content();
}
