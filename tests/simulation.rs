//! Berth among faults: a seeded run on the API server inside the process, with every invariant checked after every write.
//!
//! A failure prints its seed and the last things that happened; the same seed is the same run, step by step.
//! `BERTH_SIMULATION_FAULTS=100000 cargo test --release --test simulation no_fault -- --nocapture` injects so many faults,
//! `BERTH_SIMULATION_SEED=7` runs that seed alone and prints all of it.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "simulation/checker.rs"]
mod checker;
#[path = "simulation/dice.rs"]
mod dice;
#[path = "simulation/lie.rs"]
mod lie;
#[path = "simulation/plan.rs"]
mod plan;
#[path = "simulation/record.rs"]
mod record;
#[path = "simulation/run.rs"]
mod run;
#[path = "simulation/story.rs"]
mod story;
#[path = "simulation/world.rs"]
mod world;

use std::{
    collections::BTreeMap,
    num::NonZero,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use lie::Bug;
use run::{Outcome, run};

/// Faults that each test run injects; the environment may ask for more.
const FAULTS: u64 = 2000;
/// In so many runs each deliberate bug is found.
const RUNS_TO_FIND: u64 = 128;

#[expect(clippy::disallowed_methods, reason = "how long to run, and which seed, is asked from outside")]
fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

fn fail(seed: u64, outcome: &Outcome) -> ! {
    let tail = outcome.lines.len().saturating_sub(150);
    let lines = outcome.lines[tail..].join("\n");
    panic!("seed {seed}: {:#?}\nthe last of what happened:\n{lines}", outcome.violations);
}

#[test]
fn no_fault_breaks_an_invariant() {
    if let Some(seed) = number("BERTH_SIMULATION_SEED") {
        let outcome = run(seed, None);
        println!("{}", outcome.lines.join("\n"));
        assert_eq!(outcome.violations, Vec::<String>::new());
        return;
    }
    let wanted = number("BERTH_SIMULATION_FAULTS").unwrap_or(FAULTS);
    let (faults, seeds) = (AtomicU64::new(0), AtomicU64::new(0));
    let failed = Mutex::new(BTreeMap::new());
    let play = || {
        while faults.load(Relaxed) < wanted && failed.lock().unwrap().is_empty() {
            let seed = seeds.fetch_add(1, Relaxed);
            let outcome = run(seed, None);
            faults.fetch_add(outcome.faults, Relaxed);
            if !outcome.violations.is_empty() {
                failed.lock().unwrap().insert(seed, outcome);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(play);
        }
    });
    if let Some((seed, outcome)) = failed.into_inner().unwrap().pop_first() {
        fail(seed, &outcome);
    }
    println!("{faults:?} faults in {seeds:?} runs, no violation");
}

#[test]
fn a_seed_replays_exactly() {
    let first = run(11, None);
    assert!(first.faults > 10, "{} faults", first.faults);
    let second = run(11, None);
    let differ = first.lines.iter().zip(&second.lines).position(|(first, second)| first != second);
    assert_eq!(differ.map(|at| (&first.lines[at], &second.lines[at])), None);
    assert_eq!(first.lines.len(), second.lines.len());
    assert_ne!(first.lines, run(12, None).lines);
}

#[test]
fn every_deliberate_bug_is_found() {
    let missed = Mutex::new(Vec::new());
    let find = &|bug| {
        let found =
            (0..RUNS_TO_FIND).find_map(|seed| Some((seed, run(seed, Some(bug)).violations.first()?.clone())));
        match found {
            Some((seed, violation)) => println!("{bug:?} is found in run {}: {violation}", seed + 1),
            None => missed.lock().unwrap().push(bug),
        }
    };
    std::thread::scope(|scope| {
        for bug in Bug::ALL {
            scope.spawn(move || find(bug));
        }
    });
    assert_eq!(missed.into_inner().unwrap(), [], "not found in {RUNS_TO_FIND} runs");
}
