//! Whether enough pods of a gang are there to be decided together, and what those are told that find no room.

use std::{cmp::Reverse, sync::Arc};

use jiff::Timestamp;

use super::{GangRequest, GangView, view::Survey};
use crate::scheduling::{
    model::{
        gang::{Gang, GangName, Membership, Policy, tree::GroupTree},
        name::Uid,
    },
    plan::gang::{Applicant, GangReason, GangRefusal, GangShortfall, Pool, Ungathered},
    scheduler::scheduling_cycle::{scheduling_queue::PodProgress, unlisted::unlisted_kinds},
};

/// What becomes of a pod whose turn has come, as far as its gang decides that.
pub(in crate::scheduling::scheduler) enum Gathering {
    /// It is decided alone.
    Alone,
    /// It can't be decided, or too few pods are there.
    Postponed(Vec<GangRequest>),
    /// It is decided together with others.
    Together(Box<Gathered>),
}

/// The pods of a gang that are decided together.
pub(in crate::scheduling::scheduler) struct Gathered {
    /// The gang.
    pub(in crate::scheduling::scheduler) name: GangName,
    /// In a tree of groups, the part of it that is to be placed.
    part: usize,
    /// What must hold of it.
    gang: Arc<Gang>,
    /// What its pods hold.
    survey: Survey,
    /// The pods that are to be placed.
    applicants: Vec<Applicant>,
}

impl Gathered {
    /// The gang, and its pods in one pool for this long.
    pub(in crate::scheduling::scheduler) fn with_pool<T>(
        self,
        then: impl FnOnce(&GangName, &Pool<'_>) -> T,
    ) -> T {
        let Self { name, part, gang, survey, applicants } = self;
        let Survey { placed, nodes, .. } = survey;
        then(&name, &Pool { gang: &gang, placed, nodes, applicants, part })
    }
}

impl GangView<'_> {
    /// With which others the pod is decided.
    pub(in crate::scheduling::scheduler) fn gather(self, uid: &Uid) -> Gathering {
        let Some((member, membership)) = self.membership(uid) else { return Gathering::Alone };
        let name = &self.root(&member.gang);
        let alone = |why| Gathering::Postponed(vec![postponed(name, None, uid, &why)]);
        let gang = match membership {
            Membership::Policy(Policy::Gang(gang)) => gang,
            Membership::Policy(Policy::Alone) => return Gathering::Alone,
            Membership::NotFound => return alone(Ungathered::NotFound),
            Membership::NoParent { parent, child } => return alone(Ungathered::NoParent { parent, child }),
            Membership::Unlisted(api) => return alone(Ungathered::Unlisted(api)),
            Membership::Policy(Policy::Unserved(why)) => return alone(Ungathered::Unserved(why)),
        };
        let survey = self.survey(name);
        let together = |pods: &[&Uid], why: &Ungathered| {
            let pods = pods.iter().map(|uid| postponed(name, Some(&gang), uid, why));
            Gathering::Postponed(pods.collect())
        };
        if self.is_rolled_back(&member.gang) {
            return together(&[uid], &Ungathered::RollingBack);
        }
        if gang.room(&survey.placed) == 0 {
            return together(&[uid], &Ungathered::Full(survey.placed.total()));
        }
        if gang.is_settled(&survey.placed, member) {
            return Gathering::Alone;
        }
        let (part, mut applicants) = self.applicants(name, uid, &gang, &survey);
        let all = survey.placed.clone().beside(applicants.iter().map(|applicant| &applicant.member));
        let Some(tree) = &gang.groups else {
            if !gang.is_whole(&all) {
                let pods: Vec<_> = applicants.iter().map(Applicant::uid).collect();
                return together(&pods, &Ungathered::TooFew(all.total()));
            }
            return Gathering::Together(Box::new(Gathered {
                name: name.clone(),
                part,
                gang,
                survey,
                applicants,
            }));
        };
        let wholes = tree.wholes(&all);
        // From the pod's group up to the part that is to be placed, each must have enough pods.
        let lacking =
            |group: &GangName| tree.chain(group).filter(|at| tree.is_below(part, *at) && !wholes[*at]).last();
        if let Some(at) = lacking(&member.gang) {
            let why = Ungathered::TooFewOfGroup(tree.node(at).name.clone(), tree.lacking(at, &all).into());
            let of_part: Vec<_> =
                applicants.iter().map(Applicant::uid).filter(|mate| at == part || *mate == uid).collect();
            return together(&of_part, &why);
        }
        applicants.retain(|applicant| lacking(&applicant.member.gang).is_none());
        Gathering::Together(Box::new(Gathered { name: name.clone(), part, gang, survey, applicants }))
    }

