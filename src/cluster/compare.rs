//! What is computed on threads of its own beside the decisions: comparing claims with devices, and valuing rooms. One at a time, in slices that all of
//! them take in turn, for half of the time.
//!
//! It decides nothing: what is computed, and what follows from it, is the scheduler's.

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
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
    time::Instant,
};

use crate::scheduling::{
    decide::comparison::{ClaimComparison, ComparedClaims},
    model::steps::{Allowance, PER_MILLISECOND},
    packing::renewal::{Renewal, RenewedMix},
};

/// After this time the next one goes on.
const SLICE: Duration = Duration::from_millis(10);

/// One comparison takes so many steps, about two seconds; the longest search on one node takes one. What is left is compared the next time.
pub(crate) const MOST: u64 = 2_000 * PER_MILLISECOND;

/// Runs what is computed beside the decisions; clones take turns with each other.
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
    /// What the comparison finds.
    pub(super) async fn compare(self, comparison: ClaimComparison) -> ComparedClaims {
        self.compute(move |go_on| {
            let mut allowance = Allowance::of(MOST);
            comparison.run(|toll| {
                go_on()?;
                allowance.take(toll)
            })
        })
        .await
    }

    /// Values rooms for a mix of pods.
    pub(super) async fn renew(self, renewal: Renewal) -> RenewedMix {
        self.compute(move |go_on| renewal.run(go_on)).await
    }

    /// What is computed in slices, before each step of which it asks whether to go on. A panic in it is a panic here.
    async fn compute<T: Send + 'static>(
        self,
        compute: impl FnOnce(&mut dyn FnMut() -> ControlFlow<()>) -> T + Send + 'static,
    ) -> T {
        let handle = Handle::current();
        if handle.runtime_flavor() == RuntimeFlavor::CurrentThread {
            // Tests whose order of events must follow from their seed.
            return compute(&mut || ControlFlow::Continue(()));
        }
        let computed = spawn_blocking(move || {
            let mut turns = Turns::begin(&self, &handle);
            compute(&mut || turns.go_on())
        });
        computed.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    }

    /// Ends all that is computed before its next step.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// The slices of one that takes turns with others.
struct Turns<'a> {
    comparer: &'a Comparer,
    handle: &'a Handle,
    turn: Option<SemaphorePermit<'a>>,
    began: Instant,
}

impl<'a> Turns<'a> {
    /// Waits for the first slice.
    fn begin(comparer: &'a Comparer, handle: &'a Handle) -> Self {
        let turn = handle.block_on(comparer.turn.acquire()).ok();
        Self { comparer, handle, turn, began: Instant::now() }
    }

    /// Whether to go on; if the slice is over, waits for the next one.
    fn go_on(&mut self) -> ControlFlow<()> {
        if self.comparer.ended.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if self.began.elapsed() >= SLICE {
            // The loop, the webhook and the API server of a small cluster need the processor too.
            std::thread::sleep(self.began.elapsed());
            drop(self.turn.take());
            *self = Self::begin(self.comparer, self.handle);
        }
        ControlFlow::Continue(())
    }
}
