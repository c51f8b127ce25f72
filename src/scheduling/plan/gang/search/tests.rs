//! A search that is interrupted after every pod finds what one finds that is not, and places that are lost meanwhile are found anew.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::scheduling::{
    decide::class::Classes,
    fixtures::{self, ask, demand, node},
    model::gang::{Gang, GangName, GroupApi, Member, Tally},
    plan::{
        gang::{AsItIs, MadeRoom},
        preemption::Rules,
    },
    world::ledger::Charge,
};

const RACK: &str = "example.com/rack";

/// Nodes with one card of 16,000 MiB each, two in a rack.
fn cluster(nodes: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for at in 0..nodes {
        let mut info = node(&format!("n{at}"), 1, 16_000);
        info.labels = [(RACK, format!("r{}", at / 2))].into();
        snapshot.set_node(info);
    }
    snapshot
}

/// Pods that ask for so much memory each; all must be placed.
fn applicants(memory: &[u64], priority: i32) -> Vec<Applicant> {
    let name = GangName { api: GroupApi::Volcano, group: "default/gang".into() };
    let of = |(at, memory): (usize, &u64)| {
        let demand = Demand { priority, ..demand(&format!("p{at}"), ask(1, *memory, 10)) };
        Applicant { demand, member: Member { gang: name.clone(), task: None } }
    };
    memory.iter().enumerate().map(of).collect()
}

fn charge(_: &Uid, decision: &Decision) -> Charge {
    fixtures::charge(&decision.node, decision.allocations.clone())
}

/// A pod that takes a whole node.
fn fill(snapshot: &mut Snapshot, pod: &str, on: &str) {
    let whole = demand(pod, ask(1, 16_000, 10));
    let decision = Classes::default().decide_on(&whole, &on.into(), snapshot).expect("the node is empty");
    snapshot.charge(pod.into(), charge(&pod.into(), &decision));
}

fn gang(min: usize, strictness: Option<Strictness>) -> Gang {
    let topology = strictness.map(|strictness| SharedTopology { key: RACK.into(), strictness });
    Gang { min, topology, ..Gang::default() }
}

/// Where the pods go, or how many found a place; and how often the search was interrupted. `between` is done after each interruption.
fn search(
    snapshot: &mut Snapshot,
    (gang, applicants): (&Gang, &[Applicant]),
    most_steps: u64,
    mut between: impl FnMut(usize, &mut Snapshot),
) -> (Result<BTreeMap<String, String>, usize>, usize) {
    let mut classes = Classes::default();
    let mut search = GangSearch::default();
    let pool =
        Pool { gang, placed: Tally::default(), nodes: Vec::new(), applicants: applicants.to_vec(), part: 0 };
    for interrupted in 0.. {
        let mut room = AsItIs { classes: &mut classes, charge };
        let mut plan = Plan::new(snapshot);
        let found = search.go_on(&pool, &mut plan, &mut room, &|_| 0, most_steps);
        drop(plan);
        if let Some(found) = found {
            let places = |(uid, decision): (Uid, Decision)| (uid.to_string(), decision.node.to_string());
            let found = found.map(|placed| placed.into_iter().map(places).collect());
            return (found.map_err(|shortfall| shortfall.fitting), interrupted);
        }
        assert!(interrupted < 1000, "each time one place is looked for at least");
        between(interrupted, snapshot);
    }
    unreachable!()
}

/// Searched at once, and interrupted after each pod.
fn both_ways(mut snapshot: Snapshot, gang: &Gang, memory: &[u64]) -> Result<BTreeMap<String, String>, usize> {
    let pods = applicants(memory, 0);
    let (at_once, interrupted) = search(&mut snapshot, (gang, &pods), u64::MAX, |_, _| {});
    assert_eq!(interrupted, 0);
    let (in_pieces, interrupted) = search(&mut snapshot, (gang, &pods), 0, |_, _| {});
    assert_eq!(at_once, in_pieces);
    assert!(interrupted + 1 >= pods.len(), "interrupted {interrupted} times");
    at_once
}

