//! What is measured over the time of a replay: how much of the GPUs is allocated, how much waits, and how long pods of each size wait.

use std::collections::{BTreeMap, HashMap};

use jiff::{SignedDuration, Timestamp};

use super::arrivals::Arrival;
use crate::scheduling::Uid;

/// Which part of a replay is played and measured, from the first arrival on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// What is left out at the beginning.
    pub(super) warm_up: SignedDuration,
    /// When it stops; `None`: when nothing is left to do.
    pub(super) until: Option<SignedDuration>,
}

/// How many cards a pod asks for.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum PodSize {
    /// None.
    NoCard,
    /// A share of one.
    Share,
    /// So many whole ones, or shares of so many.
    Cards(u32),
}

/// A pod that has no node yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingArrival {
    since: Timestamp,
    /// How long it runs once it is bound; `None`: it never ends.
    pub(super) runs: Option<SignedDuration>,
    size: PodSize,
    gpus: f64,
}

/// Waits of pods of one size.
#[derive(Clone, Debug, Default)]
pub(super) struct SizeWaits {
    /// From arrival to Binding, of those that were bound after the warm-up.
    pub(super) bound: Vec<SignedDuration>,
    /// From arrival to the end of the replay, of those that wait still.
    pub(super) waiting: Vec<SignedDuration>,
}

/// What is measured.
#[derive(Debug)]
pub(super) struct ReplayTally {
    from: Timestamp,
    last: Timestamp,
    waiting: HashMap<Uid, WaitingArrival>,
    waiting_gpus: f64,
    waits: Vec<SignedDuration>,
    by_size: BTreeMap<PodSize, SizeWaits>,
    /// What was allocated and what waited, in seconds of one GPU.
    sums: (f64, f64),
}

/// What came out.
#[derive(Debug)]
pub(super) struct Measured {
    /// Waits of all pods that were bound.
    pub(super) waits: Vec<SignedDuration>,
    /// Waits by size, after the warm-up.
    pub(super) by_size: BTreeMap<PodSize, SizeWaits>,
    /// How many GPUs were allocated and how many waiting pods asked for, on average over the time after the warm-up.
    pub(super) means: (f64, f64),
}

impl ReplayTally {
    /// Measures from this time on.
    pub(super) fn new(from: Timestamp) -> Self {
        Self {
            from,
            last: from,
            waiting: HashMap::new(),
            waiting_gpus: 0.0,
            waits: Vec::new(),
            by_size: BTreeMap::new(),
            sums: (0.0, 0.0),
        }
    }

    /// Until now so many GPUs have been allocated since the last time that this was said.
    pub(super) fn pass(&mut self, now: Timestamp, allocated: f64) {
        if now > self.last {
            let seconds = now.duration_since(self.last).as_secs_f64();
            self.sums = (self.sums.0 + allocated * seconds, self.sums.1 + self.waiting_gpus * seconds);
            self.last = now;
        }
    }

    /// A pod has arrived that asks for so many cards.
    pub(super) fn arrive(&mut self, arrival: &Arrival, cards: u32) {
        let Arrival { at, runs, gpus, .. } = *arrival;
        let size = match cards {
            0 => PodSize::NoCard,
            1 if gpus < 1.0 => PodSize::Share,
            cards => PodSize::Cards(cards),
        };
        self.waiting_gpus += gpus;
        self.waiting.insert(arrival.pod.key.uid.clone(), WaitingArrival { since: at, runs, size, gpus });
    }

    /// The pod is bound, with what is known of it; `None`: it did not wait.
    pub(super) fn bind(&mut self, uid: &Uid, now: Timestamp) -> Option<WaitingArrival> {
        let pod = self.waiting.remove(uid)?;
        self.waiting_gpus -= pod.gpus;
        let waited = now.duration_since(pod.since);
        self.waits.push(waited);
        if now >= self.from {
            self.by_size.entry(pod.size).or_default().bound.push(waited);
        }
        Some(pod)
    }

    /// What came out, once the replay has ended.
    pub(super) fn finish(mut self) -> Measured {
        for pod in self.waiting.values() {
            let waited = self.last.duration_since(pod.since);
            self.by_size.entry(pod.size).or_default().waiting.push(waited);
        }
        let seconds = self.last.duration_since(self.from).as_secs_f64();
        let mean = |sum: f64| if seconds > 0.0 { sum / seconds } else { 0.0 };
        Measured { waits: self.waits, by_size: self.by_size, means: (mean(self.sums.0), mean(self.sums.1)) }
    }
}
