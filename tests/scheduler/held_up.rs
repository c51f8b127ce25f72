//! Nodes that serve nobody for a while: who waits there goes elsewhere, and how long a lock of somebody else is respected.

use berth::{
    config::Config,
    scheduling::{Effect, Event, PodChange},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::machine::{Machine, START, bound, node, pod};

const REGISTER: &str = "hami.io/node-nvidia-register";
const LOCK: &str = "hami.io/mutex.lock";

fn gpu_node(name: &str) -> Value {
    let card = json!({
        "id": format!("GPU-{name}"), "count": 10, "devmem": 16000, "devcore": 100, "type": "NVIDIA A100",
        "mode": "hami-core", "health": true,
    });
    node(name, &json!({REGISTER: json!([card]).to_string()}))
}

/// The node with a lock since so many seconds after the start, of a pod of another scheduler.
fn locked(name: &str, since: i64) -> Value {
    let mut node = gpu_node(name);
    let since = Timestamp::from_second(START + since).unwrap();
    node["metadata"]["annotations"][LOCK] = json!(format!("{since},default,theirs"));
    node
}

fn share(name: &str) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}))
}

/// A pod of another scheduler, which is there and holds nothing.
fn theirs() -> Value {
    let mut theirs = share("theirs");
    theirs["spec"]["schedulerName"] = json!("another");
    theirs
}

/// A pod that makes the node the first choice of those that pack.
fn packed(node: &str) -> Value {
    let annotations = json!({
        "hami.io/vgpu-node": node, "hami.io/bind-phase": "success",
        "hami.io/vgpu-devices-allocated": format!("GPU-{node},NVIDIA,9000,0:;"),
    });
    bound(share("packed"), node, annotations)
}

/// The nodes `n1`, which is locked and packs best, and those given.
fn machine(others: &[Value]) -> Machine {
    let nodes = [&[locked("n1", 0)], others].concat();
    Machine::new(&Config::default(), &nodes, &[theirs(), packed("n1")])
}

fn waiting(effects: &[Effect]) -> Vec<&str> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::TellWaiting { pod, .. } => Some(&*pod.name),
        _ => None,
    });
    told.collect()
}

fn to(pod: &str, node: &str) -> (String, String) {
    (pod.to_owned(), node.to_owned())
}

#[test]
fn who_waits_for_a_node_that_is_held_up_goes_to_one_that_is_not() {
    let mut machine = machine(&[gpu_node("n2")]);
    machine.show_pod(&share("a"));
    machine.show_pod(&share("b"));
    assert_eq!(machine.run().1, [], "both stand in line for the node that packs best");
    machine.pass(9);
    assert_eq!(machine.run().1, [], "a lock is mostly held for a short time");
    machine.pass(1);
    let (effects, placed) = machine.run();
    assert_eq!(placed, [to("a", "n2")]);
    assert_eq!(waiting(&effects), [""; 0], "nobody waits for the lock any more");
    machine.show_pod(&share("c"));
    machine.run();
    let ledger = machine.scheduler().snapshot().ledger();
    let place = |pod: &str| ledger.get(&pod.into()).map(|charge| charge.node.to_string());
    assert_eq!([place("b"), place("c")].map(Option::unwrap), ["n2", "n2"], "neither is sent to n1");
}

#[test]
fn who_has_no_other_place_keeps_it_until_there_is_one() {
    let mut machine = machine(&[]);
    machine.show_pod(&share("a"));
    machine.run();
    machine.pass(10);
    let (effects, placed) = machine.run();
    assert_eq!((waiting(&effects), placed), (vec!["a"], vec![]));
    machine.show_node(&gpu_node("n2"));
    assert_eq!(machine.run().1, [to("a", "n2")], "at once");
}

#[test]
fn a_node_that_goes_on_is_as_any_other_again() {
    let mut machine = machine(&[gpu_node("n2")]);
    machine.show_pod(&share("a"));
    machine.run();
    machine.pass(10);
    assert_eq!(machine.run().1, [to("a", "n2")]);
    machine.show_node(&gpu_node("n1"));
    machine.run();
    machine.show_pod(&share("b"));
    assert_eq!(machine.run().1, [to("b", "n1")], "the first choice of those that pack");
}

