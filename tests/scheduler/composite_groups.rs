//! CompositePodGroups of Kubernetes, from the objects as the API server has them to the nodes of the pods.

use berth::{
    cluster::read::group::pod_group,
    config::Config,
    scheduling::{
        Event, ObjectChange,
        model::kind::{Kind, PodGroupKind},
        world::object::Object,
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, node, parsed, pod};

/// A node with so many cards of 16 GiB in this zone and rack.
fn gpu_node(name: &str, cards: usize, zone: &str, rack: &str) -> Value {
    let card = |at: usize| {
        json!({"id": format!("GPU-{name}-{at}"), "index": at, "count": 10, "devmem": 16384, "devcore": 100,
            "type": "NVIDIA A100", "mode": "hami-core", "health": true})
    };
    let cards: Vec<_> = (0..cards).map(card).collect();
    let mut node = node(name, &json!({"hami.io/node-nvidia-register": json!(cards).to_string()}));
    node["metadata"]["labels"] = json!({"zone": zone, "rack": rack});
    node
}

fn group(kind: PodGroupKind, name: &str, spec: &Value) -> Object {
    let metadata = json!({"name": name, "namespace": "team-a", "uid": format!("uid-{name}")});
    pod_group(kind, &parsed(&json!({"metadata": metadata, "spec": spec})))
}

/// A CompositePodGroup of at least so many groups.
fn composite(name: &str, least: usize, spec: &Value) -> Object {
    let mut spec = spec.clone();
    spec["schedulingPolicy"] = json!({"gang": {"minGroupCount": least}});
    group(PodGroupKind::Composite, name, &spec)
}

/// A PodGroup of at least so many pods in this CompositePodGroup.
fn leaf(name: &str, parent: &str, least: usize, key: Option<&str>) -> Object {
    let mut spec =
        json!({"parentCompositePodGroupName": parent, "schedulingPolicy": {"gang": {"minCount": least}}});
    if let Some(key) = key {
        spec["schedulingConstraints"] = json!({"topology": [{"key": key}]});
    }
    group(PodGroupKind::Kubernetes, name, &spec)
}

/// A scheduler that knows these groups.
fn machine(nodes: &[Value], groups: Vec<Object>) -> Machine {
    let mut machine = Machine::with_gangs(&Config::default(), nodes);
    let (composites, leaves): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|group| group.kind() == Kind::PodGroup(PodGroupKind::Composite));
    let listed = [
        (PodGroupKind::Volcano, Vec::new()),
        (PodGroupKind::Kubernetes, leaves),
        (PodGroupKind::Composite, composites),
    ];
    for (kind, objects) in listed {
        machine.tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(kind), objects)));
    }
    machine
}

/// A pod of this PodGroup that asks for so much of a card.
fn member(group: &str, name: &str, memory: usize) -> Value {
    let limits = json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "cpu": "1m"});
    let mut pod = pod(name, &limits);
    pod["metadata"]["namespace"] = json!("team-a");
    pod["spec"]["schedulingGroup"] = json!({"podGroupName": group});
    pod
}

fn node_of(machine: &Machine, pod: &str) -> Option<String> {
    let ledger = machine.scheduler().snapshot().ledger();
    ledger.get(&pod.into()).map(|charge| charge.node.to_string())
}

#[test]
fn the_pods_of_all_levels_are_placed_together_each_group_where_its_label_says() {
    let nodes = [
        gpu_node("a1", 2, "a", "a"),
        gpu_node("b1", 2, "b", "b1"),
        gpu_node("b2", 1, "b", "b2"),
        gpu_node("b3", 1, "b", "b2"),
    ];
    let in_zone = json!({"schedulingConstraints": {"topology": [{"key": "zone"}]}});
    let groups = vec![
        composite("llm", 2, &in_zone),
        composite("shards", 2, &json!({"parentCompositePodGroupName": "llm"})),
        leaf("router", "llm", 1, None),
        leaf("prefill", "shards", 2, Some("rack")),
        leaf("decode", "shards", 2, Some("rack")),
    ];
    let mut machine = machine(&nodes, groups);
    for (group, pod) in [("prefill", "p0"), ("prefill", "p1"), ("decode", "d0"), ("decode", "d1")] {
        machine.show_pod(&member(group, pod, 12_000));
    }
    machine.settle();
    assert_eq!(node_of(&machine, "p0"), None, "the router is missing");
    machine.show_pod(&member("router", "r", 1_000));
    machine.settle();
    let at = |pod: &str| node_of(&machine, pod).unwrap_or_else(|| panic!("{pod} is not placed"));
    let rack = |pod: &str| if at(pod) == "b1" { "b1" } else { "b2" };
    assert!(["p0", "p1", "d0", "d1", "r"].iter().all(|pod| at(pod).starts_with('b')), "all are in zone b");
    assert!(rack("p0") == rack("p1") && rack("d0") == rack("d1") && rack("p0") != rack("d0"));
}

#[test]
fn a_tree_is_placed_whatever_the_order_in_which_its_groups_and_pods_arrive() {
    let arrivals = || {
        let of_group = |object: Object| Event::Object(ObjectChange::Seen(object));
        [
            of_group(composite("llm", 2, &json!({}))),
            of_group(leaf("prefill", "llm", 1, None)),
            of_group(leaf("decode", "llm", 1, None)),
        ]
    };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for pods_first in [true, false] {
            let mut machine = machine(&[gpu_node("n1", 1, "a", "a")], Vec::new());
            let show = |machine: &mut Machine| {
                machine.show_pod(&member("prefill", "p", 1_000));
                machine.show_pod(&member("decode", "d", 1_000));
                machine.settle();
            };
            if pods_first {
                show(&mut machine);
            }
            for at in order {
                assert_eq!((node_of(&machine, "p"), node_of(&machine, "d")), (None, None), "{order:?}");
                let [first, second, third] = arrivals();
                machine.tell(match at {
                    0 => first,
                    1 => second,
                    _ => third,
                });
                machine.settle();
            }
            if !pods_first {
                show(&mut machine);
            }
            assert!(node_of(&machine, "p").is_some() && node_of(&machine, "d").is_some(), "{order:?}");
        }
    }
}
