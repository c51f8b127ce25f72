//! Attempts to place a gang that take more than one turn of the loop: what they cost others is bounded, and the gang is placed all the same.

use std::collections::BTreeSet;

use berth::{
    cluster::read::group::pod_group,
    config::Config,
    scheduling::{
        Effect, Event, Finding, NodeChange, ObjectChange, PodChange,
        model::{
            kind::{Kind, PodGroupKind},
            steps::PER_MILLISECOND,
        },
    },
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, node, parsed, pod};

/// 100 ms, in steps: what no gang may cost another user's pod.
const MOST: u64 = 100 * PER_MILLISECOND;

/// What a turn decides, and with that a search that has begun in it: about 50 ms.
const A_TURN: u64 = MOST / 2;

fn gpu_node(at: usize) -> Value {
    let card = |card: usize| {
        json!({"id": format!("GPU-{at}-{card}"), "index": card, "count": 10, "devmem": 81920, "devcore": 100,
            "type": "NVIDIA-H100", "mode": "hami-core", "health": true})
    };
    let cards: Vec<_> = (0..8).map(card).collect();
    let mut node =
        node(&format!("n{at:03}"), &json!({"hami.io/node-nvidia-register": json!(cards).to_string()}));
    node["metadata"]["labels"] = json!({"kubernetes.io/hostname": format!("n{at:03}")});
    node
}

/// A pod that asks for so much of one card.
fn share(namespace: &str, name: &str, memory: usize) -> Value {
    let mut pod =
        pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "cpu": "1m"}));
    pod["metadata"]["namespace"] = json!(namespace);
    pod
}

/// The pods of a gang, each of a class of its own, to which no node is like another since it asks for their names.
fn gang(memory: impl Fn(usize) -> usize, size: usize) -> Vec<Value> {
    let member = |at: usize| {
        let mut pod = share("greedy", &format!("g{at}"), memory(at));
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "gang"});
        let named = json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]});
        let required = json!({"nodeSelectorTerms": [named]});
        pod["spec"]["affinity"] =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        pod
    };
    (0..size).map(member).collect()
}

/// 200 nodes, and the PodGroup of a gang of so many.
fn cluster(size: usize, annotations: &Value) -> Machine {
    let nodes: Vec<_> = (0..200).map(gpu_node).collect();
    let mut machine = Machine::with_gangs(&Config::default(), &nodes);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    let metadata = json!({"name": "gang", "namespace": "greedy", "annotations": annotations});
    let group = json!({"metadata": metadata, "spec": {"minMember": size}});
    machine.tell(Event::Object(ObjectChange::Listed(
        Kind::PodGroup(PodGroupKind::Volcano),
        vec![pod_group(PodGroupKind::Volcano, &parsed(&group))],
    )));
    machine.settle();
    machine
}

fn is_placed(machine: &Machine, name: &str) -> bool {
    machine.scheduler().snapshot().ledger().get(&name.into()).is_some()
}

/// Turns the loop until nothing is left to decide at once. Another user's pod comes after each turn of the first: it must have its place in the next.
/// Returns how many turns there were.
fn turn(machine: &mut Machine) -> usize {
    machine.take_steps();
    for turns in 1..200 {
        machine.settle();
        let steps = machine.take_steps().into_iter().max().unwrap_or_default();
        assert!(steps < A_TURN, "turn {turns} takes {steps} of {A_TURN} steps");
        if turns <= 5 {
            let probe = format!("probe{turns}");
            machine.show_pod(&share("other", &probe, 1000));
            machine.settle();
            let steps = machine.take_steps().into_iter().max().unwrap_or_default();
            assert!(steps < A_TURN, "the turn of {probe} takes {steps} of {A_TURN} steps");
            assert!(is_placed(machine, &probe), "{probe} has its place in the turn after it comes");
        }
        if machine.scheduler().view().standing(machine.now()).active == 0 {
            return turns;
        }
        // While pods of others are on their way, the namespace has a part of the time.
        machine.pass(1);
    }
    panic!("the gang is never decided");
}

#[test]
fn a_large_gang_is_placed_in_several_turns_and_holds_up_no_pod_of_another_namespace() {
    let mut machine = cluster(300, &json!({}));
    for pod in gang(|at| 41_000 + at, 300) {
        machine.show_pod(&pod);
    }
    let turns = turn(&mut machine);
    assert!(turns > 1, "one attempt takes more than a turn: {turns}");
    let placed = (0..300).filter(|at| is_placed(&machine, &format!("g{at}"))).count();
    assert_eq!(placed, 300);
}