#[test]
fn a_foreign_lock_is_respected_until_it_expires_and_one_from_the_future_is_not() {
    let at = |since: i64| {
        let mut machine = Machine::new(&Config::default(), &[locked("n1", since)], &[theirs()]);
        machine.show_pod(&share("a"));
        machine.run();
        machine
    };
    let expiry = 300;
    for since in [0, 60] {
        let mut machine = at(since);
        machine.pass(since + expiry - 1);
        assert_eq!(machine.run().1, [], "locked {since} s after the start");
        let next = machine.next_deadline().unwrap();
        assert!(next <= machine.now() + SignedDuration::from_secs(1), "it is looked at when it expires");
        machine.pass(1);
        assert_eq!(machine.run().1, [to("a", "n1")], "locked {since} s after the start");
    }
    let mut machine = at(expiry + 1);
    machine.show_pod(&share("b"));
    let taken = machine.scheduler().snapshot().ledger().get(&"a".into()).cloned().unwrap();
    assert_eq!(taken.commitment, berth::scheduling::world::ledger::Commitment::Bound, "no clock is so wrong");
}

/// A pod on `n1` for which the device plugin is at work.
fn in_flight(name: &str) -> Value {
    let annotations = json!({
        "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "allocating",
        "hami.io/vgpu-devices-to-allocate": "GPU-n1,NVIDIA,1000,0:;",
        "hami.io/vgpu-devices-allocated": "GPU-n1,NVIDIA,1000,0:;",
    });
    bound(share(name), "n1", annotations)
}

/// Two nodes, of which `n1` packs best and serves the pod `evil`, and pods that stand in its line.
fn serving(others: &[&str]) -> Machine {
    let nodes = [gpu_node("n1"), gpu_node("n2")];
    let mut machine = Machine::new(&Config::default(), &nodes, &[packed("n1"), in_flight("evil")]);
    for other in others {
        machine.show_pod(&share(other));
    }
    assert_eq!(machine.run().1, [], "packing goes on where the plugin serves a living pod");
    machine
}

#[test]
fn a_node_whose_plugin_is_at_work_for_a_pod_that_is_gone_comes_after_others_at_once() {
    let mut machine = serving(&[]);
    machine.tell(Event::Pod(PodChange::Gone("evil".into())));
    machine.show_pod(&share("a"));
    assert_eq!(machine.run().1, [to("a", "n2")], "in the same turn");
    machine.pass(15);
    machine.run();
    machine.show_pod(&share("b"));
    assert_eq!(machine.run().1, [to("b", "n1")], "the plugin is done, and the node is as any other again");
}

#[test]
fn who_stands_in_line_behind_a_pod_that_is_deleted_by_force_goes_elsewhere_at_once() {
    let mut machine = serving(&["a", "b"]);
    machine.tell(Event::Pod(PodChange::Gone("evil".into())));
    assert_eq!(machine.run().1, [to("a", "n2")]);
    let ledger = machine.scheduler().snapshot().ledger();
    assert_eq!(&*ledger.get(&"b".into()).unwrap().node, "n2", "it is next there");
}

#[test]
fn who_stands_in_line_behind_a_pod_that_is_to_go_goes_elsewhere_at_once() {
    let mut machine = serving(&["a"]);
    let mut leaving = in_flight("evil");
    leaving["metadata"]["deletionTimestamp"] =
        json!((machine.now() + SignedDuration::from_hours(1)).to_string());
    leaving["metadata"]["deletionGracePeriodSeconds"] = json!(3600);
    machine.show_pod(&leaving);
    assert_eq!(machine.run().1, [to("a", "n2")], "however long its grace period is");
}

#[test]
fn a_loop_that_creates_and_deletes_by_force_delays_no_other_pod() {
    let mut machine = serving(&[]);
    for round in 0..10 {
        machine.tell(Event::Pod(PodChange::Gone("evil".into())));
        let probe = format!("probe-{round}");
        machine.show_pod(&share(&probe));
        assert_eq!(machine.run().1, [to(&probe, "n2")], "round {round}");
        machine.tell(Event::Pod(PodChange::Ended(probe.as_str().into())));
        machine.show_pod(&in_flight("evil"));
        machine.pass(1);
        machine.run();
    }
}

#[test]
fn a_node_whose_plugin_has_been_silent_for_longer_than_is_usual_comes_after_others_at_once() {
    let mut machine = serving(&[]);
    machine.pass(10);
    machine.run();
    machine.show_pod(&share("a"));
    assert_eq!(machine.run().1, [to("a", "n2")], "no pod has to wait there first");
}

#[test]
fn who_has_no_place_but_behind_a_pod_that_is_gone_keeps_its_place_there() {
    let nodes = [gpu_node("n1")];
    let mut machine = Machine::new(&Config::default(), &nodes, &[in_flight("evil")]);
    machine.show_pod(&share("a"));
    machine.tell(Event::Pod(PodChange::Gone("evil".into())));
    assert_eq!(machine.run().1, []);
    machine.pass(14);
    assert_eq!(machine.run().1, [], "the plugin could take it for the other");
    machine.pass(1);
    assert_eq!(machine.run().1, [to("a", "n1")]);
}
