//! Saying in the status of PodGroups of Kubernetes whether their pods are placed.
//!
//! What is to be said follows from what pods hold and from the last attempt; beside that only what was written last is remembered of a group, so
//! that nothing is written twice.

use super::{GangRequest, GangView, Gangs};
use crate::scheduling::{
    model::{
        gang::{GangName, GroupApi, Membership, Policy},
        group_condition::{GroupCondition, GroupOutcome},
        group_statement::GroupStatement,
        name::Uid,
        pod::Placer,
    },
    plan::gang::{GangReason, Ungathered},
};

impl GangView<'_> {
    /// What the status of the group says for good once as many of its pods are bound as must be placed together, one of them by Berth; `None`: they are
    /// not.
    pub(in crate::scheduling::scheduler) fn scheduled(self, name: &GangName) -> Option<GroupCondition> {
        if name.api != GroupApi::Kubernetes {
            return None;
        }
        let (_, status) = self.snapshot.objects().group_status(&name.group)?;
        if status.stated.as_ref().is_some_and(|(stated, _)| stated.outcome.is_scheduled()) {
            return None;
        }
        let Membership::Policy(policy) = self.snapshot.objects().membership(name) else { return None };
        let survey = self.survey(name);
        let is_scheduled = match policy {
            Policy::Gang(gang) => gang.is_whole(&survey.bound),
            Policy::Alone => survey.bound.total() > 0,
            Policy::Unserved(_) => false,
        };
        let is_ours = |uid: &Uid| self.pods.get(uid).is_some_and(|entry| entry.info.placer == Placer::Berth);
        (is_scheduled && survey.evictable.iter().any(is_ours))
            .then(|| GroupCondition { outcome: GroupOutcome::Scheduled, message: String::new() })
    }

    /// What is to be written so that the status of the group says this; `None`: it does, or there is no such PodGroup.
    pub(in crate::scheduling::scheduler) fn statement(
        self,
        name: &GangName,
        condition: &GroupCondition,
    ) -> Option<GroupStatement> {
        let (kind, status) = self.snapshot.objects().group_status(&name.group)?;
        GroupStatement::new(kind, &name.group, status, condition)
    }
}

impl Gangs {
    /// Whether this is to be written now: it was not, and it was not written for the same PodGroup that its pods are placed.
    pub(in crate::scheduling::scheduler) fn begin_to_state(
        &mut self,
        name: &GangName,
        statement: &GroupStatement,
    ) -> bool {
        let known = self.stated.get(name).filter(|known| known.uid == statement.uid);
        let is_known = known.is_some_and(|known| {
            known.condition.outcome.is_scheduled() || known.condition == statement.condition
        });
        if !is_known {
            self.stated.insert(name.clone(), statement.clone());
        }
        !is_known
    }
}

/// What the group's status is to say of an attempt that led to these requests; `None`: nothing.
pub(in crate::scheduling::scheduler) fn refused(
    requests: &[GangRequest],
) -> Option<(GangName, GroupCondition)> {
    let of = |name: &GangName, outcome, message| {
        let condition = GroupCondition { outcome, message };
        (name.api == GroupApi::Kubernetes).then(|| (name.clone(), condition))
    };
    requests.iter().find_map(|request| match request {
        GangRequest::Refuse { why, .. } => of(why.name(), GroupOutcome::Unschedulable, why.summary()),
        GangRequest::Postpone(_, GangReason::Ungathered { name, why: Ungathered::Unserved(why), .. }) => {
            of(name, GroupOutcome::Error, why.to_string())
        }
        _ => None,
    })
}
