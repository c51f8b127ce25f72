//! AMD's cards, whose compute is asked for in percent and counted in the card's own units: by quotas, and in what is told of them.

use berth::{
    config::Config,
    scheduling::{
        Claim, Effect, Event, QuotaChange,
        decide::remedy::remedy,
        plugin::allocate::explain::{InsufficientAmount, short_on},
    },
};
use serde_json::{Value, json};

use super::{
    holdings::told,
    machine::{Machine, bound, node, parsed, pod},
};

fn settings() -> Config {
    Config::parse("dialects:\n  hami: {amd: {}}\n", "berth.yaml").unwrap().0
}

/// A node with one card of so many compute units.
fn amd_node(units: u32) -> Value {
    let card = json!([{
        "id": "AMD-a", "index": 0, "count": 10, "devmem": 65536, "devcore": units, "type": "MI308X", "health": true,
    }]);
    node("n1", &json!({"hami.io/node-amd-register": card.to_string()}))
}

/// A pod that asks for so many percent of a card's compute.
fn asking(name: &str, percent: u32) -> Value {
    let cores = percent.to_string();
    pod(name, &json!({"amd.com/gpu": "1", "amd.com/gpumem": "1000", "amd.com/gpucores": cores}))
}

/// A pod that holds so many compute units.
fn holding(name: &str, units: u32) -> Value {
    let annotations = json!({
        "hami.io/vgpu-node": "n1", "hami.io/bind-phase": "success",
        "hami.io/amd-devices-allocated": format!("AMD-a,AMD,1000,{units}:;"),
    });
    bound(asking(name, 100), "n1", annotations)
}

/// A machine with one such card, and a quota of so many units of compute.
fn with_quota(card: u32, units: u32) -> Machine {
    let mut machine = Machine::new(&settings(), &[amd_node(card)], &[]);
    let hard = json!({"limits.amd.com/gpucores": units.to_string()});
    let quota = json!({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}});
    let seen = Event::Quota(QuotaChange::Seen(machine.reader().quota(&parsed(&quota)).0));
    machine.tell(seen);
    machine
}

fn refusals(effects: &[Effect]) -> Vec<String> {
    let refused = effects.iter().filter_map(|effect| match effect {
        Effect::TellUnschedulable { reason, .. } => Some(reason.message().full),
        _ => None,
    });
    refused.collect()
}

#[test]
fn a_whole_card_costs_a_quota_its_compute_units() {
    let mut machine = with_quota(96, 96);
    machine.show_pod(&asking("whole", 100));
    assert_eq!(machine.run().1.len(), 1);
    machine.show_pod(&asking("next", 1));
    let used = "exceeded quota: q, requested: limits.amd.com/gpucores=1, used: limits.amd.com/gpucores=96, \
                limited: limits.amd.com/gpucores=96";
    assert!(
        machine.run().0.iter().any(
            |effect| matches!(effect, Effect::TellUnschedulable { reason, .. } if reason.message().full.contains(used))
        )
    );
}

#[test]
fn a_quota_that_leaves_fewer_units_than_the_card_has_refuses_the_whole_card() {
    let mut machine = with_quota(304, 152);
    machine.show_pod(&asking("whole", 100));
    let (effects, placed) = machine.run();
    assert_eq!(placed, []);
    assert!(refusals(&effects)[0].contains("limits.amd.com/gpucores=0 of 152 used"), "{effects:?}");
    machine.show_pod(&asking("half", 50));
    assert_eq!(machine.run().1.len(), 1);
}

#[test]
fn more_units_than_a_small_card_has_are_told_in_units() {
    let mut machine = Machine::new(&settings(), &[amd_node(96)], &[holding("one", 50), holding("two", 48)]);
    let words = "Pods hold more of card AMD-a on node n1 than it has: 98 of 96 compute units";
    assert_eq!(told(&machine.run().0), [("one", words.to_owned()), ("two", words.to_owned())]);
}

#[test]
fn what_a_card_lacks_is_told_in_units_and_what_would_fit_in_percent_of_it() {
    let mut machine = Machine::new(&settings(), &[amd_node(304)], &[holding("half", 152)]);
    machine.run();
    let state = machine.scheduler().snapshot().node("n1").unwrap().clone();
    let (info, _) = machine.reader().pod(&parsed(&asking("whole", 100)));
    let Claim::Place(ask) = info.claim else { panic!("it asks for a share") };
    let (at, short) = short_on(&ask, &state, &[]).unwrap();
    assert_eq!(short.failures[0].amounts, Some(InsufficientAmount { needed: 304, free: 152 }));
    let remedy = remedy(&ask, at, &state, &machine.reader().device_resources(), &[]);
    assert_eq!(remedy.unwrap().to_string(), "with at most 50% of a card's compute");
}
