//! Over how many nodes pods are spread that wait for device plugins: a burst is packed, and what keeps coming is not left in one line.

use std::ops::Range;

use berth::{
    config::Config,
    scheduling::{Event, PodChange},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::machine::{Machine, START, node, pod};

/// How long pods have to keep coming.
const SURGE: SignedDuration = SignedDuration::from_millis(250);
/// How long fewer have to come before it is over.
const BREAK: SignedDuration = SignedDuration::from_secs(1);

/// A node whose card takes more pods than any case has, with a lock of another scheduler's pod, so that whoever comes waits.
fn gpu_node(number: usize) -> Value {
    let name = format!("n{number}");
    let card = json!([{"id": format!("GPU-{name}"), "index": 0, "count": 100, "devmem": 16000, "devcore": 100,
        "type": "NVIDIA A100", "mode": "hami-core", "health": true}]);
    let lock = format!("{},default,theirs", Timestamp::from_second(START).unwrap());
    let annotations = json!({"hami.io/node-nvidia-register": card.to_string(), "hami.io/mutex.lock": lock});
    let mut node = node(&name, &annotations);
    node["metadata"]["labels"] = json!({"name": name});
    node
}

fn share(name: &str) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "100"}))
}

/// Ten nodes.
fn machine() -> Machine {
    let nodes: Vec<Value> = (0..10).map(gpu_node).collect();
    let mut theirs = share("theirs");
    theirs["spec"]["schedulerName"] = json!("another");
    Machine::new(&Config::default(), &nodes, &[theirs])
}

/// Pods with these numbers come, one after the other.
fn come(machine: &mut Machine, numbers: Range<usize>) {
    for number in numbers {
        machine.show_pod(&share(&format!("p{number}")));
        machine.settle();
    }
}

/// Pods with these numbers go.
fn go(machine: &mut Machine, numbers: Range<usize>) {
    for number in numbers {
        machine.tell(Event::Pod(PodChange::Gone(format!("p{number}").as_str().into())));
    }
    machine.settle();
}

/// The same, where the pods 0 and 1 have stood in one line for so long that it is a surge.
fn in_surge() -> Machine {
    let mut machine = machine();
    come(&mut machine, 0..2);
    machine.wait(SURGE);
    machine
}

/// How many pods stand in each line, the longest first.
fn lines(machine: &Machine) -> Vec<usize> {
    let view = machine.scheduler().view();
    let mut lines: Vec<usize> = (0..10).map(|number| view.line(&format!("n{number}")).len()).collect();
    lines.retain(|length| *length > 0);
    lines.sort_unstable_by(|one, other| other.cmp(one));
    lines
}

#[test]
fn pods_that_come_at_once_are_eight_to_a_node() {
    let mut machine = machine();
    come(&mut machine, 0..20);
    assert_eq!(lines(&machine), [8, 8, 4]);
}

#[test]
fn pods_that_keep_coming_are_spread_over_four_nodes() {
    let mut machine = in_surge();
    come(&mut machine, 2..6);
    assert_eq!(lines(&machine), [2, 2, 2]);
    come(&mut machine, 6..20);
    let spread = lines(&machine);
    assert!(spread.len() == 4 && spread[0] <= 6, "{spread:?}");
    come(&mut machine, 20..40);
    assert_eq!(lines(&machine), [8, 8, 8, 8, 8], "eight are enough for any line");
}

#[test]
fn a_burst_is_packed_again_once_fewer_pods_have_come_for_a_while() {
    let mut machine = in_surge();
    come(&mut machine, 2..3);
    assert_eq!(lines(&machine), [2, 1]);
    go(&mut machine, 0..3);
    machine.wait(BREAK - SignedDuration::from_millis(1));
    come(&mut machine, 3..5);
    assert_eq!(lines(&machine), [1, 1], "the break was too short");
    go(&mut machine, 3..5);
    machine.wait(BREAK);
    come(&mut machine, 5..13);
    assert_eq!(lines(&machine), [8]);
}

#[test]
fn pods_at_a_node_that_is_held_up_are_no_surge() {
    let mut machine = machine();
    for name in ["a", "b", "c"] {
        let mut pod = share(name);
        pod["spec"]["nodeSelector"] = json!({"name": "n0"});
        machine.show_pod(&pod);
    }
    machine.settle();
    machine.pass(10);
    machine.settle();
    machine.wait(BREAK);
    come(&mut machine, 0..2);
    assert_eq!(lines(&machine), [3, 2]);
}

#[test]
fn a_pod_waits_for_the_node_that_is_nominated_for_it_until_the_line_is_full() {
    let mut machine = in_surge();
    let node = (0..10).map(|number| format!("n{number}"));
    let node = node.max_by_key(|node| machine.scheduler().view().line(node).len()).unwrap();
    let mut nominate = |name: &str| {
        let mut pod = share(name);
        pod["status"]["nominatedNodeName"] = json!(node);
        machine.show_pod(&pod);
        machine.settle();
        machine.scheduler().view().line(&node).len()
    };
    for length in 3..=8 {
        assert_eq!(nominate(&format!("nominated-{length}")), length);
    }
    assert_eq!(nominate("another"), 8);
}
