//! Nodes as they are found in clusters: every release of a plugin, and cards that are linked.

use berth_sandbox::agent::{card::Card, node::Node, wire::Release};
use serde_json::{Value, json};

use crate::{
    machines::volcano_node,
    support::floor::Floor,
    world::{World, annotation, node_of, pod},
};

const RELEASES: [(&str, Release); 5] = [
    ("v2-4", Release::V2_4),
    ("v2-7", Release::V2_7),
    ("v2-8", Release::V2_8),
    ("v2-9", Release::V2_9),
    ("v2-10", Release::V2_10),
];

fn node(name: &str, cards: u32) -> Node {
    (0..cards).fold(Node::new(name), |node, index| {
        node.card(Card::new(&format!("GPU-{name}-{index}"), index, 16_384))
    })
}

/// An init container, a sidecar, a container without a card and one with two, all on one node.
fn many_containers(name: &str, node: &str) -> Value {
    let container = |name: &str, cards: &str| {
        let limits =
            json!({"nvidia.com/gpu": cards, "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "10"});
        json!({"name": name, "image": "train", "resources": {"limits": limits}})
    };
    let mut pod = pod(name, &json!({}));
    let mut sidecar = container("sidecar", "1");
    sidecar["restartPolicy"] = json!("Always");
    pod["spec"]["initContainers"] =
        json!([{"name": "plain", "image": "train"}, container("init", "2"), sidecar]);
    pod["spec"]["containers"] = json!([{"name": "log", "image": "train"}, container("main", "2")]);
    pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node});
    pod
}

pub(crate) async fn every_release_of_a_plugin_is_served(floor: Floor) {
    let mut nodes: Vec<Node> = RELEASES.map(|(name, release)| node(name, 2).hami(release)).to_vec();
    nodes.push(volcano_node("volcano", 2));
    let Some(world) = World::start(floor, nodes).await else { return };
    for (name, _) in RELEASES {
        world.create(many_containers(&format!("many-{name}"), name)).await;
        let mut next =
            pod(&format!("next-{name}"), &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
        next["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": name});
        world.create(next).await;
    }
    world
        .create(pod("vgpu", &json!({"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "1000"})))
        .await;
    for (name, _) in RELEASES {
        assert_eq!(node_of(&world.running(&format!("many-{name}")).await), name);
        assert_eq!(node_of(&world.running(&format!("next-{name}")).await), name);
    }
    assert_eq!(node_of(&world.running("vgpu").await), "volcano");
    assert_eq!(world.fleet.rejected(), 0);
    world.agents_are_content();
}

pub(crate) async fn linked_cards_go_together(floor: Floor) {
    let linked = node("gpu-1", 4)
        .link("GPU-gpu-1-0", "GPU-gpu-1-1", 10)
        .link("GPU-gpu-1-0", "GPU-gpu-1-2", 10)
        .link("GPU-gpu-1-0", "GPU-gpu-1-3", 100)
        .link("GPU-gpu-1-1", "GPU-gpu-1-2", 300)
        .link("GPU-gpu-1-1", "GPU-gpu-1-3", 10)
        .link("GPU-gpu-1-2", "GPU-gpu-1-3", 10);
    let Some(world) = World::start(floor, vec![linked.hami(Release::V2_10)]).await else { return };
    let pair = |name: &str| {
        let mut pair = pod(name, &json!({"nvidia.com/gpu": "2"}));
        pair["metadata"]["annotations"] = json!({"hami.io/gpu-scheduler-policy": "topology-aware"});
        pair
    };
    let cards = |pod: &k8s_openapi::api::core::v1::Pod| -> Vec<String> {
        let text = annotation(pod, "hami.io/vgpu-devices-allocated");
        let mut cards: Vec<_> =
            text.split([':', ';']).filter_map(|share| Some(share.split_once(',')?.0.to_owned())).collect();
        cards.sort();
        cards
    };
    world.create(pair("fast")).await;
    assert_eq!(cards(&world.running("fast").await), ["GPU-gpu-1-1", "GPU-gpu-1-2"]);
    world.create(pair("rest")).await;
    assert_eq!(cards(&world.running("rest").await), ["GPU-gpu-1-0", "GPU-gpu-1-3"]);
    world.agents_are_content();
}