    /// The pods of a gang that are to be placed, in the order of the queue: this one and, unless the gang is whole, all others that wait. In a tree of
    /// groups these are the pods of the largest part around this one that has too few pods; where that is.
    fn applicants(self, name: &GangName, uid: &Uid, gang: &Gang, survey: &Survey) -> (usize, Vec<Applicant>) {
        let group_of = |uid: &Uid| Some(&self.pods.get(uid)?.info.groups.gang()?.gang);
        let (part, whole) = match &gang.groups {
            Some(tree) => {
                let part = group_of(uid).and_then(|group| tree.part_of(group, &survey.placed));
                let part = part.unwrap_or(GroupTree::ROOT);
                (part, tree.wholes(&survey.placed)[part])
            }
            None => (GroupTree::ROOT, gang.is_whole(&survey.placed)),
        };
        let is_of_part = |mate: &&Uid| {
            gang.groups
                .as_ref()
                .is_none_or(|tree| group_of(mate).is_some_and(|group| tree.chain(group).any(|at| at == part)))
        };
        let mut applicants: Vec<_> = self
            .members(name)
            .filter(is_of_part)
            .filter_map(|mate| {
                let entry = self.pods.get(mate)?;
                let waits = matches!(
                    self.queue.progress(mate),
                    PodProgress::Queued
                        | PodProgress::Waiting(_)
                        | PodProgress::OverQuota
                        | PodProgress::Ungathered
                        | PodProgress::Comparing
                );
                let waits =
                    waits && !whole && unlisted_kinds(&entry.info, self.snapshot.objects()).is_empty();
                let holds = self.snapshot.ledger().get(mate).is_some();
                let demand = self.snapshot.nominations().demand(&entry.info);
                let demand = demand.filter(|_| (waits || mate == uid) && !holds)?;
                if self.contradiction(&entry.info).is_some() {
                    return None;
                }
                let member = entry.info.groups.gang()?.clone();
                let place = (Reverse(demand.priority), entry.info.lifetime.created, entry.seen);
                Some((place, Applicant { demand, member }))
            })
            .collect();
        applicants.sort_by_key(|(place, _)| *place);
        (part, applicants.into_iter().map(|(_, applicant)| applicant).collect())
    }

    /// A gang of which pods wait, to find out whether they would find room together: that ought never to be. `None`: none waits, or one is in the
    /// queue, and the gang is decided with that.
    pub(in crate::scheduling::scheduler) fn waiting(self, name: &GangName) -> Option<(Uid, Gathered)> {
        let progress = |uid: &Uid| self.queue.progress(uid);
        if self.members(name).any(|uid| *progress(uid) == PodProgress::Queued) {
            return None;
        }
        let waits = |uid: &&Uid| matches!(progress(uid), PodProgress::Waiting(_) | PodProgress::OverQuota);
        let uid = self.members(name).find(waits)?;
        let Some((member, Membership::Policy(Policy::Gang(gang)))) = self.membership(uid) else {
            return None;
        };
        if self.is_rolled_back(&member.gang) {
            return None;
        }
        let survey = self.survey(name);
        let (part, applicants) = self.applicants(name, uid, &gang, &survey);
        Some((uid.clone(), Gathered { name: name.clone(), part, gang, survey, applicants }))
    }

    /// The pods find no room together: each waits for what may help it, and says what is missing. Nothing is preempted for them before `paused`.
    pub(in crate::scheduling::scheduler) fn refusals(
        self,
        name: &GangName,
        pool: &Pool<'_>,
        shortfall: &GangShortfall,
        paused: Option<Timestamp>,
    ) -> Vec<GangRequest> {
        let named = |uid: &Uid| match self.pods.get(uid) {
            Some(entry) => entry.info.key.name.clone(),
            None => uid.clone(),
        };
        let refusal = GangRefusal::new(name, pool, shortfall, named, paused);
        let refusal = |applicant: &Applicant| {
            let (pod, why) = (applicant.uid().clone(), refusal.of(applicant.uid()));
            GangRequest::Refuse { pod, ask: applicant.demand.ask.clone(), why }
        };
        pool.applicants.iter().map(refusal).collect()
    }
}

/// The pod can't be decided for now.
fn postponed(name: &GangName, gang: Option<&Arc<Gang>>, uid: &Uid, why: &Ungathered) -> GangRequest {
    let (name, gang, why) = (name.clone(), gang.cloned(), why.clone());
    GangRequest::Postpone(uid.clone(), GangReason::Ungathered { name, gang, why })
}
