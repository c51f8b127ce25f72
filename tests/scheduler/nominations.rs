//! Pods beside others that wait for room on a node that is kept for them.

use berth::{
    config::Config,
    scheduling::{Effect, Event, ObjectChange, PodChange, WriteOutcome, model::kind::Kind},
};
use serde_json::{Value, json};

use super::machine::{Machine, bound, node, pod};

/// The same node under another name.
fn named(name: &str) -> Value {
    let mut node = hami_node();
    node["metadata"]["name"] = json!(name);
    node
}

/// A node with 64 cpus and a free card.
fn hami_node() -> Value {
    let card = json!([{"id": "GPU-a", "index": 0, "count": 10, "devmem": 16000, "devcore": 100,
        "type": "NVIDIA A100", "mode": "hami-core", "health": true}]);
    node("n1", &json!({"hami.io/node-nvidia-register": card.to_string()}))
}

fn share(name: &str, priority: i32) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000", "cpu": "10"}));
    pod["spec"]["priority"] = json!(priority);
    pod
}

/// A pod of another scheduler that waits for 60 cpus of the node.
fn nominated(priority: i32) -> Value {
    let mut pod = pod("first", &json!({"cpu": "60"}));
    pod["spec"]["schedulerName"] = json!("default-scheduler");
    pod["spec"]["priority"] = json!(priority);
    pod["status"] = json!({"nominatedNodeName": "n1"});
    pod
}

fn machine(priority: i32) -> Machine {
    let mut machine = Machine::new(&Config::default(), &[hami_node()], &[]);
    machine.show_pod(&nominated(priority));
    machine
}

#[test]
fn room_that_is_kept_for_a_pod_of_no_lower_priority_is_not_given_away() {
    for priority in [5, 9] {
        let mut machine = machine(priority);
        machine.show_pod(&share("p", 5));
        assert_eq!(machine.run().1, [], "{priority}");
        machine.tell(Event::Pod(PodChange::Gone("first".into())));
        assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())], "{priority}");
    }
}

