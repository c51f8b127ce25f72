//! Showback: for how long namespaces, workloads and values of labels have held how much, as sums that grow only and count nothing twice.
//!
//! An account says until when it has counted. What is counted next begins there, whoever counts and however often it was tried: an account that
//! is not kept is counted again from the one that is. Whole seconds and whole amounts only, so sums are exact.

pub mod rows;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;

use super::model::{name::Uid, workload::Workload};
pub use rows::{OTHER, UsageRow, UsageRows};

/// What a pod holds of cards at its peak.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HeldParts {
    /// Memory, in MiB.
    pub memory: u64,
    /// Compute, in percent of one card.
    pub cores: u64,
    /// Cards, in thousandths: of each card the larger part of its memory and compute.
    pub gpus: u64,
}

/// Amounts times seconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HeldSeconds {
    /// MiB-seconds.
    pub memory: u64,
    /// Percent of one card, times seconds.
    pub cores: u64,
    /// Thousandths of a card, times seconds.
    pub gpus: u64,
}

/// That a pod has held something for a time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsageSpan {
    /// The pod: at each moment it counts once, whatever other spans say of it.
    pub pod: Uid,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// What made it.
    pub workload: Workload,
    /// The labels that are counted, each with the pod's value; empty where the pod has no such label.
    pub labels: Vec<[Arc<str>; 2]>,
    /// What it holds.
    pub held: HeldParts,
    /// Since when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

/// GPUs that are free and of no use for the pods that may come.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StrandedAmount {
    /// Their model.
    pub model: Arc<str>,
    /// What is lacking.
    pub reason: Arc<str>,
    /// How many, in thousandths.
    pub gpus: u64,
}

/// What was held, by whom, until a moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsageAccount {
    /// Until when it has counted, in whole seconds.
    pub counted_until: Timestamp,
    /// By namespace.
    pub namespaces: UsageRows<1>,
    /// By namespace, and kind and name of the workload in it.
    pub workloads: UsageRows<3>,
    /// By label and its value.
    pub labels: UsageRows<2>,
    /// By model and by what was lacking: GPUs alone.
    pub stranded: UsageRows<2>,
}

/// The longest time for which what is stranded now counts as having been stranded: it is looked at once in a while.
pub const STRANDED_FOR: i64 = 120;

impl HeldSeconds {
    /// So much, for so many seconds.
    fn of(held: HeldParts, seconds: u64) -> Self {
        let times = |amount: u64| amount.saturating_mul(seconds);
        Self { memory: times(held.memory), cores: times(held.cores), gpus: times(held.gpus) }
    }

    /// With these.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            memory: self.memory.saturating_add(other.memory),
            cores: self.cores.saturating_add(other.cores),
            gpus: self.gpus.saturating_add(other.gpus),
        }
    }
}

impl UsageAccount {
    /// Counts from now on, in so many rows that a ConfigMap holds all of them.
    pub fn begin(now: Timestamp) -> Self {
        Self {
            counted_until: whole(now),
            namespaces: UsageRows::new(1_000),
            workloads: UsageRows::new(1_200),
            labels: UsageRows::new(500),
            stranded: UsageRows::new(100),
        }
    }

    /// The same, with a row for everything: for one look, not to be kept.
    pub fn unbounded(now: Timestamp) -> Self {
        Self {
            counted_until: whole(now),
            namespaces: UsageRows::new(usize::MAX),
            workloads: UsageRows::new(usize::MAX),
            labels: UsageRows::new(usize::MAX),
            stranded: UsageRows::new(usize::MAX),
        }
    }

    /// Whether the same was counted in both, whatever time passed.
    pub fn has_same_sums(&self, other: &Self) -> bool {
        (&self.namespaces, &self.workloads, &self.labels, &self.stranded)
            == (&other.namespaces, &other.workloads, &other.labels, &other.stranded)
    }

    /// Drops the rows of all labels but these.
    pub fn keep_labels(&mut self, labels: &[Arc<str>]) {
        self.labels.retain(|[label, _]| labels.contains(label) || **label == *OTHER);
    }

    /// The account at this time, by what was held up to it: what an account has counted once is not counted again. Nothing changes where the
    /// account has counted that far already.
    #[must_use]
    pub fn advance(&self, now: Timestamp, spans: Vec<UsageSpan>, stranded: &[StrandedAmount]) -> Self {
        let (from, until) = (self.counted_until.as_second(), now.as_second());
        let mut account = self.clone();
        if until <= from {
            return account;
        }
        account.counted_until = whole(now);
        for (span, seconds) in apart(spans, from, until) {
            let held = HeldSeconds::of(span.held, seconds);
            let UsageSpan { namespace, workload: Workload { kind, name }, .. } = &span;
            account.namespaces.add([namespace.clone()], held, until);
            account.workloads.add([namespace.clone(), kind.clone(), name.clone()], held, until);
            span.labels.into_iter().for_each(|label| account.labels.add(label, held, until));
        }
        let seconds = (until - from).min(STRANDED_FOR).unsigned_abs();
        for StrandedAmount { model, reason, gpus } in stranded {
            let held = HeldParts { gpus: *gpus, ..HeldParts::default() };
            account.stranded.add([model.clone(), reason.clone()], HeldSeconds::of(held, seconds), until);
        }
        account
    }
}

/// The spans within a time, with the seconds of each in which no other span of the same pod counts.
fn apart(mut spans: Vec<UsageSpan>, from: i64, until: i64) -> Vec<(UsageSpan, u64)> {
    spans.sort_by(|one, other| (&one.pod, one.from, one.until).cmp(&(&other.pod, other.from, other.until)));
    let mut counted: Option<(Uid, i64)> = None;
    let mut apart = Vec::with_capacity(spans.len());
    for span in spans {
        let before = counted.take().filter(|(pod, _)| *pod == span.pod).map_or(from, |(_, until)| until);
        let begins = span.from.as_second().max(before);
        let ends = span.until.as_second().min(until);
        counted = Some((span.pod.clone(), ends.max(before)));
        if begins < ends {
            apart.push((span, (ends - begins).unsigned_abs()));
        }
    }
    apart
}

/// Without a part of a second.
fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
