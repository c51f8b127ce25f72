//! One seeded run from start to end.

use std::time::Duration;

use berth::sandbox::agent::audit::Violation;

use crate::{
    dice::Dice,
    lie::Bug,
    plan::Weather,
    story::Story,
    world::{REPLICAS, World},
};

/// Things that happen before all grows calm.
const STEPS: u64 = 120;
/// So long may anything wait once all is calm: a foreign lock or a silent agent is waited out, and then some.
const CALM: Duration = Duration::from_mins(12);

/// What came of a run.
pub(crate) struct Outcome {
    pub(crate) violations: Vec<String>,
    pub(crate) lines: Vec<String>,
    pub(crate) faults: u64,
}

/// Runs this seed; it ends at the first violation.
pub(crate) fn run(seed: u64, bug: Option<Bug>) -> Outcome {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(play(Dice::new(seed), bug))
}

async fn play(mut dice: Dice, bug: Option<Bug>) -> Outcome {
    let mut world = World::new(&mut dice, bug).await;
    let mut story = Story::new(Dice::new(dice.next()));
    world.watch.log().weather = [Weather::Rough(250); REPLICAS];
    for _ in 0..STEPS {
        story.go_on(&mut world).await;
        let pause = match dice.below(10) {
            0..6 => dice.millis(100),
            6..9 => dice.millis(2000),
            _ => dice.millis(10_000),
        };
        world.wait(pause).await;
        if !world.watch.log().checker.violations.is_empty() {
            return outcome(&world);
        }
    }
    story.calm(&world).await;
    world.wait(CALM).await;
    world.watch.log().checker.judge_the_end();
    let drifts = world.metrics.drifts();
    if drifts > 0 {
        world.watch.log().checker.violations.push(format!("Berth's own audit found {drifts} drifts"));
    }
    for violation in world.fleet.violations().into_iter().filter(|violation| !is_excused(violation)) {
        world.watch.log().checker.violations.push(violation.to_string());
    }
    outcome(&world)
}

/// The checker judges cards itself, and knows which cards a decision could rest on. And a plugin that looks for its pod by name finds
/// the next one of that name, where the former was taken away by force under its hands.
fn is_excused(violation: &Violation) -> bool {
    match violation {
        Violation::UnknownCard { .. } | Violation::UnhealthyCard { .. } | Violation::Overcommitted { .. } => {
            true
        }
        Violation::WrongPod { admitting, found, .. } => admitting == found,
        _ => false,
    }
}

fn outcome(world: &World) -> Outcome {
    let mut log = world.watch.log();
    Outcome {
        violations: log.checker.violations.clone(),
        lines: std::mem::take(&mut log.lines),
        faults: log.faults,
    }
}
