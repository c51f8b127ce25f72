//! What is kept from dry runs before changes no answer, and few nodes are looked at for the next.

use std::{cell::Cell, collections::BTreeMap};

use super::*;
use crate::{
    device::{Answer, CardPolicy, NodePolicy},
    scheduling::{
        Demand, Details, Outlook, Snapshot,
        fixtures::{self, PROFILE, allocation, share},
    },
};

const NODES: usize = 60;

fn name(node: usize) -> String {
    format!("n{node:02}")
}

/// Nodes of two cards, half of which are larger.
fn cluster() -> Snapshot {
    let mut snapshot = Snapshot::default();
    for at in 0..NODES {
        snapshot.set_node(fixtures::node(&name(at), 2, 16_000 + 8_000 * (at as u64 % 2)));
    }
    snapshot
}

/// A pod on a node that holds so much of its first card.
fn charge(snapshot: &mut Snapshot, pod: usize, node: usize, memory: u64) {
    let name = name(node);
    let held = allocation(PROFILE, share(&format!("GPU-{name}-0"), memory, 10), Answer::Succeeded);
    snapshot.charge(format!("pod-{pod}").into(), fixtures::charge(&name, vec![held]));
}

fn outlook(snapshot: &Snapshot) -> Outlook {
    Outlook::new(snapshot.world().clone(), BTreeMap::new(), ScoreWeights::default())
}

fn demand(memory: u64) -> Demand {
    fixtures::demand("asked", fixtures::ask(1, memory, 10))
}

/// The answer to a dry run, and how many nodes were looked at for it.
fn told(known: &mut DryRuns, outlook: &Outlook, memory: u64) -> (String, u32) {
    let looked = Cell::new(0);
    let go_on = || {
        looked.set(looked.get() + 1);
        ControlFlow::Continue(())
    };
    let placed = outlook.place_by(known, &demand(memory), go_on).expect("it is never stopped");
    let told = placed.map_or_else(
        |error| error.to_string(),
        |found| format!("{} {} {:?}", found.place(), found.score, found.elsewhere(Details::Full)),
    );
    (told, looked.get())
}

#[test]
fn what_is_known_changes_no_answer() {
    let (mut snapshot, mut known) = (cluster(), DryRuns::default());
    for round in 0..200_usize {
        charge(&mut snapshot, round, round * 7 % NODES, 500 * (1 + round as u64 % 9));
        if round % 11 == 0 {
            snapshot.release(&format!("pod-{}", round / 2).into());
        }
        if round % 13 == 0 {
            snapshot.set_node(fixtures::node(&name(round % NODES), 2, 12_000));
        }
        if round % 3 == 0 {
            outlook(&snapshot).prepare(&mut known);
        }
        let (outlook, memory) = (outlook(&snapshot), 1_000 * (1 + round as u64 * 5 % 26));
        let fresh = told(&mut DryRuns::default(), &outlook, memory).0;
        assert_eq!(told(&mut known, &outlook, memory).0, fresh, "round {round}");
    }
}

#[test]
fn one_of_alike_nodes_is_looked_at_and_later_only_those_that_have_changed() {
    let (mut snapshot, mut known) = (cluster(), DryRuns::default());
    outlook(&snapshot).prepare(&mut known);
    assert_eq!(told(&mut known, &outlook(&snapshot), 1_000).1, 2, "there are two kinds of nodes");
    assert_eq!(told(&mut known, &outlook(&snapshot), 1_000).1, 0, "nothing has changed");
    charge(&mut snapshot, 0, 0, 2_000);
    assert_eq!(told(&mut known, &outlook(&snapshot), 1_000).1, 1);
    assert_eq!(told(&mut known, &outlook(&snapshot), 2_000).1, 1 + 3, "the changed node is described first");
}

#[test]
fn a_dry_run_that_was_stopped_is_gone_on_with_by_the_next() {
    let (snapshot, mut known) = (cluster(), DryRuns::default());
    let outlook = outlook(&snapshot);
    let asked = Cell::new(0);
    let soon = || {
        asked.set(asked.get() + 1);
        if asked.get() > 30 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    assert!(outlook.place_by(&mut known, &demand(1_000), soon).is_none());
    let fresh = told(&mut DryRuns::default(), &outlook, 1_000);
    assert_eq!(fresh.1, 60 + 2);
    assert_eq!(told(&mut known, &outlook, 1_000), (fresh.0, 30 + 2));
}

#[test]
fn where_the_time_ends_once_the_best_node_is_known_that_is_told() {
    let (mut snapshot, mut known) = (Snapshot::default(), DryRuns::default());
    for at in 0..400 {
        snapshot.set_node(fixtures::node(&name(at), 2, 16_000));
        charge(&mut snapshot, at, at, 1 + at as u64 * 37 % 7_000);
    }
    let outlook = outlook(&snapshot);
    let mut ask = fixtures::ask(1, 1_000, 10);
    let request = &mut ask.devices[0].request;
    (request.node_policy, request.choice) = (NodePolicy::LeastWaste, CardPolicy::LeastWaste.into());
    let demand = fixtures::demand("asked", ask);
    let placed = |known: &mut DryRuns, times: u32| {
        let asked = Cell::new(0);
        let go_on = || {
            asked.set(asked.get() + 1);
            if asked.get() > times { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let placed = outlook.place_by(known, &demand, go_on)?.unwrap();
        Some((placed.place(), placed.score.to_bits(), placed.elsewhere(Details::Full)))
    };
    assert_eq!(placed(&mut known, 10), None, "the best is not known yet");
    outlook.prepare(&mut known);
    let (place, score, elsewhere) = placed(&mut known, 300).unwrap();
    assert_eq!(elsewhere, None, "most nodes were not judged");
    let in_full = placed(&mut known, u32::MAX).unwrap();
    assert_eq!(in_full, (place, score, Some("399/399 other nodes are available.".to_owned())));
}

#[test]
fn what_another_scheduler_has_shown_is_forgotten() {
    let (first, mut second) = (cluster(), Snapshot::default());
    let mut known = DryRuns::default();
    told(&mut known, &outlook(&first), 15_000);
    // As many changes as there were, so that generations of both are the same.
    for at in 0..NODES {
        second.set_node(fixtures::node(&name(at), 2, 8_000));
    }
    let fresh = told(&mut DryRuns::default(), &outlook(&second), 15_000).0;
    assert!(fresh.starts_with("0/60 nodes are available"), "{fresh}");
    assert_eq!(told(&mut known, &outlook(&second), 15_000).0, fresh);
}

#[test]
fn as_many_asks_are_kept_as_there_is_room_for() {
    let (snapshot, mut known) = (cluster(), DryRuns::default());
    for memory in 0..3 * KEPT as u64 {
        told(&mut known, &outlook(&snapshot), 1_000 + memory);
    }
    assert_eq!(known.asked.len(), KEPT);
    assert_eq!(told(&mut known, &outlook(&snapshot), 1_000 + 3 * KEPT as u64 - 1).1, 0, "the last is known");
    assert_ne!(told(&mut known, &outlook(&snapshot), 1_000).1, 0, "the first is not");
}
