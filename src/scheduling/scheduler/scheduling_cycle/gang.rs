//! Gangs: which pods belong to each, and how far it is.
//!
//! The pods of PodGroups that are in a CompositePodGroup are one gang, which is called by the root of the tree of groups. Each group of the tree is
//! completed and rolled back by itself, too.
//!
//! What a gang holds is asked of the ledger. Beside it, only two things are remembered of a gang: since when some of its pods are bound and
//! others are not, and whether it was whole at one time. [`Gangs`] owns that; a [`GangView`] reads it beside what else is known, and a
//! [`GangTrial`] looks for places on trial. What follows for pods is requested ([`GangRequest`]) and carried out by the scheduler.

mod condition;
mod gather;
mod left_over;
mod mend;
mod request;
mod trial;
mod unfinished;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::scheduling_queue::Pace;
use crate::scheduling::{
    model::{
        gang::{Gang, GangName},
        group_statement::GroupStatement,
        name::Uid,
        pod::PodInfo,
    },
    plan::gang::Pool,
    snapshot::Snapshot,
};
use unfinished::UnfinishedAttempts;

pub(in crate::scheduling::scheduler) use gather::Gathering;
pub(in crate::scheduling::scheduler) use left_over::LeftOver;
pub(in crate::scheduling::scheduler) use request::GangRequest;
pub(in crate::scheduling::scheduler) use trial::{GangOutcome, GangTrial, is_in_vain};
pub(in crate::scheduling::scheduler) use unfinished::UnfinishedAttempt;
pub(in crate::scheduling::scheduler) use view::GangView;

/// How far a gang is of which pods were bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GangProgress {
    /// Some of the pods that must run together are bound since then, others are not.
    PartlyBound(Timestamp),
    /// The same, but it was found so after a start, with pods that have started: it may have been whole before others ended. So it is completed
    /// first, and not rolled back.
    FoundPartlyBound(Timestamp),
    /// They were all bound at one time.
    Complete,
    /// Its pods are evicted, since not all could be bound; those that are left are evicted again then.
    RollingBack(Timestamp),
}

/// Every gang with pods.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Gangs {
    /// For how long bound pods wait for the others; `None`: every pod is placed alone.
    timeout: Option<SignedDuration>,
    /// The pods of each PodGroup.
    members: BTreeMap<GangName, BTreeSet<Uid>>,
    /// The groups that each PodGroup with pods was in when something had changed of it, the root of its tree last.
    above: BTreeMap<GangName, Vec<GangName>>,
    progress: BTreeMap<GangName, GangProgress>,
    /// When gangs are rolled back, or no longer come first.
    deadlines: BTreeMap<GangName, Timestamp>,
    /// Gangs of which something has changed.
    touched: BTreeSet<GangName>,
    /// Whether no pod is ever decided: nothing follows from a change.
    stands_by: bool,
    /// Attempts to place a gang that are to go on.
    unfinished: UnfinishedAttempts,
    /// What was written last into the status of each PodGroup of Kubernetes.
    stated: BTreeMap<GangName, GroupStatement>,
}

impl Gangs {
    /// Of a scheduler that decides pods at this pace.
    pub(in crate::scheduling::scheduler) fn new(timeout: Option<SignedDuration>, pace: Pace) -> Self {
        Self { timeout, stands_by: pace == Pace::Standby, ..Self::default() }
    }

    /// Whether pods are placed together at all.
    pub(in crate::scheduling::scheduler) fn has_timeout(&self) -> bool {
        self.timeout.is_some()
    }

    /// Whether pods of the pod's gang are bound and wait for others.
    pub(in crate::scheduling::scheduler) fn is_partly_bound(&self, pod: &PodInfo) -> bool {
        pod.groups.gang().is_some_and(|member| self.comes_first(&member.gang))
    }

    /// Whether the missing pods of the PodGroup are decided before all other pods: it is partly bound, or a group is that it is in.
    fn comes_first(&self, group: &GangName) -> bool {
        let is_partly_bound = |gang: &GangName| {
            let progress = self.progress.get(gang);
            matches!(progress, Some(GangProgress::PartlyBound(_) | GangProgress::FoundPartlyBound(_)))
        };
        is_partly_bound(group) || self.above.get(group).into_iter().flatten().any(is_partly_bound)
    }

    /// Whether the pods of the group are evicted, since not all could be bound: none is placed before they are gone.
    fn is_rolling_back(&self, gang: &GangName) -> bool {
        matches!(self.progress.get(gang), Some(GangProgress::RollingBack(_)))
    }

    /// For how long bound pods of the gang wait for the others; `None`: every pod is placed alone.
    fn timeout_of(&self, gang: &Gang) -> Option<SignedDuration> {
        let by_settings = self.timeout?;
        Some(gang.timeout.unwrap_or(by_settings))
    }

    /// When the next gang is rolled back, or no longer comes first.
    pub(in crate::scheduling::scheduler) fn deadline(&self) -> Option<Timestamp> {
        self.deadlines.values().min().copied()
    }

    /// Every PodGroup with pods.
    pub(in crate::scheduling::scheduler) fn names(&self) -> impl Iterator<Item = &GangName> {
        self.members.keys()
    }