#[test]
fn room_that_is_kept_for_a_pod_of_lower_priority_is_free() {
    let mut machine = machine(4);
    machine.show_pod(&share("p", 5));
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_node_is_free_again_once_it_is_no_longer_kept() {
    let mut machine = machine(9);
    machine.show_pod(&share("p", 5));
    assert_eq!(machine.run().1, []);
    let mut elsewhere = nominated(9);
    elsewhere["status"] = json!({});
    machine.show_pod(&elsewhere);
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_node_that_is_kept_for_a_pod_is_its_own() {
    let mut machine = Machine::new(&Config::default(), &[hami_node()], &[]);
    let mut own = share("p", 5);
    own["status"] = json!({"nominatedNodeName": "n1"});
    machine.show_pod(&own);
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_pods_own_nomination_comes_before_better_nodes() {
    // Both nodes score alike, and the first by name would be taken.
    let (nodes, nominated) = ([named("n1"), named("n2")], Some("n2"));
    for (own, place) in [(None, "n1"), (nominated, "n2"), (Some("gone"), "n1")] {
        let mut machine = Machine::new(&Config::default(), &nodes, &[]);
        let mut pod = share("p", 5);
        pod["status"] = json!({"nominatedNodeName": own});
        machine.show_pod(&pod);
        assert_eq!(machine.run().1, [("p".to_owned(), place.to_owned())], "{own:?}");
    }
}

#[test]
fn a_nominated_node_that_does_not_fit_is_passed_over() {
    let mut other = named("n2");
    other["spec"]["unschedulable"] = json!(true);
    let mut machine = Machine::new(&Config::default(), &[hami_node(), other], &[]);
    let mut pod = share("p", 5);
    pod["status"] = json!({"nominatedNodeName": "n2"});
    machine.show_pod(&pod);
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn no_pod_counts_for_a_spread_constraint_that_selects_every_pod_not_even_a_nominated_one() {
    let labelled = |name: &str| {
        let mut node = named(name);
        node["metadata"]["labels"] = json!({"kubernetes.io/hostname": name});
        node
    };
    let mut closed = labelled("n2");
    closed["spec"]["unschedulable"] = json!(true);
    let mut machine = Machine::new(&Config::default(), &[labelled("n1"), closed], &[]);
    let mut kept = nominated(9);
    kept["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    machine.show_pod(&kept);
    let mut pod = share("p", 5);
    pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]);
    machine.show_pod(&pod);
    assert_eq!(machine.run().1, [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_pod_that_a_node_is_kept_for_keeps_others_away() {
    let mut node = hami_node();
    node["metadata"]["labels"] = json!({"kubernetes.io/hostname": "n1"});
    let mut machine = Machine::new(&Config::default(), &[node], &[]);
    let mut kept = nominated(9);
    kept["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1"}});
    kept["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "noisy"}}}]}});
    machine.show_pod(&kept);
    let mut noisy = share("noisy", 5);
    noisy["metadata"]["labels"] = json!({"app": "noisy"});
    machine.show_pod(&noisy);
    machine.show_pod(&share("quiet", 5));
    assert_eq!(machine.run().1, [("quiet".to_owned(), "n1".to_owned())]);
}

/// The nominated pod has the second card, which is the fuller one once all that end are gone. Beside the other pod on the first card, that one is
/// fuller: it would have that, where both have room only once a pod is gone. So the other pod has a place without itself, and none beside itself.
/// Decided without end, it would keep this test from ending.
#[test]
fn a_pod_beside_which_a_nominated_one_chooses_another_card_is_not_decided_without_end() {
    let card = |at: usize| {
        json!({"id": format!("GPU-{at}"), "index": at, "count": 10, "devmem": 16384, "devcore": 100,
            "type": "NVIDIA A100", "mode": "hami-core", "health": true})
    };
    let cards = json!([card(0), card(1)]).to_string();
    let node = node("n1", &json!({"hami.io/node-nvidia-register": cards}));
    let mut machine = Machine::new(&Config::default(), &[node], &[]);
    let asking = |name: &str, memory: u32| {
        let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string()}));
        pod["spec"]["priority"] = json!(5);
        pod
    };
    let holds = |name: &str, card: usize, memory: u32| {
        let record = json!({"hami.io/vgpu-devices-allocated": format!("GPU-{card},NVIDIA,{memory},0:;"),
            "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success"});
        bound(asking(name, memory), "n1", record)
    };
    let ending = |mut pod: Value| {
        pod["metadata"]["deletionTimestamp"] = json!("2100-01-01T00:00:00Z");
        pod
    };
    machine.show_pod(&ending(holds("ending", 0, 12_000)));
    machine.show_pod(&ending(holds("ending-too", 1, 10_000)));
    machine.show_pod(&holds("stays", 1, 3000));
    let mut kept_for = asking("kept-for", 9000);
    kept_for["status"] = json!({"nominatedNodeName": "n1"});
    kept_for["metadata"]["annotations"] = json!({"hami.io/gpu-scheduler-policy": "binpack"});
    machine.show_pod(&kept_for);
    machine.settle();
    let kept = |machine: &Machine| {
        let nominations = machine.scheduler().snapshot().nominations().clone();
        let shares = nominations.cards(&"kept-for".into()).iter().flat_map(|kept| kept.assignment.shares());
        shares.map(|share| share.card.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(kept(&machine), ["GPU-1"]);
    machine.take_decisions();
    machine.show_pod(&asking("other", 4000));
    let effects = machine.settle();
    assert_eq!(kept(&machine), ["GPU-0"], "beside the other pod");
    let is_lock = |effect: &&Effect| matches!(effect, Effect::TakeLock { pod, .. } if &*pod.name == "other");
    assert_eq!(effects.iter().filter(is_lock).count(), 1, "{effects:?}");
    assert_eq!(machine.take_decisions(), (1, 0), "it is decided once");
}

/// A node on which each two of three pods fit, but not all three: `low` is bound there, `second` needs its cpu, and `third` its part of a card.
struct Contested {
    machine: Machine,
    low: Value,
}

impl Contested {
    fn new() -> Self {
        let annotations = json!({"hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success",
            "hami.io/vgpu-devices-allocated": "GPU-a,NVIDIA,6000,0:;"});
        let low = bound(third_of_card("low", 0, "60"), "n1", annotations);
        let mut machine = Machine::new(&Config::default(), &[hami_node()], std::slice::from_ref(&low));
        machine.tell(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())));
        Self { machine, low }
    }

    /// Carries out what is to be done, nominations too; returns the pods bound.
    fn run(&mut self) -> Vec<(String, String)> {
        let (effects, placed) = self.machine.run();
        for effect in effects {
            if let Effect::Nominate { pod, node, room } = effect {
                let outcome = WriteOutcome::Written { resource_version: "1".to_owned() };
                self.machine.tell(Event::Nominated { pod, node, room, outcome });
            }
        }
        placed
    }

    /// `second` comes, for which `low` goes, which takes its time.
    fn preempt(&mut self) {
        self.machine.show_pod(&third_of_card("second", 5, "10"));
        assert_eq!(self.run(), []);
        self.low["metadata"]["deletionTimestamp"] = json!("2026-11-21T12:00:00Z");
        self.machine.show_pod(&self.low);
        assert_eq!(self.run(), []);
        assert!(self.is_kept());
    }

    fn is_kept(&self) -> bool {
        self.machine.scheduler().snapshot().nominations().node_of(&"second".into()).is_some()
    }
}

fn third_of_card(name: &str, priority: i32, cpu: &str) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "6000", "cpu": cpu}));
    pod["spec"]["priority"] = json!(priority);
    pod
}

/// The node is kept for `second` again each time that `third` was given it, beside which `third` is turned away.
#[test]
fn a_pod_that_a_node_turns_away_time_and_again_backs_off() {
    let mut contested = Contested::new();
    contested.preempt();
    contested.machine.pass(31);
    contested.machine.show_pod(&third_of_card("third", 5, "1"));
    contested.machine.take_decisions();
    assert_eq!(contested.run(), []);
    assert_eq!(contested.machine.take_decisions(), (3, 3), "and no more in this turn");
}
