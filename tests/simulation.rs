//! Berth among faults: a seeded run on the API server inside the process, with every invariant checked after every write.
//!
//! A `Story` says as data who does what and what goes wrong. Each deliberate bug has one that shows it, and that must be clean without the bug. At
//! the end, a scheduler without a memory must find nothing left to do or to say; claims are judged by the API's own rules (`device_claims`).
//!
//! A failure prints its seed and the last things that happened; the same seed is the same run, step by step.
//! `BERTH_SIMULATION_FAULTS=100000 cargo test --release --test simulation no_fault -- --nocapture` injects so many faults,
//! `BERTH_SIMULATION_SEED=7` runs that seed alone and prints all of it. `BERTH_SIMULATION_STORY=claims` limits both to one story of
//! `tests/simulation/stories.rs`, and `BERTH_SIMULATION_BUG=CapacityNotCounted` the deliberate bugs to one, of which the search begins with that seed.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "simulation/actors.rs"]
mod actors;
#[path = "simulation/attack.rs"]
mod attack;
#[path = "simulation/bug.rs"]
mod bug;
#[path = "simulation/checker.rs"]
mod checker;
#[path = "simulation/device_claims.rs"]
mod device_claims;
#[path = "simulation/devices.rs"]
mod devices;
#[path = "simulation/dice.rs"]
mod dice;
#[path = "simulation/fresh.rs"]
mod fresh;
#[path = "simulation/gang.rs"]
mod gang;
#[path = "simulation/groups.rs"]
mod groups;
#[path = "simulation/kept_room.rs"]
mod kept_room;
mod leadership;
#[path = "simulation/lie.rs"]
mod lie;
#[path = "simulation/plan.rs"]
mod plan;
#[path = "simulation/pod.rs"]
mod pod;
#[path = "simulation/preemption.rs"]
mod preemption;
#[path = "simulation/probe.rs"]
mod probe;
#[path = "simulation/quota.rs"]
mod quota;
#[path = "simulation/record.rs"]
mod record;
#[path = "simulation/reservation.rs"]
mod reservation;
#[path = "simulation/rival.rs"]
mod rival;
#[path = "simulation/run.rs"]
mod run;
mod sandbox;
#[path = "simulation/spread.rs"]
mod spread;
#[path = "simulation/stories.rs"]
mod stories;
#[path = "simulation/story.rs"]
mod story;
#[path = "simulation/time_division.rs"]
mod time_division;
#[path = "simulation/told.rs"]
mod told;
#[path = "simulation/usage.rs"]
mod usage;
#[path = "simulation/world.rs"]
mod world;

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZero,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use berth::scheduling::Details;
use bug::Bug;
use run::{Outcome, run};
use stories::STORIES;
use story::{Act, GENERAL, Story};

/// Faults that each test run injects; the environment may ask for more.
const FAULTS: u64 = 5000;
/// So many are many: the search does what is rare, too.
const MANY: u64 = 50_000;
/// In so many runs of its story each deliberate bug is found.
const RUNS_TO_FIND: u64 = 20;

#[expect(clippy::disallowed_methods, reason = "how long to run, and what, is asked from outside")]
fn asked(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

fn number(variable: &str) -> Option<u64> {
    asked(variable).map(|text| text.parse().unwrap())
}

/// The one story that is asked for.
fn asked_story() -> Option<&'static Story> {
    let asked = asked("BERTH_SIMULATION_STORY")?;
    let story = STORIES.iter().find(|(name, _)| *name == asked);
    Some(story.unwrap_or_else(|| panic!("no story is called {asked:?}")).1)
}

/// Every second run is of everything; the others go through what deliberate bugs are looked for with.
fn story_of(seed: u64) -> &'static Story {
    let at = usize::try_from(seed / 2).unwrap() % STORIES.len();
    let usual = if seed.is_multiple_of(2) { &GENERAL } else { STORIES[at].1 };
    asked_story().unwrap_or(usual)
}

fn fail(seed: u64, outcome: &Outcome) -> ! {
    let tail = outcome.lines.len().saturating_sub(150);
    let lines = outcome.lines[tail..].join("\n");
    panic!("seed {seed}: {:#?}\nthe last of what happened:\n{lines}", outcome.violations);
}

