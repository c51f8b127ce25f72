//! What is computed on threads of its own beside the decisions: comparing claims with devices, and valuing rooms. One at a time, in slices that all of
//! them take in turn, for half of the time. A pod waits for a comparison, but none for rooms: these are valued for a fortieth of the time.
//!
//! It decides nothing: what is computed, and what follows from it, is the scheduler's.

use std::{
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{Semaphore, SemaphorePermit},
    task::spawn_blocking,
    time::{Instant, sleep_until},
};

use crate::scheduling::{
    decide::comparison::{ClaimComparison, ComparedClaims},
    model::steps::{Allowance, PER_MILLISECOND},
    packing::renewal::{Renewal, RenewedMix},
};

/// After this time the next one goes on.
const SLICE: Duration = Duration::from_millis(10);

/// After rooms have been valued, for half of the time, the next begin after so many times as long.
const REST: u32 = 19;

/// One comparison takes so many steps, about two seconds; the longest search on one node takes one. What is left is compared the next time.
pub(crate) const MOST: u64 = 2_000 * PER_MILLISECOND;

/// Runs what is computed beside the decisions; clones take turns with each other.
#[derive(Clone, Debug)]
pub struct Comparer {
    /// Fair: who waits longest is next.
    turn: Arc<Semaphore>,
    /// Before this no rooms are valued.
    rests_until: Arc<Mutex<Instant>>,
    ended: Arc<AtomicBool>,
}

impl Default for Comparer {
    fn default() -> Self {
        let rests_until = Arc::new(Mutex::new(Instant::now()));
        Self { turn: Arc::new(Semaphore::new(1)), rests_until, ended: Arc::default() }
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

    /// Values rooms for a mix of pods. Where pods come and go all the time, the next mix is always there at once: it waits for a while.
    pub(super) async fn renew(self, renewal: Renewal) -> RenewedMix {
        let rests_until = self.rests_until.clone();
        let until = || rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = *until();
        sleep_until(begins).await;
        let began = Instant::now();
        let renewed = self.compute(move |go_on| renewal.run(go_on)).await;
        *until() = Instant::now() + began.elapsed() * REST;
        renewed
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{
        fixtures,
        model::pod_shape::{CardShape, PodShape},
        packing::Packing,
    };

    fn renewal() -> Renewal {
        let cards = CardShape::of(&fixtures::ask(1, 8_000, 0).devices).unwrap();
        let mut packing = Packing::default();
        packing.renew_beside();
        packing.weigh(vec![(Arc::new(PodShape { cpu: 1_000, memory: 0, cards }), 1)]);
        packing.begin_renewal().expect("another pod may come")
    }

    #[tokio::test(start_paused = true)]
    async fn rooms_are_not_valued_before_it_has_rested() {
        let comparer = Comparer::default();
        let begins = Instant::now() + Duration::from_secs(10);
        *comparer.rests_until.lock().unwrap() = begins;
        comparer.clone().renew(renewal()).await;
        assert!(Instant::now() >= begins);
        // The clock stands while rooms are valued here: the next begin at once.
        let now = Instant::now();
        comparer.renew(renewal()).await;
        assert_eq!(Instant::now(), now);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn it_rests_much_longer_than_rooms_are_valued() {
        let comparer = Comparer::default();
        let before = Instant::now();
        comparer.clone().renew(renewal()).await;
        let (rests, took) = (*comparer.rests_until.lock().unwrap(), before.elapsed());
        assert!(rests > before && rests <= before + took * (REST + 1));
    }
}
