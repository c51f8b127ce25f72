//! What the status of a PodGroup of Kubernetes says of its pods.
//!
//! Source: k8s.io/api v0.36 `scheduling/v1alpha2/types.go` (`PodGroupScheduled`) and v0.37 `scheduling/v1beta1/types.go`
//! (`PodGroupInitiallyScheduled`); kubernetes v1.37 `pkg/scheduler/schedule_one_podgroup.go`, `submitPodGroupAlgorithmResult`.

use std::sync::Arc;

use jiff::Timestamp;

/// What has become of the pods of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GroupOutcome {
    /// As many as must be placed together were bound at one time. This lasts, whatever becomes of them later.
    Scheduled,
    /// They find no room together.
    Unschedulable,
    /// What the PodGroup or its pods say can't be served.
    Error,
}

/// The condition of a PodGroup that says whether its pods are placed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupCondition {
    /// What has become of them.
    pub outcome: GroupOutcome,
    /// Why, in words.
    pub message: String,
}

/// Which PodGroup, and what its status says.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GroupStatus {
    /// The PodGroup's uid.
    pub uid: Arc<str>,
    /// The condition, and since when the pods are placed or are not; `None`: the status has no such condition.
    pub stated: Option<(GroupCondition, Timestamp)>,
}

impl GroupOutcome {
    /// Whether pods are placed.
    pub fn is_scheduled(self) -> bool {
        self == Self::Scheduled
    }
}
