//! Groups of pods: what is known of a group.

use super::{Object, Objects};
use crate::scheduling::model::{
    claim_use::{ClaimConsumer, ResourceClaimUse},
    gang::{GangName, Group, GroupPreemption, Membership, Policy},
    group_condition::GroupStatus,
    kind::{Kind, PodGroupKind},
    tdm::job::JobBudget,
};

impl Objects {
    /// The budget that a PodGroup states for its job.
    pub fn job_budget(&self, group: &str) -> Option<JobBudget> {
        self.group(Kind::PodGroup(PodGroupKind::Volcano), group)?.budget
    }

    /// What a PodGroup of Kubernetes says of preemption, by its full name; `None`: there is no such PodGroup.
    pub fn group_preemption(&self, group: &str) -> Option<GroupPreemption> {
        Some(self.of_kubernetes(group)?.1.preemption)
    }

    /// What the status of a PodGroup of Kubernetes says, by its full name, and which kind it is of; `None`: there is no such PodGroup.
    pub fn group_status(&self, group: &str) -> Option<(PodGroupKind, &GroupStatus)> {
        let (kind, group) = self.of_kubernetes(group)?;
        Some((kind, &group.status))
    }

    /// Whom the status of a claim names as its user, where a pod of this PodGroup of Kubernetes uses it (k8s.io/dynamic-resource-allocation v0.37
    /// `resourceclaim/resourceclaim.go`, `BindTo`); `None`: the pod is in no such group.
    pub fn claim_consumer(&self, group: Option<&str>, used: &ResourceClaimUse) -> ClaimConsumer {
        let Some((name, (_, group))) = group.and_then(|name| Some((name, self.of_kubernetes(name)?))) else {
            return ClaimConsumer::Pod;
        };
        if !group.has_claim(used) {
            return ClaimConsumer::Pod;
        }
        let name = name.split_once('/').map_or(name, |(_, name)| name);
        ClaimConsumer::PodGroup { name: name.into(), uid: group.status.uid.clone() }
    }

    fn of_kubernetes(&self, name: &str) -> Option<(PodGroupKind, &Group)> {
        let kinds = [PodGroupKind::Kubernetes, PodGroupKind::KubernetesAlpha];
        kinds.into_iter().find_map(|kind| Some((kind, self.group(Kind::PodGroup(kind), name)?)))
    }

    fn group(&self, kind: Kind, name: &str) -> Option<&Group> {
        match self.get(kind, name)? {
            Object::PodGroup(_, _, group) => Some(group),
            _ => None,
        }
    }

    /// How the pods of this group are placed, by its PodGroup.
    pub fn membership(&self, gang: &GangName) -> Membership {
        let kinds = Kind::of_groups(gang.api);
        if let Some(group) = kinds.iter().find_map(|kind| self.group(*kind, &gang.group)) {
            return Membership::Policy(group.policy.clone());
        }
        if !self.are_listed(kinds) {
            return Membership::Unlisted;
        }
        if kinds.iter().all(|kind| self.is_unserved(*kind)) {
            return Membership::Policy(Policy::Alone);
        }
        Membership::NotFound
    }
}
