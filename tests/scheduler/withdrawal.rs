//! A pod that died before Volcano's plugin served it: withdrawn first, and only then the next pod is bound.

use berth::{
    config::Config,
    scheduling::{DeviceReason, Effect, Event, PodChange, ReadAnswer, ReadRequest, Reason, WithdrawOutcome},
};
use serde_json::{Value, json};

use super::machine::{Machine, START, bound, counted, key, node, pod};

const CLOSED: &str = "18446744073709551615";

fn volcano_node() -> Value {
    node("n1", &json!({"volcano.sh/node-vgpu-register": "GPU-a,10,16000,NVIDIA-A100,true,hami-core:"}))
}

fn share(name: &str) -> Value {
    pod(name, &json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1000"}))
}

fn carried(name: &str) -> Value {
    let devices = "GPU-a,NVIDIA,1000,0:";
    let annotations = json!({
        "volcano.sh/vgpu-node": "n1", "volcano.sh/vgpu-time": START.to_string(), "volcano.sh/bind-phase": "allocating",
        "volcano.sh/vgpu-ids-new": devices, "volcano.sh/devices-to-allocate": devices,
    });
    bound(share(name), "n1", annotations)
}

fn failed(mut pod: Value) -> Value {
    pod["status"]["phase"] = json!("Failed");
    pod
}

fn leaving(mut pod: Value, seconds: i64) -> Value {
    let at = jiff::Timestamp::from_second(START + seconds).unwrap();
    pod["metadata"]["deletionTimestamp"] = json!(at.to_string());
    pod
}

fn withdrawn(mut pod: Value) -> Value {
    pod["metadata"]["annotations"]["volcano.sh/vgpu-time"] = json!(CLOSED);
    pod["metadata"]["annotations"]["volcano.sh/devices-to-allocate"] = json!("");
    pod
}

fn withdrawals(effects: &[Effect]) -> Vec<&str> {
    let withdrawals = effects.iter().filter_map(|effect| match effect {
        Effect::Withdraw { pod, .. } => Some(&*pod.name),
        _ => None,
    });
    withdrawals.collect()
}

fn answer(machine: &mut Machine, name: &str, outcome: WithdrawOutcome) {
    machine.tell(Event::Withdrawn { pod: key(name), node: "n1".into(), outcome });
}

/// A node whose agent has been given `first`, and `second` in its line.
fn occupied() -> Machine {
    let mut machine = Machine::new(&Config::default(), &[volcano_node()], &[share("first")]);
    assert_eq!(machine.run().1, [("first".to_owned(), "n1".to_owned())]);
    machine.show_pod(&carried("first"));
    machine.show_pod(&share("second"));
    assert_eq!(machine.run().1, []);
    machine
}

#[test]
fn a_pod_that_failed_is_withdrawn_before_the_next_is_bound() {
    let mut machine = occupied();
    machine.show_pod(&failed(carried("first")));
    let (effects, bound) = machine.run();
    assert_eq!((withdrawals(&effects), bound), (vec!["first"], vec![]));
    answer(&mut machine, "first", WithdrawOutcome::Done);
    assert_eq!(machine.run().1, [("second".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_pod_that_is_gone_needs_no_withdrawal() {
    let mut machine = occupied();
    machine.tell(Event::Pod(PodChange::Gone("first".into())));
    let (effects, bound) = machine.run();
    assert_eq!((withdrawals(&effects), bound), (vec![], vec![]), "its agent may be at work for it");
    machine.pass(15);
    assert_eq!(machine.run().1, [("second".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_pod_that_its_agent_has_served_or_failed_needs_no_withdrawal() {
    for phase in ["success", "failed"] {
        let mut machine = occupied();
        let mut served = carried("first");
        served["metadata"]["annotations"]["volcano.sh/bind-phase"] = json!(phase);
        served["metadata"]["annotations"]["volcano.sh/vgpu-time"] = json!(CLOSED);
        machine.show_pod(&failed(served));
        let (effects, bound) = machine.run();
        assert_eq!((withdrawals(&effects), bound.len()), (vec![], 1), "{phase}");
    }
}

#[test]
fn a_withdrawal_in_doubt_is_tried_again_and_the_pod_read() {
    let mut machine = occupied();
    machine.show_pod(&failed(carried("first")));
    assert_eq!(withdrawals(&machine.run().0), ["first"]);
    answer(&mut machine, "first", WithdrawOutcome::Failed);
    let (effects, bound) = machine.run();
    assert!(effects.contains(&Effect::Read(ReadRequest::Pod(key("first")))), "{effects:?}");
    assert_eq!((withdrawals(&effects), bound), (vec![], vec![]));
    assert_eq!(machine.next_deadline(), Some(machine.now() + jiff::SignedDuration::from_secs(1)));
    machine.pass(1);
    assert_eq!(withdrawals(&machine.run().0), ["first"]);
    machine.tell(Event::Read(ReadAnswer::Pod { pod: key("first"), found: None }));
    assert_eq!(machine.run().1.len(), 1, "it is gone after all");
}

#[test]
fn what_the_watch_shows_late_does_not_withdraw_twice() {
    let mut machine = occupied();
    machine.show_pod(&failed(carried("first")));
    machine.run();
    answer(&mut machine, "first", WithdrawOutcome::Done);
    machine.show_pod(&failed(carried("first")));
    let (effects, bound) = machine.run();
    assert_eq!((withdrawals(&effects), bound.len()), (vec![], 1));
}

#[test]
fn a_pod_that_is_being_deleted_is_withdrawn_and_waited_for_until_it_is_to_be_gone() {
    let mut machine = occupied();
    machine.show_pod(&leaving(carried("first"), 30));
    assert_eq!(withdrawals(&machine.run().0), ["first"]);
    answer(&mut machine, "first", WithdrawOutcome::Done);
    machine.show_pod(&withdrawn(leaving(carried("first"), 30)));
    assert_eq!(machine.run().1, [], "its kubelet may still ask for it");
    machine.pass(44);
    assert_eq!(machine.run().1, [], "its agent may be at work for it, 15 s from then on");
    assert_eq!(machine.next_deadline(), jiff::Timestamp::from_second(START + 45).ok());
    machine.pass(1);
    assert_eq!(machine.run().1, [("second".to_owned(), "n1".to_owned())]);
}

#[test]
fn what_died_before_a_restart_is_withdrawn_too() {
    let pods = [failed(carried("old")), share("next")];
    let mut machine = Machine::new(&Config::default(), &[volcano_node()], &pods);
    let (effects, bound) = machine.run();
    assert_eq!((withdrawals(&effects), bound), (vec!["old"], vec![]));
    answer(&mut machine, "old", WithdrawOutcome::Done);
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn a_node_whose_dead_pod_can_not_be_withdrawn_is_passed_over_after_a_while() {
    let pods = [failed(carried("old"))];
    let mut machine = Machine::new(&Config::default(), &[volcano_node()], &pods);
    machine.run();
    for _ in 0..=300 {
        answer(&mut machine, "old", WithdrawOutcome::Failed);
        machine.pass(1);
        machine.run();
    }
    machine.show_pod(&share("next"));
    let (effects, bound) = machine.run();
    assert_eq!(bound, []);
    let words = berth::scheduling::FitError::of_nodes(&[vec![Reason::Devices(DeviceReason::SilentAgent)]])
        .to_string();
    let said = effects
        .iter()
        .any(|effect| matches!(effect, Effect::TellUnschedulable { reason, .. } if counted(reason) == words));
    assert!(said, "{effects:?}");
}
