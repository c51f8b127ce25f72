//! Saying in the status of PodGroups of Kubernetes whether their pods are placed.
//!
//! What is to be said follows from what pods hold and from the last attempt; beside that only what was written last is remembered of a group, so
//! that nothing is written twice.

use std::{collections::BTreeMap, sync::Arc};

use super::{GangRequest, GangView, Gangs, view::Survey};
use crate::scheduling::{
    model::{
        gang::{Gang, GangName, GroupApi, Membership, Policy},
        group_condition::{GroupCondition, GroupOutcome},
        group_statement::GroupStatement,
        name::Uid,
        pod::Placer,
    },
    plan::gang::{GangReason, Ungathered},
};

impl GangView<'_> {
    /// What the status of each PodGroup of the gang says for good once as many of its pods are bound as must be placed together, one of them by Berth. Of
    /// a PodGroup in a tree, those of the groups that it is in must be bound, too. kube-scheduler 1.37 writes no condition of a CompositePodGroup
    /// (`schedule_one_podgroup.go`, `submitPodGroupAlgorithmResult`).
    pub(in crate::scheduling::scheduler) fn scheduled(
        self,
        name: &GangName,
        found: Option<&(Arc<Gang>, Survey)>,
    ) -> Vec<(GangName, GroupCondition)> {
        let tree = found.and_then(|(gang, survey)| Some((gang.groups.as_ref()?, survey)));
        let wholes = tree.map(|(tree, survey)| (tree, tree.wholes(&survey.bound)));
        let is_bound = |leaf: &GangName| match &wholes {
            Some((tree, wholes)) => {
                let mut chain = tree.chain(leaf).peekable();
                chain.peek().is_some() && chain.all(|at| wholes[at])
            }
            None => self.is_bound(leaf, found),
        };
        let leaves = self.snapshot.objects().groups().leaves(name).into_iter();
        let leaves = leaves.filter(|leaf| leaf.api == GroupApi::Kubernetes && self.is_unstated(leaf));
        let scheduled = leaves.filter(|leaf| is_bound(leaf) && self.has_placed_one(leaf));
        scheduled
            .map(|leaf| (leaf, GroupCondition { outcome: GroupOutcome::Scheduled, message: String::new() }))
            .collect()
    }

    /// Whether the PodGroup is there, and its status does not say that its pods were placed.
    fn is_unstated(self, leaf: &GangName) -> bool {
        let status = self.snapshot.objects().group_status(&leaf.group);
        status.is_some_and(|(_, status)| {
            status.stated.as_ref().is_none_or(|(stated, _)| !stated.outcome.is_scheduled())
        })
    }

    /// Whether as many pods of a PodGroup that is in no other are bound as must be placed together.
    fn is_bound(self, leaf: &GangName, found: Option<&(Arc<Gang>, Survey)>) -> bool {
        match (found, self.snapshot.objects().membership(leaf)) {
            (Some((gang, survey)), _) => gang.is_whole(&survey.bound),
            (None, Membership::Policy(Policy::Alone)) => self.survey(leaf).bound.total() > 0,
            (None, _) => false,
        }
    }

    /// Whether Berth has placed one of the PodGroup's pods that are bound.
    fn has_placed_one(self, leaf: &GangName) -> bool {
        let is_ours = |uid: &Uid| self.pods.get(uid).is_some_and(|entry| entry.info.placer == Placer::Berth);
        self.survey(leaf).evictable.iter().any(is_ours)
    }

    /// What the status of each PodGroup is to say of an attempt that led to these requests.
    pub(in crate::scheduling::scheduler) fn refused(
        self,
        requests: &[GangRequest],
    ) -> BTreeMap<GangName, GroupCondition> {
        let mut refused = BTreeMap::new();
        for request in requests {
            let (uid, outcome, message) = match request {
                GangRequest::Refuse { pod, why, .. } => (pod, GroupOutcome::Unschedulable, why.summary()),
                GangRequest::Postpone(pod, GangReason::Ungathered { why: Ungathered::Unserved(why), .. }) => {
                    (pod, GroupOutcome::Error, why.to_string())
                }
                _ => continue,
            };
            let entry = self.pods.get(uid);
            let member = entry.and_then(|entry| entry.info.groups.gang());
            if let Some(member) = member.filter(|member| member.gang.api == GroupApi::Kubernetes) {
                refused.entry(member.gang.clone()).or_insert(GroupCondition { outcome, message });
            }
        }
        refused
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
