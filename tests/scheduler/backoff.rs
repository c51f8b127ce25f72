//! Pods that are woken again and again and rejected each time: slowed down where there is other work, at once where there is none, and
//! reached in any case.

use std::sync::Arc;

use berth::{
    config::Config,
    scheduling::{
        BindOutcome, Effect, Event, LockOutcome, NodeChange, ObjectChange, PodChange, world::object::Object,
    },
};
use serde_json::{Value, json};

use super::{
    machine::{Machine, key, parsed, pod},
    neighbours::{hami_node, other, share, spread},
};

/// A pod that waits for its claim.
fn claims(name: &str, priority: i32) -> Value {
    let mut pod = share(name, "x", &json!({"priority": priority}));
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": name}}]);
    pod
}

/// A change that wakes every pod which waits for a claim, and helps none.
fn stir(machine: &mut Machine, number: u32) {
    let class = json!({"metadata": {"name": number.to_string()}, "provisioner": "csi.example"});
    machine.tell(Event::Object(ObjectChange::Seen(Object::StorageClass(Arc::new(parsed(&class))))));
}

/// A node, and so many pods that wait for claims.
fn waiting(pods: u32) -> Machine {
    let mut machine = Machine::new(&Config::default(), &[hami_node("n1", "a")], &[]);
    for number in 0..pods {
        machine.show_pod(&claims(&format!("claim-{number}"), 0));
    }
    machine.run();
    machine.take_decisions();
    machine
}

/// A pod that fits nowhere, which is something else to do in this turn.
fn other_work(machine: &mut Machine, number: u32) {
    machine.show_pod(&pod(
        &format!("work-{number}"),
        &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "99000"}),
    ));
}

#[test]
fn a_pod_that_is_woken_in_vain_is_decided_at_once_where_there_is_nothing_else_to_do() {
    let mut machine = waiting(1);
    for number in 0..20 {
        stir(&mut machine, number);
        machine.settle();
        assert_eq!(machine.take_decisions(), (0, 1), "change {number}");
    }
}

#[test]
fn a_pod_that_is_woken_in_vain_waits_longer_each_time_where_there_is_other_work() {
    let mut machine = waiting(1);
    let mut decided = Vec::new();
    for second in 1..=40 {
        machine.pass(1);
        stir(&mut machine, second);
        other_work(&mut machine, second);
        machine.settle();
        // One decision is that of the other work.
        if machine.take_decisions().1 > 1 {
            decided.push(second);
        }
    }
    assert_eq!(decided, [1, 3, 7, 15, 25, 35]);
}

#[test]
fn one_change_that_wakes_many_takes_several_turns_that_come_at_once() {
    let mut machine = waiting(100);
    stir(&mut machine, 0);
    for expected in [32, 32, 32, 4] {
        assert!(machine.next_deadline().is_some_and(|at| at <= machine.now()) || expected == 32);
        machine.settle();
        assert_eq!(machine.take_decisions(), (0, expected));
    }
    assert!(machine.next_deadline().is_some_and(|at| at > machine.now()));
}

#[test]
fn a_pod_of_low_priority_is_reached_while_others_are_woken_again_and_again() {
    let mut machine = Machine::new(&Config::default(), &[hami_node("n1", "a")], &[]);
    machine.show_pod(&claims("low", -5));
    for number in 0..40 {
        machine.show_pod(&claims(&format!("high-{number}"), 5));
    }
    machine.run();
    let claim = json!({"metadata": {"name": "low", "namespace": "default", "uid": "low",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "pv"}});
    machine.tell(Event::Object(ObjectChange::Seen(Object::PersistentVolumeClaim(Arc::new(parsed(&claim))))));
    let volume = json!({"metadata": {"name": "pv"}});
    machine.tell(Event::Object(ObjectChange::Seen(Object::PersistentVolume(Arc::new(parsed(&volume))))));
    for number in 0..12 {
        stir(&mut machine, number);
        other_work(&mut machine, number);
        let effects = machine.settle();
        if effects.iter().any(|effect| matches!(effect, Effect::TakeLock { pod, .. } if *pod.name == *"low"))
        {
            return;
        }
        machine.pass(1);
    }
    panic!("it was not reached within 12 s");
}

#[test]
fn who_is_woken_by_a_node_that_would_have_him_goes_before_newer_pods() {
    let mut machine =
        Machine::new(&Config::default(), &[hami_node("n1", "a")], &[other("web", "web", "n1", &json!({}))]);
    let whole = |name: &str| {
        let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "16000"}));
        pod["metadata"]["creationTimestamp"] = json!(format!("2027-01-15T0{}:00:00Z", name.len()));
        pod
    };
    machine.show_pod(&whole("a"));
    assert_eq!(machine.run().1.len(), 1);
    machine.show_pod(&whole("bb"));
    machine.run();
    // In one turn the place is freed, and a newer pod comes.
    machine.tell(Event::Pod(PodChange::Ended("a".into())));
    machine.show_pod(&whole("ccc"));
    let effects = machine.settle();
    let locked: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::TakeLock { pod, .. } => Some(&*pod.name),
            _ => None,
        })
        .collect();
    assert_eq!(locked, ["bb"]);
}

#[test]
fn what_changes_while_a_pod_is_being_bound_is_not_missed_when_that_fails() {
    // Zone a has the fewest; while the pod is being bound there, its node leaves and another of zone b comes.
    let nodes = [hami_node("n1", "a"), hami_node("n2", "b")];
    let mut machine = Machine::new(&Config::default(), &nodes, &[other("web", "web", "n2", &json!({}))]);
    machine.show_pod(&share("p", "web", &spread("web")));
    let locks = machine.settle();
    let Some(Effect::TakeLock { node, locks, .. }) = locks.first().cloned() else { panic!("{locks:?}") };
    assert_eq!(&*node, "n1");
    let outcome = LockOutcome::Taken { resource_version: "1000".to_owned() };
    machine.tell(Event::LockAnswered { pod: key("p"), node: node.clone(), locks, outcome });
    machine.settle();
    machine.tell(Event::Node(NodeChange::Gone("n1".into())));
    machine.settle();
    let refused = BindOutcome::Refused("the node is gone".to_owned());
    machine.tell(Event::BindAnswered { pod: key("p"), node, outcome: refused });
    assert_eq!(machine.run().1, [], "a failure is waited out");
    machine.pass(1);
    assert_eq!(machine.run().1, [("p".to_owned(), "n2".to_owned())]);
}
