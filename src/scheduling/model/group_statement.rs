//! What is to be written into the status of a PodGroup of Kubernetes.

use std::sync::Arc;

use jiff::Timestamp;

use super::{
    group_condition::{GroupCondition, GroupStatus},
    kind::PodGroupKind,
};

/// A condition that is to be written.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GroupStatement {
    /// The kind of PodGroup, which names the version of the API.
    pub kind: PodGroupKind,
    /// The PodGroup's full name.
    pub group: Arc<str>,
    /// Its uid.
    pub uid: Arc<str>,
    /// What is to be said.
    pub condition: GroupCondition,
    /// Since when the pods are placed or are not, where the status says that already.
    pub since: Option<Timestamp>,
}

impl GroupStatement {
    /// What is to be written so that a status says this; `None`: it does, or says for good that the pods were placed.
    pub fn new(
        kind: PodGroupKind,
        group: &Arc<str>,
        status: &GroupStatus,
        condition: &GroupCondition,
    ) -> Option<Self> {
        let stated = status.stated.as_ref();
        if stated.is_some_and(|(stated, _)| stated.outcome.is_scheduled() || stated == condition) {
            return None;
        }
        let is_same = |(stated, _): &&(GroupCondition, Timestamp)| {
            stated.outcome.is_scheduled() == condition.outcome.is_scheduled()
        };
        Some(Self {
            kind,
            group: group.clone(),
            uid: status.uid.clone(),
            condition: condition.clone(),
            since: stated.filter(is_same).map(|(_, since)| *since),
        })
    }
}
