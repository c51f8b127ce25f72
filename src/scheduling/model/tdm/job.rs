//! What evictions read of a pod: the job that it is one of, and how many of that job's pods may be away at a time.
//!
//! Volcano ed72c7c `pkg/scheduler/plugins/tdm/tdm.go` (`getMaxPodEvictNum`). Unlike there, a budget that can't be read counts as none, and a
//! job that has fewer pods than it must keep loses none.

use std::sync::Arc;

use crate::scheduling::model::name::Uid;

/// What evictions read of a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JobMember {
    /// Its job.
    pub job: JobName,
    /// The PodGroup, behind its namespace and a `/`.
    pub group: Option<Arc<str>>,
    /// Whether it may be evicted when its window closes.
    pub evictable: Evictable,
    /// The budget that the pod itself states; `None` also where that can't be read.
    pub budget: Option<JobBudget>,
    /// Whether it is ready.
    pub readiness: Readiness,
}

/// A job, by a name that no pod of another namespace can give itself: what a pod says of its owner is believed in its own namespace alone,
/// since everyone who creates pods can write it.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum JobName {
    /// The pods of a PodGroup, whose name stands behind its namespace and a `/`.
    PodGroup(Arc<str>),
    /// The pods of a namespace that name the controller of this uid.
    Controller(Arc<str>, Arc<str>),
    /// A pod alone.
    Pod(Uid),
}

/// Whether a pod may be evicted when its window closes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Evictable {
    /// It says that it is preemptable, or said so when it was bound.
    Yes,
    /// Unless it is one of this DaemonSet, which would make it again at once.
    UnlessOf(DaemonSetName),
    /// It says nothing of the kind, or the kubelet runs it from a file and would show it again at once.
    No,
}

/// A DaemonSet that a pod names as its controller.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DaemonSetName {
    /// Its name, behind the pod's namespace and a `/`.
    pub name: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
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
}

impl JobBudget {
    /// How many of a job's running pods may be evicted now: of `total` pods that have not ended, `running` run.
    pub fn allows(self, total: usize, running: usize) -> usize {
        match self {
            Self::MinAvailable(least) => running.saturating_sub(least.of(total)),
            Self::MaxUnavailable(most) => {
                most.of(total).saturating_sub(total.saturating_sub(running)).min(running)
            }
        }
    }
}

/// How many running pods of a job without a budget are evicted in one round.
pub(in crate::scheduling) const WITHOUT_BUDGET: usize = 1;
