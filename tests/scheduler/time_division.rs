//! Nodes of revocable zones: which pods are placed there and when, and which are woken when a zone opens.

#[path = "time_division/rounds.rs"]
mod rounds;
#[path = "time_division/tenants.rs"]
mod tenants;

use berth::config::Config;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    machine::{Machine, placed, told},
    neighbours::{hami_node, share},
};

/// The machine begins at 08:00 UTC.
fn config(window: &str) -> Config {
    let file = json!({"dialects": {"volcano": {"arguments": {"tdm.revocable-zone.rz1": window}}}});
    Config::parse(&file.to_string(), "berth.yaml").unwrap().0
}

/// A node of zone `rz1`.
fn lent(name: &str) -> Value {
    let mut node = hami_node(name, "a");
    node["metadata"]["labels"]["volcano.sh/revocable-zone"] = json!("rz1");
    node
}

/// A pod with these annotations.
fn annotated(name: &str, annotations: &Value) -> Value {
    let mut pod = share(name, "web", &json!({}));
    pod["metadata"]["annotations"] = annotations.clone();
    pod
}

fn preemptable(name: &str) -> Value {
    annotated(name, &json!({"volcano.sh/preemptable": "true"}))
}

fn lasting(name: &str, duration: &str) -> Value {
    annotated(name, &json!({"volcano.sh/preemptable": "true", "berth.dev/expected-duration": duration}))
}

#[test]
fn a_closed_zone_is_a_reason_and_its_opening_wakes_exactly_the_pods_that_it_helps() {
    let mut machine = Machine::new(&config("10:00-12:00"), &[lent("n1")], &[]);
    for pod in [
        preemptable("helped"),
        annotated("plain", &json!({})),
        lasting("long", "3h"),
        annotated("elsewhere", &json!({"volcano.sh/revocable-zone": "rz2"})),
    ] {
        machine.show_pod(&pod);
    }
    let (effects, bound) = machine.run();
    assert_eq!(bound, []);
    let closed = "0/1 nodes are available: 1 node(s) in revocable zone rz1 closed until 10:00.";
    assert_eq!(told(&effects, "helped"), closed);
    assert_eq!(told(&effects, "long"), closed);
    let never = "0/1 nodes are available: 1 node(s) were in a revocable zone that the Pod may not use.";
    assert_eq!([told(&effects, "plain"), told(&effects, "elsewhere")], [never, never]);
    // Nothing is decided before.
    machine.pass(2 * 3600 - 60);
    machine.run();
    machine.take_decisions();
    let opening: Timestamp = "2027-01-15T10:00:00Z".parse().unwrap();
    assert_eq!(machine.next_deadline(), Some(opening));
    machine.pass(60);
    assert_eq!(machine.run().1, placed(&[("helped", "n1")]));
    let (with_node, without) = machine.take_decisions();
    // The audit of that minute tells the others apart anew, and decides none.
    assert_eq!((with_node, without), (1, 0));
}

#[test]
fn a_preemptable_pod_prefers_an_open_zone_and_another_is_kept_out() {
    let labelled = |value: &str| {
        let mut pod = share("p", "web", &json!({}));
        pod["metadata"]["labels"]["volcano.sh/preemptable"] = json!(value);
        pod
    };
    let zone = |zone: &str| json!({"volcano.sh/revocable-zone": zone});
    let mut refused = annotated("p", &zone("*"));
    refused["metadata"]["labels"]["volcano.sh/preemptable"] = json!("false");
    for (pod, node) in [
        (preemptable("p"), "b"),
        (annotated("p", &zone("*")), "b"),
        (annotated("p", &zone("rz1")), "b"),
        (annotated("p", &zone("rz2")), "a"),
        (annotated("p", &zone("")), "a"),
        (annotated("p", &json!({"volcano.sh/preemptable": "yes"})), "a"),
        (annotated("p", &json!({})), "a"),
        // The label alone is no permission, as in Volcano.
        (labelled("true"), "a"),
        (refused, "a"),
    ] {
        // By name and by its cards `a` comes first.
        let mut machine = Machine::new(&config("7:00-9:00"), &[hami_node("a", "a"), lent("b")], &[]);
        machine.show_pod(&pod);
        assert_eq!(machine.run().1, placed(&[("p", node)]), "{}", pod["metadata"]);
    }
}

#[test]
fn a_pod_that_can_not_finish_in_time_waits_for_the_next_window() {
    let begin = || Machine::new(&config("7:00-9:00"), &[lent("n1")], &[]);
    let mut machine = begin();
    machine.show_pod(&lasting("short", "60m"));
    assert_eq!(machine.run().1, placed(&[("short", "n1")]));

    let mut machine = begin();
    machine.show_pod(&lasting("long", "61m"));
    let (effects, bound) = machine.run();
    assert_eq!(bound, []);
    let message = "0/1 nodes are available: 1 node(s) in revocable zone rz1, which closes at 09:00, before the Pod could finish.";
    assert_eq!(told(&effects, "long"), message);
    machine.pass(3600);
    assert_eq!(machine.run().1, []);
    machine.take_decisions();
    machine.pass(22 * 3600);
    assert_eq!(machine.run().1, placed(&[("long", "n1")]));
}

#[test]
fn what_was_found_out_for_a_pod_a_moment_ago_does_not_hold_for_one_that_can_not_finish() {
    let mut machine = Machine::new(&config("7:00-9:00"), &[lent("n1"), lent("n2")], &[]);
    machine.show_pod(&lasting("in-time", "60m"));
    assert_eq!(machine.run().1.len(), 1);
    machine.pass(1);
    machine.show_pod(&lasting("late", "60m"));
    assert_eq!(machine.run().1, []);
}

#[test]
fn a_pod_in_the_line_of_a_node_whose_zone_closes_is_not_bound_there() {
    let mut machine = Machine::new(&config("7:00-9:00"), &[lent("n1")], &[]);
    machine.show_pod(&preemptable("first"));
    machine.show_pod(&preemptable("second"));
    assert_eq!(machine.run().1, placed(&[("first", "n1")]));
    assert_eq!(machine.scheduler().view().standing(machine.now()).in_line, 1);
    machine.pass(3600);
    let (effects, bound) = machine.run();
    assert_eq!(bound, []);
    let message = "0/1 nodes are available: 1 node(s) in revocable zone rz1 closed until 07:00.";
    assert_eq!(told(&effects, "second"), message);
    assert_eq!(machine.scheduler().view().standing(machine.now()).in_line, 0);
}

#[test]
fn without_a_window_in_the_settings_no_node_is_in_a_zone() {
    let mut machine = Machine::new(&Config::default(), &[lent("n1")], &[]);
    machine.show_pod(&annotated("p", &json!({})));
    assert_eq!(machine.run().1, placed(&[("p", "n1")]));
}

#[test]
fn a_zone_without_a_window_beside_others_never_opens() {
    let mut node = lent("n1");
    node["metadata"]["labels"]["volcano.sh/revocable-zone"] = json!("rz9");
    let mut machine = Machine::new(&config("0:00-0:00"), &[node], &[]);
    machine.show_pod(&preemptable("p"));
    let message = "0/1 nodes are available: 1 node(s) in revocable zone rz9, which has no window.";
    assert_eq!(told(&machine.run().0, "p"), message);
    // Its operator gives the node back.
    machine.show_node(&hami_node("n1", "a"));
    assert_eq!(machine.run().1, placed(&[("p", "n1")]));
}
