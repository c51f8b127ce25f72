//! Since when a pod holds what it holds, and whose it is.

use std::sync::Arc;

use jiff::Timestamp;

use super::workload::Workload;
use crate::object::Pod;

/// Since when a bound pod holds its shares, and whose it is: facts of the pod itself, so that every replica reads the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tenure {
    /// What made the pod; a pod that no controller made is its own.
    pub workload: Arc<Workload>,
    /// When it was bound, by its condition `PodScheduled`; where that does not tell, when it was started or created.
    pub since: Timestamp,
}

impl Tenure {
    /// What a bound pod says; `None`: it tells no time at all.
    pub fn of_pod(pod: &Pod) -> Option<Self> {
        let scheduled = pod.status.condition("PodScheduled").filter(|condition| condition.status == "True");
        let bound = scheduled.and_then(|condition| condition.last_transition_time);
        let since = bound.or(pod.status.start_time).or(pod.metadata.creation_timestamp)?;
        Some(Self { workload: Arc::new(Workload::of_pod(pod)), since })
    }
}
