//! Groups of pods: what is known of a group.

use super::{Object, Objects};
use crate::scheduling::model::{
    gang::{GangName, Group, GroupApi, GroupPreemption, Membership, Policy},
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
        let mut kinds = Kind::of_groups(GroupApi::Kubernetes).iter();
        Some(kinds.find_map(|kind| self.group(*kind, group))?.preemption)
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