#[test]
fn a_search_in_pieces_finds_what_one_at_once_finds() {
    let fits = both_ways(cluster(4), &gang(4, None), &[9000, 10_000, 11_000, 12_000]);
    assert_eq!(fits.unwrap().values().collect::<BTreeSet<_>>().len(), 4);
    let too_few = both_ways(cluster(3), &gang(4, None), &[9000, 10_000, 11_000, 12_000]);
    assert_eq!(too_few, Err(3));
    let by_size = both_ways(cluster(2), &gang(3, None), &[6000, 7000, 16_000]);
    assert!(by_size.is_ok(), "the large pod goes first: {by_size:?}");
}

#[test]
fn domains_are_tried_in_pieces_too() {
    let required = gang(3, Some(Strictness::Required));
    let mut taken = cluster(4);
    fill(&mut taken, "other", "n0");
    let placed = both_ways(taken, &required, &[7000, 8000, 9000]).unwrap();
    assert_eq!(
        placed.values().collect::<BTreeSet<_>>(),
        BTreeSet::from([&"n2".to_owned(), &"n3".to_owned()])
    );
    let nowhere = both_ways(cluster(8), &required, &[9000, 10_000, 11_000]);
    assert_eq!(nowhere, Err(2));
    let preferred = both_ways(cluster(8), &gang(3, Some(Strictness::Preferred)), &[9000, 10_000, 11_000]);
    assert_eq!(preferred.unwrap().len(), 3);
}

#[test]
fn a_place_that_is_lost_meanwhile_is_found_anew_and_the_others_are_kept() {
    let mut snapshot = cluster(6);
    let pods = applicants(&[9000, 10_000, 11_000, 12_000], 0);
    let (undisturbed, _) = search(&mut snapshot, (&gang(4, None), &pods), 0, |_, _| {});
    let undisturbed = undisturbed.unwrap();
    let lost = undisturbed["p1"].clone();
    let (found, _) = search(&mut snapshot, (&gang(4, None), &pods), 0, |interrupted, snapshot| {
        if interrupted == 2 {
            fill(snapshot, "other", &lost);
        }
    });
    let found = found.unwrap();
    assert_ne!(found["p1"], lost);
    assert_eq!(found["p0"], undisturbed["p0"]);
    assert_eq!(found.values().collect::<BTreeSet<_>>().len(), 4, "no two on one node: {found:?}");
    // Nothing is left for the last pod.
    let mut full = cluster(4);
    let (found, _) = search(&mut full, (&gang(4, None), &pods), 0, |interrupted, snapshot| {
        if interrupted == 2 {
            fill(snapshot, "other", &lost);
        }
    });
    assert_eq!(found, Err(3));
}

#[test]
fn the_pods_that_would_go_are_remembered_with_the_places() {
    let mut snapshot = cluster(4);
    for at in 0..4 {
        fill(&mut snapshot, &format!("low{at}"), &format!("n{at}"));
    }
    let gang = gang(3, None);
    let pool = Pool {
        gang: &gang,
        placed: Tally::default(),
        nodes: Vec::new(),
        applicants: applicants(&[9000, 10_000, 11_000], 100),
        part: 0,
    };
    let (mut classes, mut search, mut candidates) =
        (Classes::default(), GangSearch::default(), BTreeMap::new());
    let mut interrupted = 0;
    let nominations = loop {
        let mut room =
            MadeRoom::new(&mut classes, Rules::default(), charge).going_on(std::mem::take(&mut candidates));
        let mut plan = Plan::new(&mut snapshot);
        match search.go_on(&pool, &mut plan, &mut room, &|_| 0, 0) {
            Some(placed) => break room.nominations(placed.unwrap()),
            None => candidates = room.candidates(),
        }
        drop(plan);
        interrupted += 1;
        if interrupted == 2 {
            // A victim of the first two is gone by itself: its pod needs no other.
            let gone = candidates.values().next().unwrap().victims[0].pod.clone();
            snapshot.release(&gone);
        }
    };
    assert_eq!(interrupted, 3, "one more, for the pod whose victim is gone");
    let victims =
        |(_, candidate): &(Uid, crate::scheduling::plan::preemption::Candidate)| candidate.victims.len();
    assert_eq!(nominations.iter().map(victims).sum::<usize>(), 2, "{nominations:?}");
}