    /// The pods of a PodGroup.
    fn members<'a>(&'a self, group: &GangName) -> impl Iterator<Item = &'a Uid> + use<'a> {
        self.members.get(group).into_iter().flatten()
    }

    /// Takes in which gang a pod belongs to; the gang, if the pod is new to it or is not as it was `known` any more.
    pub(in crate::scheduling::scheduler) fn note_member(
        &mut self,
        pod: &PodInfo,
        known: Option<&PodInfo>,
    ) -> Option<GangName> {
        self.timeout?;
        let gang = &pod.groups.gang()?.gang;
        let is_same = |known: &PodInfo| {
            (&known.claim, &known.holding, known.stage, &known.lifetime.leaving)
                == (&pod.claim, &pod.holding, pod.stage, &pod.lifetime.leaving)
        };
        if known.is_some_and(is_same) {
            return None;
        }
        self.members.entry(gang.clone()).or_default().insert(pod.key.uid.clone());
        Some(gang.clone())
    }

    /// A pod is gone, and its gang has one pod less.
    pub(in crate::scheduling::scheduler) fn lose_member(&mut self, pod: &PodInfo) {
        let Some(member) = pod.groups.gang() else { return };
        if let Some(members) = self.members.get_mut(&member.gang) {
            members.remove(&pod.key.uid);
            if members.is_empty() {
                self.members.remove(&member.gang);
                self.forget(&member.gang);
                for above in self.above.remove(&member.gang).into_iter().flatten() {
                    self.touch(above);
                }
                return;
            }
        }
        self.touch(member.gang.clone());
    }

    /// The gang has no pods any more.
    pub(in crate::scheduling::scheduler) fn forget(&mut self, gang: &GangName) {
        self.unfinished.forget(gang);
        self.stated.remove(gang);
        self.set_progress(gang, None, SignedDuration::ZERO);
    }

    /// Takes in which groups a PodGroup is in, the root last. What was the root, or is it now, is to be looked at.
    pub(in crate::scheduling::scheduler) fn note_above(&mut self, group: &GangName, above: &[GangName]) {
        if !self.members.contains_key(group) {
            return;
        }
        let before = if above.is_empty() {
            self.above.remove(group)
        } else {
            self.above.insert(group.clone(), above.to_vec())
        };
        let before = before.unwrap_or_default();
        let gone = before.iter().filter(|group| !above.contains(group));
        let touched: Vec<GangName> = above.last().into_iter().chain(gone).cloned().collect();
        for group in touched {
            self.touch(group);
        }
    }

    /// Something has changed of a gang.
    pub(in crate::scheduling::scheduler) fn touch(&mut self, gang: GangName) {
        if !self.stands_by {
            self.touched.insert(gang);
        }
    }

    /// Something has changed of the pod's gang.
    pub(in crate::scheduling::scheduler) fn touch_gang_of(&mut self, pod: &PodInfo) {
        if let Some(member) = pod.groups.gang().filter(|_| self.timeout.is_some()) {
            self.touch(member.gang.clone());
        }
    }

    /// A gang of which something has changed since the last time; `None`: no other.
    pub(in crate::scheduling::scheduler) fn pop_touched(&mut self) -> Option<GangName> {
        self.touched.pop_first()
    }

    /// Takes in that these PodGroups have changed, or a group has that they are in; the pods that are to be decided again if they wait.
    pub(in crate::scheduling::scheduler) fn note_groups(&mut self, groups: BTreeSet<GangName>) -> Vec<Uid> {
        let mut pods = Vec::new();
        for group in groups {
            let before = pods.len();
            pods.extend(self.members(&group).cloned());
            if pods.len() > before {
                self.touch(group);
            }
        }
        pods
    }

    /// The attempt to place these pods that is to go on, or else a new one.
    pub(in crate::scheduling::scheduler) fn take_attempt(
        &mut self,
        name: &GangName,
        pool: &Pool<'_>,
    ) -> UnfinishedAttempt {
        self.unfinished.take(name, pool)
    }

    /// The attempt to place these pods goes on in a later turn.
    pub(in crate::scheduling::scheduler) fn put_off(
        &mut self,
        pool: &Pool<'_>,
        attempt: UnfinishedAttempt,
        snapshot: &Snapshot,
    ) {
        if let Some(applicant) = pool.applicants.first() {
            self.unfinished.put_off(&applicant.demand.footprint.namespace, attempt, snapshot);
        }
    }

    /// Sets how far a gang is; its deadline moves along.
    fn set_progress(&mut self, name: &GangName, progress: Option<GangProgress>, timeout: SignedDuration) {
        let deadline = match progress {
            Some(GangProgress::PartlyBound(since) | GangProgress::FoundPartlyBound(since)) => {
                since.checked_add(timeout).ok()
            }
            Some(GangProgress::RollingBack(again)) => Some(again),
            Some(GangProgress::Complete) | None => None,
        };
        match progress {
            Some(progress) => self.progress.insert(name.clone(), progress),
            None => self.progress.remove(name),
        };
        match deadline {
            Some(at) => self.deadlines.insert(name.clone(), at),
            None => self.deadlines.remove(name),
        };
    }
}
