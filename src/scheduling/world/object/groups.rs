//! Groups of pods: what is known of a group.

use super::{Object, Objects};
use crate::scheduling::model::{
    gang::{GangName, Group, Membership, Policy},
    kind::{Kind, PodGroupKind},
    tdm::job::JobBudget,
};

impl Objects {
    /// The budget that a PodGroup states for its job.
    pub fn job_budget(&self, group: &str) -> Option<JobBudget> {
        self.group(Kind::PodGroup(PodGroupKind::Volcano), group)?.budget
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
