//! Nodes of HAMi's old plugins, which report themselves every 30 s: their cards are given to nobody once they have stopped.

use berth::{
    config::Config,
    scheduling::{DeviceReason, Effect, FitError, Reason},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::machine::{Machine, START, counted, node, pod};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(START + seconds).unwrap()
}

/// A node whose plugin reported itself then.
fn reported(seconds: i64) -> Value {
    let time = at(seconds).strftime("%Y-%m-%d %H:%M:%S");
    node(
        "n1",
        &json!({
            "hami.io/node-nvidia-register": "GPU-a,10,16000,100,NVIDIA A100,0,true,0,hami-core:",
            "hami.io/node-handshake": format!("Reported {time}.123456789 +0000 UTC m=+42.1"),
        }),
    )
}

fn share(name: &str) -> Value {
    pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}))
}

fn waits(effects: &[Effect]) -> bool {
    let words = FitError::of_nodes(&[vec![Reason::Devices(DeviceReason::Expired)]]).to_string();
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::TellUnschedulable { reason, .. } if counted(reason) == words))
}

#[test]
fn cards_are_given_until_the_last_report_is_too_old() {
    let mut machine = Machine::new(&Config::default(), &[reported(0)], &[]);
    machine.run();
    assert_eq!(machine.next_deadline(), Some(at(60)), "the audit comes first");
    machine.pass(89);
    machine.show_pod(&share("before"));
    assert_eq!(machine.run().1.len(), 1);
    machine.pass(1);
    machine.show_pod(&share("after"));
    let (effects, bound) = machine.run();
    assert!(waits(&effects) && bound.is_empty(), "{effects:?}");
}

#[test]
fn the_end_of_a_report_is_looked_for_without_any_event() {
    let mut machine = Machine::new(&Config::default(), &[reported(-40)], &[]);
    machine.run();
    assert_eq!(machine.next_deadline(), Some(at(50)));
    machine.pass(50);
    machine.run();
    assert!(!machine.scheduler().snapshot().node("n1").unwrap().agents.expired.is_empty());
}

#[test]
fn a_plugin_that_reports_again_is_used_again() {
    let mut machine = Machine::new(&Config::default(), &[reported(-1000)], &[share("early")]);
    let (effects, bound) = machine.run();
    assert!(waits(&effects) && bound.is_empty(), "also after a restart: {effects:?}");
    machine.show_node(&reported(-20));
    assert_eq!(machine.run().1, [("early".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_report_that_comes_in_time_changes_nothing() {
    let mut machine = Machine::new(&Config::default(), &[reported(0)], &[]);
    machine.run();
    let before = machine.scheduler().snapshot().node("n1").unwrap().generation;
    machine.pass(30);
    machine.show_node(&reported(30));
    machine.run();
    let state = machine.scheduler().snapshot().node("n1").unwrap();
    assert_eq!(state.generation, before, "pods that wait are not decided again for it");
    assert_eq!(state.info.devices.expiries[0].1, at(30) + SignedDuration::from_secs(90));
}