/// Calls this in as many threads as there are processors.
fn on_all_processors(play: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(&play);
        }
    });
}

#[test]
fn no_fault_breaks_an_invariant() {
    if let Some(seed) = number("BERTH_SIMULATION_SEED") {
        let outcome = run(seed, story_of(seed), None);
        println!("{}", outcome.lines.join("\n"));
        assert_eq!(outcome.violations, Vec::<String>::new());
        return;
    }
    let wanted = number("BERTH_SIMULATION_FAULTS").unwrap_or(FAULTS);
    let (faults, seeds) = (AtomicU64::new(0), AtomicU64::new(0));
    let (failed, counts) = (Mutex::new(BTreeMap::new()), Mutex::new(BTreeMap::<String, u64>::new()));
    let mut kinds = if asked_story().is_some() { Vec::new() } else { wanted_of_all() };
    if !kinds.is_empty() && wanted >= MANY {
        kinds.push(actors::COMES_BACK.to_owned());
    }
    let missing = || -> Vec<&String> {
        let counts = counts.lock().unwrap();
        kinds.iter().filter(|name| !counts.contains_key(*name)).collect()
    };
    // What is rare may not be among the first: it goes on for a while until all has been done.
    let goes_on = || match faults.load(Relaxed) {
        done if done < wanted => true,
        done => done < wanted.saturating_mul(4) && !missing().is_empty(),
    };
    on_all_processors(|| {
        while goes_on() && failed.lock().unwrap().is_empty() {
            let seed = seeds.fetch_add(1, Relaxed);
            let outcome = run(seed, story_of(seed), None);
            faults.fetch_add(outcome.faults, Relaxed);
            for (name, count) in &outcome.counts {
                *counts.lock().unwrap().entry(name.clone()).or_default() += count;
            }
            if !outcome.violations.is_empty() {
                failed.lock().unwrap().insert(seed, outcome);
            }
        }
    });
    if let Some((seed, outcome)) = failed.into_inner().unwrap().pop_first() {
        fail(seed, &outcome);
    }
    println!("{faults:?} faults in {seeds:?} runs, no violation\n{:#?}", counts.lock().unwrap());
    let missing = missing();
    assert!(missing.is_empty(), "nobody has done {missing:?}");
}

/// What a search must have done at least once: whatever any user does, and whatever can go wrong.
fn wanted_of_all() -> Vec<String> {
    let acts = Act::ALL.iter().map(|act| format!("{act:?}"));
    let reads = GENERAL.reads.iter().map(|(wrong, _)| format!("read {wrong:?}"));
    let writes = GENERAL.writes.iter().map(|(wrong, _)| format!("write {wrong:?}"));
    let events = GENERAL.events.iter().map(|(slip, _)| format!("event {slip:?}"));
    let skies = ["event LeftOut", "Parted", "Paused", "the API server is down"].map(str::to_owned);
    let of_groups = actors::OF_GROUPS.into_iter().chain([plan::CALLS_OF_GROUPS, plan::EVENTS_OF_GROUPS]);
    let of_groups = of_groups.map(str::to_owned);
    acts.chain(reads).chain(writes).chain(events).chain(skies).chain(of_groups).collect()
}

/// Every story once, attacks aside: whatever can be said of a pod in a run is said in one of them.
#[test]
fn with_own_details_no_event_and_no_condition_names_a_node_or_a_card() {
    let stories: Vec<&'static Story> = STORIES
        .iter()
        .filter(|(_, story)| story.attack.is_none())
        .map(|(_, story)| Story { details: Details::Own, steps: story.steps.min(120), ..**story })
        .map(|story| &*Box::leak(Box::new(story)))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let said = Mutex::new(BTreeSet::new());
    on_all_processors(|| {
        while let Some(story) = stories.get(next.fetch_add(1, Relaxed)) {
            let outcome = run(1, story, None);
            found.lock().unwrap().extend(outcome.violations);
            said.lock().unwrap().extend(outcome.reasons);
        }
    });
    assert_eq!(found.into_inner().unwrap(), Vec::<String>::new());
    let said = said.into_inner().unwrap();
    let wanted =
        ["Scheduled", "FailedScheduling", "Preempted", "RevocableZoneClosed", "DeviceAllocatedTwice"];
    let missing: Vec<_> = wanted.iter().filter(|reason| !said.contains(**reason)).collect();
    assert!(missing.is_empty(), "{missing:?} is not among {said:?}");
}

