//! Nodes that are kept for nominated pods, and the quota of their namespace: together with what is used they stay within it.

use berth::{
    config::Config,
    scheduling::{Effect, Event, ObjectChange, PodChange, QuotaChange, WriteOutcome, model::kind::Kind},
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, heard, node, parsed, pod, told};

fn gpu_node(name: &str) -> Value {
    let card = |at: usize| {
        json!({"id": format!("GPU-{name}-{at}"), "index": at, "count": 10, "devmem": 16000, "devcore": 100,
            "type": "NVIDIA A100", "mode": "hami-core", "health": true})
    };
    let cards: Vec<_> = (0..8).map(card).collect();
    node(name, &json!({"hami.io/node-nvidia-register": json!(cards).to_string()}))
}

/// A pod of this namespace and priority that asks for so many whole cards.
fn cards(namespace: &str, name: &str, priority: i32, count: usize) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": count.to_string(), "nvidia.com/gpumem": "16000"}));
    pod["metadata"]["namespace"] = json!(namespace);
    pod["spec"]["priority"] = json!(priority);
    pod
}

/// A pod of another user that holds all cards of the node.
fn full(node: &str) -> Value {
    let shares: Vec<_> = (0..8).map(|at| format!("GPU-{node}-{at},NVIDIA,16000,0:")).collect();
    let annotations = json!({"hami.io/vgpu-node": node, "hami.io/bind-phase": "success",
        "hami.io/vgpu-devices-allocated": format!("{};", shares.concat())});
    bound(cards("other", &format!("low-{node}"), 0, 8), node, annotations)
}

/// Nodes of eight cards, those `held` by another user, and a quota of eight cards' memory for the namespace `greedy`.
fn machine(nodes: &[&str], held: &[&str]) -> Machine {
    let nodes: Vec<_> = nodes.iter().map(|name| gpu_node(name)).collect();
    let pods: Vec<_> = held.iter().map(|name| full(name)).collect();
    let mut machine = Machine::new(&Config::default(), &nodes, &pods);
    machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
    let hard = json!({"limits.nvidia.com/gpumem": (8 * 16000).to_string()});
    let quota = json!({"metadata": {"name": "team", "namespace": "greedy"}, "spec": {"hard": hard}});
    let seen = Event::Quota(QuotaChange::Seen(machine.reader().quota(&parsed(&quota)).0));
    machine.tell(seen);
    machine
}

/// Writes what is nominated; victims stay, as in a long grace period. Returns the pods that are to go, and all that was to be done.
fn nominate(machine: &mut Machine) -> (Vec<String>, Vec<Effect>) {
    let (mut victims, mut all) = (Vec::new(), Vec::new());
    loop {
        let (effects, _) = machine.run();
        if effects.is_empty() {
            return (victims, all);
        }
        for effect in &effects {
            match effect.clone() {
                Effect::Nominate { pod, node, room } => {
                    let outcome = WriteOutcome::Written { resource_version: "1".to_owned() };
                    machine.tell(Event::Nominated { pod, node, room, outcome });
                }
                Effect::Preempt { pod, .. } => victims.push(pod.name.to_string()),
                Effect::TellUnschedulable { pod, reason, .. } => machine.tell(heard(pod, &reason)),
                _ => {}
            }
        }
        all.extend(effects);
    }
}

/// The pods for which a node is kept.
fn nominated<'a>(machine: &Machine, pods: &[&'a str]) -> Vec<&'a str> {
    let nominations = machine.scheduler().snapshot().nominations();
    pods.iter().copied().filter(|pod| nominations.node_of(&(*pod).into()).is_some()).collect()
}

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

#[test]
fn a_namespace_has_no_more_nodes_kept_for_it_than_its_quota_has_room_for() {
    let mut machine = machine(&NODES, &NODES);
    let (mut victims, mut effects) = (Vec::new(), Vec::new());
    for (name, priority) in [("a", 10), ("b", 20), ("c", 30), ("d", 40)] {
        machine.show_pod(&cards("greedy", name, priority, 8));
        let (more, said) = nominate(&mut machine);
        victims.extend(more);
        effects.extend(said);
    }
    assert_eq!(nominated(&machine, &["a", "b", "c", "d"]), ["a"]);
    assert_eq!(victims.len(), 1, "one node is emptied, and not one for each priority: {victims:?}");
    let said = told(&effects, "d");
    let quota = "preemption: exceeded quota: team, requested: limits.nvidia.com/gpumem=128000, \
                 used: limits.nvidia.com/gpumem=128000, limited: limits.nvidia.com/gpumem=128000";
    assert!(said.contains(quota) && said.contains("kept for nominated pods"), "{said}");
    // A pod of a namespace without a quota preempts as ever.
    machine.show_pod(&cards("third", "probe", 10, 8));
    assert_eq!(nominate(&mut machine).0.len(), 1);
}

