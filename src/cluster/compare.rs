//! Comparing claims with devices on threads of their own: one at a time, in slices that the namespaces take in turn, for half of the time.
//!
//! It decides nothing: what is compared, and what follows from it, is the scheduler's.

use std::{
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
    task::spawn_blocking,
    time::Instant,
};

use crate::scheduling::{
    decide::comparison::{ClaimComparison, ComparedClaims},
    model::steps::{Allowance, PER_MILLISECOND},
};

/// After this time the next comparison goes on.
const SLICE: Duration = Duration::from_millis(10);

/// One comparison takes so many steps, about two seconds; the longest search on one node takes one. What is left is compared the next time.
pub(crate) const MOST: u64 = 2_000 * PER_MILLISECOND;

/// Runs comparisons; clones take turns with each other.
#[derive(Clone, Debug)]
pub struct Comparer {
    /// Fair: who waits longest is next.
    turn: Arc<Semaphore>,
    ended: Arc<AtomicBool>,
}

impl Default for Comparer {
    fn default() -> Self {
        Self { turn: Arc::new(Semaphore::new(1)), ended: Arc::default() }
    }
}

impl Comparer {
    /// What the comparison finds. A panic in it is a panic here.
    pub(super) async fn compare(self, comparison: ClaimComparison) -> ComparedClaims {
        let handle = Handle::current();
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            // Tests whose order of events must follow from their seed.
            let mut allowance = Allowance::of(MOST);
            return comparison.run(|toll| allowance.take(toll));
        }
        let compared = spawn_blocking(move || self.take_turns(&comparison, &handle)).await;
        compared.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Ends all comparisons before their next step.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    fn take_turns(&self, comparison: &ClaimComparison, handle: &Handle) -> ComparedClaims {
        let next = || (handle.block_on(self.turn.acquire()).ok(), Instant::now());
        let (mut turn, mut began) = next();
        let mut allowance = Allowance::of(MOST);
        comparison.run(|toll| {
            if self.ended.load(Ordering::Relaxed) {
                return ControlFlow::Break(());
            }
            if began.elapsed() >= SLICE {
                // The loop, the webhook and the API server of a small cluster need the processor too.
                std::thread::sleep(began.elapsed());
                drop(turn.take());
                (turn, began) = next();
            }
            allowance.take(toll)
        })
    }
}
