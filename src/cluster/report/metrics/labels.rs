//! The labels of the binder's metrics.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
pub(super) enum AnswerOutcome {
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    success,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    throttled,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    doubt,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    refused,
}

impl AnswerOutcome {
    pub(super) const ALL: [Self; 4] = [Self::success, Self::throttled, Self::doubt, Self::refused];
}

/// What is written to the API server.
#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
#[expect(non_camel_case_types, reason = "label values are lower case")]
pub enum Written {
    /// A node's lock is taken.
    lock,
    /// A node's lock is given back.
    unlock,
    /// A pod is bound.
    binding,
    /// A pod's condition is set.
    condition,
    /// A pod's claim of a volume is bound, or given a node.
    volume,
    /// A pod's claim of devices is given devices or a user, or loses them.
    claim,
    /// The assignment of an ended pod is withdrawn.
    withdrawal,
    /// Which node is kept for a pod.
    nomination,
    /// A pod is deleted to make room for another.
    preemption,
    /// A pod is evicted from a node of a closed zone.
    eviction,
    /// An Event.
    event,
    /// What was used.
    usage,
}

impl Written {
    pub(super) const ALL: [Self; 12] = [
        Self::lock,
        Self::unlock,
        Self::binding,
        Self::condition,
        Self::volume,
        Self::claim,
        Self::withdrawal,
        Self::nomination,
        Self::preemption,
        Self::eviction,
        Self::event,
        Self::usage,
    ];
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct WriteLabels {
    pub(super) kind: Written,
}

/// The results of `schedule_attempts_total` of kube-scheduler.
#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
#[expect(non_camel_case_types, reason = "label values are lower case")]
pub(super) enum AttemptResult {
    scheduled,
    unschedulable,
    error,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct AttemptLabels {
    pub(super) result: AttemptResult,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct OutcomeLabels {
    pub(super) outcome: AnswerOutcome,
}

#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct NodeLabels {
    pub(super) node: String,
}

#[derive(Clone, Copy, Debug, EncodeLabelValue, Eq, Hash, PartialEq)]
pub(super) enum QueueLabel {
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    active,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    backoff,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    unschedulable,
    #[expect(non_camel_case_types, reason = "label values are lower case")]
    in_line,
}

#[derive(Clone, Copy, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub(super) struct QueueLabels {
    pub(super) queue: QueueLabel,
}