/// Each node is a domain of its own, and none has room for all.
#[test]
fn a_gang_that_must_share_one_of_many_domains_holds_up_no_pod_of_another_namespace() {
    let mut machine = cluster(12, &json!({"berth.dev/required-topology": "kubernetes.io/hostname"}));
    for pod in gang(|at| 41_000 + at, 12) {
        machine.show_pod(&pod);
    }
    let turns = turn(&mut machine);
    assert!(turns > 1, "one attempt takes more than a turn: {turns}");
    assert!(!(0..12).any(|at| is_placed(&machine, &format!("g{at}"))));
}

/// Each of the hundred PodGroups of a CompositePodGroup shares a node, and all are in one zone.
#[test]
fn a_large_tree_of_groups_is_placed_in_several_turns_and_holds_up_no_pod_of_another_namespace() {
    let mut machine = cluster(1, &json!({}));
    let of = |kind, name: &str, spec: &Value| {
        let metadata = json!({"name": name, "namespace": "greedy"});
        pod_group(kind, &parsed(&json!({"metadata": metadata, "spec": spec})))
    };
    let on = |key: &str| json!({"topology": [{"key": key}]});
    let leaf = json!({"parentCompositePodGroupName": "tree", "schedulingPolicy": {"gang": {"minCount": 3}},
        "schedulingConstraints": on("kubernetes.io/hostname")});
    let leaves = (0..100).map(|at| of(PodGroupKind::Kubernetes, &format!("leaf{at}"), &leaf)).collect();
    let root =
        json!({"schedulingPolicy": {"gang": {"minGroupCount": 100}}, "schedulingConstraints": on("zone")});
    let root = of(PodGroupKind::Composite, "tree", &root);
    for at in 0..200 {
        let mut node = gpu_node(at);
        node["metadata"]["labels"]["zone"] = json!(if at < 10 { "small" } else { "large" });
        let node = machine.reader().node(&parsed(&node)).0;
        machine.tell(Event::Node(NodeChange::Seen(Box::new(node))));
    }
    for (kind, groups) in [(PodGroupKind::Kubernetes, leaves), (PodGroupKind::Composite, vec![root])] {
        machine.tell(Event::Object(ObjectChange::Listed(Kind::PodGroup(kind), groups)));
    }
    for (at, mut pod) in gang(|at| 41_000 + at, 300).into_iter().enumerate() {
        pod["metadata"]["annotations"] = json!({});
        pod["spec"]["schedulingGroup"] = json!({"podGroupName": format!("leaf{}", at / 3)});
        machine.show_pod(&pod);
    }
    let turns = turn(&mut machine);
    assert!(turns > 1, "one attempt takes more than a turn: {turns}");
    let node = |at: usize| {
        let ledger = machine.scheduler().snapshot().ledger();
        ledger.get(&format!("g{at}").as_str().into()).map(|charge| charge.node.to_string())
    };
    for at in 0..300 {
        let first = node(at - at % 3);
        assert!(first.as_ref().is_some_and(|node| **node >= *"n010"), "g{at}: {first:?}");
        assert_eq!(node(at), first, "g{at}");
    }
}

/// Every card is held by pods of lower priority, and each pod of the gang asks for all cards of a node.
#[test]
fn a_gang_that_preempts_many_pods_holds_up_no_pod_of_another_namespace() {
    let mut machine = cluster(40, &json!({}));
    for at in 0..200 {
        let shares: Vec<_> = (0..8).map(|card| format!("GPU-{at}-{card},NVIDIA,80000,0:")).collect();
        let node = format!("n{at:03}");
        let annotations = json!({"hami.io/vgpu-node": node, "hami.io/bind-phase": "success",
            "hami.io/vgpu-devices-allocated": format!("{};", shares.concat())});
        let limits = json!({"nvidia.com/gpu": "8", "nvidia.com/gpumem": "80000"});
        let mut low = pod(&format!("low{at}"), &limits);
        low["spec"]["priority"] = json!(0);
        machine.show_pod(&bound(low, &node, annotations));
    }
    for mut pod in gang(|at| 41_000 + at, 40) {
        pod["spec"]["priority"] = json!(100);
        pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("8");
        machine.show_pod(&pod);
    }
    let turns = turn(&mut machine);
    assert!(turns > 1, "one attempt takes more than a turn: {turns}");
    let nominations = machine.scheduler().snapshot().nominations();
    let nominated = (0..40).filter(|at| nominations.node_of(&format!("g{at}").into()).is_some()).count();
    assert_eq!(nominated, 40);
}