/// Each attack, while binders die and calls fail, and then the pods of a second user beside more of it; with own details, as above.
#[test]
fn no_attack_of_one_user_holds_up_the_pod_of_another() {
    let attacks: Vec<_> = STORIES.iter().filter(|(_, story)| story.attack.is_some()).collect();
    assert_eq!(attacks.len(), 8);
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    on_all_processors(|| {
        while let Some((name, story)) = attacks.get(next.fetch_add(1, Relaxed)) {
            let outcome = run(0, Box::leak(Box::new(Story { details: Details::Own, ..**story })), None);
            let said: Vec<_> = outcome.lines.iter().filter(|line| line.contains("another user: ")).collect();
            println!("{name}: {said:#?}");
            let named = |text: &String| format!("{name}: {text}");
            found.lock().unwrap().extend(outcome.violations.iter().map(named));
        }
    });
    assert_eq!(found.into_inner().unwrap(), Vec::<String>::new());
}

#[test]
fn a_seed_replays_exactly() {
    let first = run(10, &GENERAL, None);
    assert!(first.faults > 10, "{} faults", first.faults);
    let second = run(10, &GENERAL, None);
    let differ = first.lines.iter().zip(&second.lines).position(|(first, second)| first != second);
    assert_eq!(differ.map(|at| (&first.lines[at], &second.lines[at])), None);
    assert_eq!(first.lines.len(), second.lines.len());
    assert_ne!(first.lines, run(12, &GENERAL, None).lines);
}

/// What runs without a bug have found, by the story's address and the seed: several bugs share a story.
type Clean = Mutex<BTreeMap<(usize, u64), Arc<OnceLock<Vec<String>>>>>;

/// What a run finds where there is no bug.
fn false_alarms(seed: u64, story: &'static Story, clean: &Clean) -> Vec<String> {
    let key = (std::ptr::from_ref(story).addr(), seed);
    let once = clean.lock().unwrap().entry(key).or_default().clone();
    once.get_or_init(|| run(seed, story, None).violations).clone()
}

/// The first seed with which the bug is found in a run of its story, and by what; each of these runs finds nothing where there is no bug.
fn find(bug: Bug, clean: &Clean) -> Result<(u64, String), String> {
    let first = number("BERTH_SIMULATION_SEED").unwrap_or_else(|| bug.first_seed());
    for seed in first..first + RUNS_TO_FIND {
        if let Some(alarm) = false_alarms(seed, bug.story(), clean).first() {
            return Err(format!("{bug:?}: false alarm with seed {seed}: {alarm}"));
        }
        if let Some(violation) = run(seed, bug.story(), Some(bug)).violations.first() {
            return Ok((seed, violation.clone()));
        }
    }
    Err(format!("{bug:?} is not found in {RUNS_TO_FIND} runs from seed {first} on"))
}

#[test]
fn every_deliberate_bug_is_found() {
    let (next, found, clean) = (AtomicUsize::new(0), Mutex::new(Vec::new()), Clean::default());
    let only = asked("BERTH_SIMULATION_BUG");
    let is_asked = |bug: &&Bug| only.as_ref().is_none_or(|only| *only == format!("{bug:?}"));
    let bugs: Vec<&Bug> = Bug::ALL.iter().filter(is_asked).collect();
    assert!(!bugs.is_empty(), "no bug is called {only:?}");
    on_all_processors(|| {
        while let Some(bug) = bugs.get(next.fetch_add(1, Relaxed)) {
            let result = find(**bug, &clean);
            found.lock().unwrap().push((**bug, result));
        }
    });
    let mut failed = Vec::new();
    for (bug, result) in found.into_inner().unwrap() {
        match result {
            Ok((seed, violation)) => println!("{bug:?} is found with seed {seed}: {violation}"),
            Err(error) => failed.push(error),
        }
    }
    assert_eq!(failed, Vec::<String>::new());
}
