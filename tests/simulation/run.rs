//! One seeded run from start to end.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use berth_sandbox::{agent::audit::Violation, claims::DeviceClaims, storage::Conduct};

use crate::{
    actors::Actors,
    bug::Bug,
    checker::Checker,
    device_claims::THEIRS,
    dice::Dice,
    plan::Weather,
    probe,
    story::Story,
    told,
    world::{REPLICAS, World},
};

/// So long may anything wait once all is calm: a foreign lock or a silent agent is waited out, and then some.
const CALM: Duration = Duration::from_mins(12);

/// So long may it take until what was written for the claim of a pod that is gone is taken back.
const TAKEN_BACK: Duration = Duration::from_mins(1);

/// So many pods come or go while all is calm, where pods are spread.
const PROBES: u32 = 8;

/// So long until the next of them: what follows from one has happened by then, and the audit, which is due once a minute, has corrected the
/// reasons of pods that still wait.
const PROBE: Duration = Duration::from_secs(90);

/// A run takes seconds. One that takes so long goes round in circles at one moment of its own time, which would never end.
const LONGEST: Duration = Duration::from_mins(10);

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) lines: Vec<String>,
    pub(crate) faults: u64,
    /// How often what was done, by name.
    pub(crate) counts: BTreeMap<String, u64>,
    /// The reasons of the Events that were written.
    pub(crate) reasons: BTreeSet<String>,
}

/// Runs this seed; it ends at the first violation.
pub(crate) fn run(seed: u64, story: &'static Story, bug: Option<Bug>) -> Outcome {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    let _running = fail_after(LONGEST, format!("seed {seed} with the bug {bug:?} does not end; {story:?}"));
    runtime.block_on(play(Dice::new(seed), story, bug))
}

/// Ends the process with this message after so long, unless what is returned is dropped before.
fn fail_after(time: Duration, message: String) -> mpsc::Sender<()> {
    let (running, ended) = mpsc::channel();
    thread::spawn(move || {
        if ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
            // The test harness would keep what `eprintln` prints.
            let _ = writeln!(std::io::stderr(), "{message}");
            std::process::exit(1);
        }
    });
    running
}

async fn play(mut dice: Dice, story: &'static Story, bug: Option<Bug>) -> Outcome {
    let mut world = World::new(&mut dice, story, bug).await;
    let mut actors = Actors::new(story, Dice::new(dice.next()));
    actors.begin(&world).await;
    world.watch.log().weather = [Weather::Rough(250); REPLICAS];
    for _ in 0..story.steps {
        actors.go_on(&mut world).await;
        let pause = story.pause(&mut dice);
        world.wait(pause).await;
        if !world.watch.log().checker.violations.is_empty() {
            return outcome(&world);
        }
    }
    actors.calm(&world).await;
    if let Some(attack) = story.attack {
        probe::judge(&mut world, &mut actors, attack).await;
    }
    if let Some(storage) = &world.storage {
        storage.behave(Conduct::Hold);
        world.wait(TAKEN_BACK).await;
        // A binder that dies no longer knows what it is to take back.
        if story.attack.is_none() {
            world.watch.log().checker.judge_selected_claims();
        }
        world.provide();
    }
    world.wait(CALM).await;
    world.watch.log().checker.judge_spread();
    for _ in 0..if story.crowd.spread > 0 { PROBES } else { 0 } {
        actors.probe(&world).await;
        world.wait(PROBE).await;
        world.watch.log().checker.judge_spread();
    }
    let drifts = world.metrics.drifts();
    if drifts > 0 {
        world.watch.log().checker.violations.push(format!("Berth's own audit found {drifts} drifts"));
    }
    let mut log = world.watch.log();
    for violation in world.fleet.violations() {
        if !is_excused(&violation, &log.checker) {
            log.checker.violations.push(violation.to_string());
        }
    }
    log.checker.violations.extend(told::leaks(&world.sandbox, story));
    let of_claims = world.device_claims.iter().flat_map(DeviceClaims::violations);
    // The checker knows who has given a device first, or what it takes from.
    let is_of_both = |violation: &String| {
        let too_much = ["is held by", " hold more "].iter().any(|words| violation.contains(words));
        too_much && violation.contains(THEIRS)
            || story.gives_shares() && violation.ends_with("is taken than it counts")
    };
    let of_claims = of_claims.filter(|violation| !is_of_both(violation));
    log.checker.violations.extend(of_claims);
    drop(log);
    outcome(&world)
}

/// The checker judges cards itself, and knows which cards a decision could rest on. A plugin that looks for its pod finds another one
/// where the former was taken away by force under its hands: the next one of that name; or whatever a Berth binds there that has
/// just begun to lead, since nothing in the API tells of the pod that is gone.
fn is_excused(violation: &Violation, checker: &Checker) -> bool {
    match violation {
        Violation::UnknownCard { .. } | Violation::UnhealthyCard { .. } | Violation::Overcommitted { .. } => {
            true
        }
        Violation::WrongPod { admitting, found, .. } => {
            admitting == found || checker.bound_in_different_lives(admitting, found)
        }
        _ => false,
    }
}

fn outcome(world: &World) -> Outcome {
    let reasons = told::reasons(&world.sandbox);
    let mut log = world.watch.log();
    Outcome {
        reasons,
        violations: log.checker.violations.clone(),
        lines: std::mem::take(&mut log.lines),
        faults: log.faults,
        counts: std::mem::take(&mut log.counts),
    }
}