/// In each zone of five nodes are pods of lower priority on all of them, and the pods of the gang share a zone with none of these.
#[test]
fn a_gang_that_clears_a_zone_is_placed_and_holds_up_no_pod_of_another_namespace() {
    let mut machine = cluster(8, &json!({}));
    for at in 0..200 {
        let mut node = gpu_node(at);
        node["metadata"]["labels"]["zone"] = json!(format!("z{:02}", at / 5));
        machine.show_node(&node);
        for card in 0..5 {
            let annotations = json!({"hami.io/vgpu-node": format!("n{at:03}"), "hami.io/bind-phase": "success",
                "hami.io/vgpu-devices-allocated": format!("GPU-{at}-{card},NVIDIA,1000,0:;")});
            let mut low = share("other", &format!("low{at}-{card}"), 1000);
            low["metadata"]["labels"] = json!({"app": "noisy"});
            low["spec"]["priority"] = json!(0);
            machine.show_pod(&bound(low, &format!("n{at:03}"), annotations));
        }
    }
    let term = json!({"labelSelector": {"matchLabels": {"app": "noisy"}}, "namespaces": ["other"], "topologyKey": "zone"});
    for mut pod in gang(|_| 41_000, 8) {
        pod["spec"]["priority"] = json!(100);
        pod["spec"]["affinity"]["podAntiAffinity"] =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        machine.show_pod(&pod);
    }
    turn(&mut machine);
    let nominations = machine.scheduler().snapshot().nominations();
    let node_of = |at: usize| nominations.node_of(&format!("g{at}").into()).cloned();
    let zones: BTreeSet<usize> =
        (0..8).filter_map(node_of).map(|node| node[1..].parse::<usize>().unwrap() / 5).collect();
    assert_eq!((0..8).filter_map(node_of).count(), 8);
    for at in (0..200).filter(|at| zones.contains(&(at / 5))) {
        for card in 0..5 {
            machine.tell(Event::Pod(PodChange::Gone(format!("low{at}-{card}").as_str().into())));
        }
    }
    for _ in 0..20 {
        machine.settle();
        machine.pass(1);
    }
    assert_eq!((0..8).filter(|at| is_placed(&machine, &format!("g{at}"))).count(), 8);
}

/// What changes while the attempt is under way wakes nobody, since its pods do not wait yet: they are decided again.
#[test]
fn room_that_comes_during_a_long_attempt_is_not_missed() {
    let mut machine = cluster(299, &json!({}));
    let mut pods = gang(|_| 41_000, 300);
    for (at, pod) in pods.iter_mut().enumerate() {
        // As large as the others, and a class of its own.
        pod["spec"]["tolerations"] = json!([{"key": format!("of-{at}"), "operator": "Exists"}]);
    }
    // The first finds no node before one comes that the first turn did not have, and the last never does.
    pods[0]["spec"]["nodeSelector"] = json!({"disk": "fast"});
    pods[299]["spec"]["nodeSelector"] = json!({"disk": "none"});
    for pod in &pods {
        machine.show_pod(pod);
    }
    machine.settle();
    assert!(
        machine.scheduler().view().standing(machine.now()).active > 0,
        "the attempt takes more than a turn"
    );
    let mut fast = gpu_node(200);
    fast["metadata"]["labels"]["disk"] = json!("fast");
    let fast = machine.reader().node(&parsed(&fast)).0;
    machine.tell(Event::Node(NodeChange::Seen(Box::new(fast))));
    let mut turns = 0;
    while !is_placed(&machine, "g0") {
        let effects = machine.settle();
        // An audit would find the pods that wait although they have room.
        assert!(
            !effects
                .iter()
                .any(|effect| matches!(effect, Effect::ReportFinding { finding: Finding::Drift(_), .. })),
            "{effects:?}"
        );
        turns += 1;
        assert!(turns < 60, "the gang is not decided again");
        if machine.scheduler().view().standing(machine.now()).active == 0 {
            machine.pass(1);
        }
    }
    assert_eq!((0..300).filter(|at| is_placed(&machine, &format!("g{at}"))).count(), 299);
}
