//! What preemption reads of a pod, whether it preempts others or is a victim.

use std::{fmt, sync::Arc};

use jiff::Timestamp;

/// Whether a pod may take the room of pods of lower priority: `spec.preemptionPolicy`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum PreemptionPolicy {
    /// It may.
    #[default]
    PreemptLowerPriority,
    /// It waits until they end.
    Never,
}

/// As `spec.preemptionPolicy` has it.
impl fmt::Display for PreemptionPolicy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::PreemptLowerPriority => "PreemptLowerPriority",
            Self::Never => "Never",
        })
    }
}

/// Whether a pod is being deleted, and for what.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Deletion {
    /// It is not.
    #[default]
    None,
    /// It is, for any reason but preemption.
    Requested,
    /// A scheduler deletes it to make room for another pod: its condition `DisruptionTarget` has the reason `PreemptionByScheduler`.
    Preempted,
}

/// What decides whether a pod preempts others, and whether, and in which order, it is a victim of preemption.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Importance {
    /// Its priority. A pod is a victim of pods of higher priority only.
    pub priority: i32,
    /// When it was started; `None`: it is not yet.
    pub started: Option<Timestamp>,
    /// Whether it is marked as preemptable (`volcano.sh/preemptable: "true"`).
    pub preemptable: bool,
    /// Whether it is being deleted.
    pub deletion: Deletion,
    /// Whether it may preempt pods of lower priority.
    pub preemption_policy: PreemptionPolicy,
    /// The full name of its PodGroup of Kubernetes, which may say that its pods are disrupted together.
    pub group: Option<Arc<str>>,
}
