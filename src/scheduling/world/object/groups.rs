//! Groups of pods: which kinds there are, and what is known of a group.

use super::{Object, Objects};
use crate::scheduling::model::kind::Kind;
use crate::scheduling::model::{
    gang::{GangName, Group, GroupApi, Membership, Policy},
    tdm::job::JobBudget,
};

impl Kind {
    /// The kinds of groups of pods; the API server may serve none of them.
    pub const POD_GROUPS: &[Self] = &[
        Self::PodGroup,
        Self::CoschedulingPodGroup,
        Self::KubernetesPodGroup,
        Self::KubernetesPodGroupAlpha,
    ];

    /// The kinds of groups of pods of this API, the newest version first.
    pub const fn of_groups(api: GroupApi) -> &'static [Self] {
        match api {
            GroupApi::Volcano => &[Self::PodGroup],
            GroupApi::Coscheduling => &[Self::CoschedulingPodGroup],
            GroupApi::Kubernetes => &[Self::KubernetesPodGroup, Self::KubernetesPodGroupAlpha],
        }
    }

    /// Whose groups of pods these are.
    pub const fn group_api(self) -> Option<GroupApi> {
        match self {
            Self::PodGroup => Some(GroupApi::Volcano),
            Self::CoschedulingPodGroup => Some(GroupApi::Coscheduling),
            Self::KubernetesPodGroup | Self::KubernetesPodGroupAlpha => Some(GroupApi::Kubernetes),
            _ => None,
        }
    }
}

impl Objects {
    /// The budget that a PodGroup states for its job.
    pub fn job_budget(&self, group: &str) -> Option<JobBudget> {
        self.group(Kind::PodGroup, group)?.budget
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
