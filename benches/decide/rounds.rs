//! Rounds of decisions, and the time of the decisions alone.

use std::time::Duration;

use tokio::time::Instant;

use super::world::World;

/// Microseconds of one decision over several rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) most: f64,
}

/// So many rounds of so many decisions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    rounds: usize,
    decisions: usize,
}

/// After this time a round ends early.
const LONGEST: Duration = Duration::from_secs(1);

/// Memory of each pod of the known class, in MiB.
const KNOWN: u64 = 500;

impl Rounds {
    pub(crate) fn new(rounds: usize, decisions: usize) -> Self {
        Self { rounds, decisions }
    }

    /// Pods of so many classes in turn, each of which was decided before; `None`: there are no rounds.
    pub(crate) fn of_known_classes(self, classes: u64, world: &mut World) -> Option<Timing> {
        for class in 0..classes {
            world.place(KNOWN + class);
        }
        self.timed(world, |at| KNOWN + at % classes)
    }

    /// Pods of a class of their own each.
    pub(crate) fn of_new_classes(self, world: &mut World) -> Option<Timing> {
        // What is kept beside classes, such as the pods of a selector on each node, is there before.
        world.place(KNOWN);
        self.timed(world, |at| KNOWN + at)
    }

    fn timed(self, world: &mut World, memory: impl Fn(u64) -> u64) -> Option<Timing> {
        let mut at = 0;
        let mut round = |_| {
            let (started, mut spent, mut decided) = (Instant::now(), Duration::ZERO, 0_u32);
            for _ in 0..self.decisions {
                at += 1;
                spent += world.place(memory(at));
                decided += 1;
                if started.elapsed() > LONGEST {
                    break;
                }
            }
            (decided > 0).then(|| spent.as_secs_f64() * 1e6 / f64::from(decided))
        };
        let mut rounds = (0..self.rounds).map(&mut round).collect::<Option<Vec<f64>>>()?;
        rounds.sort_by(f64::total_cmp);
        Some(Timing { least: *rounds.first()?, median: rounds[rounds.len() / 2], most: *rounds.last()? })
    }
}