#[test]
fn a_pod_that_the_quota_of_nominated_pods_kept_from_preempting_is_decided_again_when_one_is_gone() {
    let mut machine = machine(&NODES, &NODES);
    machine.show_pod(&cards("greedy", "a", 10, 8));
    machine.show_pod(&cards("greedy", "b", 20, 4));
    nominate(&mut machine);
    let first = nominated(&machine, &["a", "b"]);
    assert_eq!(first, ["b"], "they are decided by priority");
    machine.tell(Event::Pod(PodChange::Ended("b".into())));
    nominate(&mut machine);
    // The victims of the first are still there, and its namespace has had them go in vain.
    machine.pass(10);
    nominate(&mut machine);
    assert_eq!(nominated(&machine, &["a"]), ["a"]);
}

#[test]
fn what_is_kept_is_given_up_when_another_pod_of_the_namespace_takes_the_quota() {
    let mut machine = machine(&["n1", "n2"], &["n1", "n2"]);
    machine.show_pod(&cards("greedy", "a", 10, 8));
    nominate(&mut machine);
    assert_eq!(nominated(&machine, &["a"]), ["a"]);
    let node = machine.scheduler().snapshot().nominations().node_of(&"a".into()).unwrap().clone();
    let other = if &*node == "n1" { "n2" } else { "n1" };
    machine.tell(Event::Pod(PodChange::Ended(format!("low-{other}").as_str().into())));
    machine.show_pod(&cards("greedy", "b", 20, 8));
    let (_, effects) = nominate(&mut machine);
    assert!(machine.scheduler().snapshot().ledger().get(&"b".into()).is_some(), "{effects:?}");
    assert_eq!(nominated(&machine, &["a"]), [""; 0], "eight cards of eight are used");
    assert!(told(&effects, "a").starts_with("exceeded quota: team"), "{effects:?}");
}

/// A node with a card of the namespace's own pod of low priority, for another pod of which the node is kept; and the pod of another user.
fn kept_beside(victim_of: &str) -> Machine {
    let mut machine = machine(&["n1"], &[]);
    let annotations = json!({"hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success",
        "hami.io/vgpu-devices-allocated": "GPU-n1-0,NVIDIA,16000,0:;"});
    machine.show_pod(&bound(cards(victim_of, "low", -1, 1), "n1", annotations));
    machine.show_pod(&cards("greedy", "a", 0, 8));
    assert_eq!(nominate(&mut machine).0, ["low"]);
    machine.show_pod(&cards("other", "probe", 0, 2));
    nominate(&mut machine);
    machine
}

fn is_placed(machine: &Machine, pod: &str) -> bool {
    machine.scheduler().snapshot().ledger().get(&pod.into()).is_some()
}

#[test]
fn free_cards_are_kept_for_half_a_minute_where_only_the_namespaces_own_pods_are_to_go() {
    let mut machine = kept_beside("greedy");
    machine.pass(29);
    nominate(&mut machine);
    assert!(!is_placed(&machine, "probe"), "as in kube-scheduler");
    machine.pass(1);
    nominate(&mut machine);
    assert!(is_placed(&machine, "probe"));
    assert_eq!(nominated(&machine, &["a"]), [""; 0]);
}

#[test]
fn what_pods_of_others_are_deleted_for_is_kept_until_they_are_gone() {
    let mut machine = kept_beside("third");
    machine.pass(300);
    nominate(&mut machine);
    assert!(!is_placed(&machine, "probe"), "those pods must not have gone in vain");
    assert_eq!(nominated(&machine, &["a"]), ["a"]);
}

#[test]
fn a_pod_may_preempt_others_of_its_own_namespace_within_the_quota() {
    let mut machine = machine(&["n1"], &[]);
    let mut low = full("n1");
    low["metadata"]["namespace"] = json!("greedy");
    machine.show_pod(&low);
    machine.show_pod(&cards("greedy", "a", 10, 8));
    assert_eq!(nominate(&mut machine).0, ["low-n1"]);
    assert_eq!(nominated(&machine, &["a"]), ["a"]);
}
