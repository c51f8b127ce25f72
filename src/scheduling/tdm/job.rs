//! What evictions read of a pod: the job that it is one of, and how many of that job's pods may be away at a time.
//!
//! Volcano ed72c7c `pkg/scheduler/plugins/tdm/tdm.go` (`getMaxPodEvictNum`). Unlike there, a budget that can't be read lets no pod go, and a job
//! that has fewer pods than it must keep loses none.

use std::sync::Arc;

/// What evictions read of a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobMember {
    /// The job, by a name that no other has: its PodGroup, else its controller, else the pod itself.
    pub job: Arc<str>,
    /// The PodGroup, behind its namespace and a `/`.
    pub group: Option<Arc<str>>,
    /// Whether it may be evicted when its window closes.
    pub evictable: Evictable,
    /// The budget that the pod itself states.
    pub budget: Option<JobBudget>,
    /// Whether it is ready.
    pub readiness: Readiness,
}

/// Whether a pod may be evicted when its window closes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Evictable {
    /// It says that it is preemptable.
    Yes,
    /// It does not say so, or is bound to its node: a pod of a DaemonSet or one that the kubelet runs from a file would be back at once.
    No,
}

/// Whether a pod's condition `Ready` is true.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Readiness {
    /// It is.
    Ready,
    /// It is not.
    Unready,
}

/// How many pods, of as many as a job has.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Quantum {
    /// So many.
    Count(u32),
    /// So many percent of them, rounded up.
    Percent(u32),
}

impl Quantum {
    fn of(self, total: usize) -> usize {
        match self {
            Self::Count(count) => usize::try_from(count).unwrap_or(usize::MAX),
            Self::Percent(percent) => {
                total.saturating_mul(usize::try_from(percent).unwrap_or(usize::MAX)).div_ceil(100)
            }
        }
    }
}

/// How many pods of a job may be away at a time.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum JobBudget {
    /// So many must run.
    MinAvailable(Quantum),
    /// So many may not run.
    MaxUnavailable(Quantum),
    /// What is stated can't be read: no pod may go.
    Unreadable,
}

impl JobBudget {
    /// How many of a job's running pods may be evicted now: of `total` pods that have not ended, `running` run.
    pub fn allows(self, total: usize, running: usize) -> usize {
        match self {
            Self::MinAvailable(least) => running.saturating_sub(least.of(total)),
            Self::MaxUnavailable(most) => {
                most.of(total).saturating_sub(total.saturating_sub(running)).min(running)
            }
            Self::Unreadable => 0,
        }
    }
}

/// How many running pods of a job without a budget are evicted in one round.
pub(super) const WITHOUT_BUDGET: usize = 1;
