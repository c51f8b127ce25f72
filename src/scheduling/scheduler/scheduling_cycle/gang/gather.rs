//! Whether enough pods of a gang are there to be decided together, and what those are told that find no room.

use std::{cmp::Reverse, sync::Arc};

use jiff::Timestamp;

use super::{GangRequest, GangView, view::Survey};
use crate::scheduling::{
    model::{
        gang::{Gang, GangName, Membership, Policy},
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
    Together(Gathered),
}

/// The pods of a gang that are decided together.
pub(in crate::scheduling::scheduler) struct Gathered {
    /// The gang.
    pub(in crate::scheduling::scheduler) name: GangName,
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
        let Self { name, gang, survey, applicants } = self;
        then(&name, &Pool { gang: &gang, placed: survey.placed, nodes: survey.nodes, applicants })
    }
}

impl GangView<'_> {
    /// With which others the pod is decided.
    pub(in crate::scheduling::scheduler) fn gather(self, uid: &Uid) -> Gathering {
        let Some((member, membership)) = self.membership(uid) else { return Gathering::Alone };
        let name = &member.gang;
        let alone = |why| Gathering::Postponed(vec![postponed(name, None, uid, &why)]);
        let gang = match membership {
            Membership::Policy(Policy::Gang(gang)) => gang,
            Membership::Policy(Policy::Alone) => return Gathering::Alone,
            Membership::NotFound => return alone(Ungathered::NotFound),
            Membership::Unlisted => return alone(Ungathered::Unlisted),
            Membership::Policy(Policy::Unserved(why)) => return alone(Ungathered::Unserved(why)),
        };
        let survey = self.survey(name);
        let together = |pods: &[&Uid], why: &Ungathered| {
            let pods = pods.iter().map(|uid| postponed(name, Some(&gang), uid, why));
            Gathering::Postponed(pods.collect())
        };
        if self.gangs.is_rolling_back(name) {
            return together(&[uid], &Ungathered::RollingBack);
        }
        if gang.room(&survey.placed) == 0 {
            return together(&[uid], &Ungathered::Full(survey.placed.total()));
        }
        if gang.is_whole(&survey.placed) && gang.topology.is_none() {
            return Gathering::Alone;
        }
        let applicants = self.applicants(name, uid, &gang, &survey);
        let all = survey.placed.clone().beside(applicants.iter().map(|applicant| &applicant.member));
        if !gang.is_whole(&all) {
            let pods: Vec<_> = applicants.iter().map(Applicant::uid).collect();
            return together(&pods, &Ungathered::TooFew(all.total()));
        }
        Gathering::Together(Gathered { name: name.clone(), gang, survey, applicants })
    }

    /// The pods of a gang that are to be placed, in the order of the queue: this one and, unless the gang is whole, all others that wait.
    fn applicants(self, name: &GangName, uid: &Uid, gang: &Gang, survey: &Survey) -> Vec<Applicant> {
        let whole = gang.is_whole(&survey.placed);
        let mut applicants: Vec<_> = self
            .gangs
            .members(name)
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
                let member = (**entry.info.groups.gang.as_ref()?).clone();
                let place = (Reverse(demand.priority), entry.info.lifetime.created, entry.seen);
                Some((place, Applicant { demand, member }))
            })
            .collect();
        applicants.sort_by_key(|(place, _)| *place);
        applicants.into_iter().map(|(_, applicant)| applicant).collect()
    }

    /// A gang of which pods wait, to find out whether they would find room together: that ought never to be. `None`: none waits, or one is in the
    /// queue, and the gang is decided with that.
    pub(in crate::scheduling::scheduler) fn waiting(self, name: &GangName) -> Option<(Uid, Gathered)> {
        let progress = |uid: &Uid| self.queue.progress(uid);
        if self.gangs.members(name).any(|uid| *progress(uid) == PodProgress::Queued) {
            return None;
        }
        let waits = |uid: &&Uid| matches!(progress(uid), PodProgress::Waiting(_) | PodProgress::OverQuota);
        let uid = self.gangs.members(name).find(waits)?;
        let Some((_, Membership::Policy(Policy::Gang(gang)))) = self.membership(uid) else { return None };
        if self.gangs.is_rolling_back(name) {
            return None;
        }
        let survey = self.survey(name);
        let applicants = self.applicants(name, uid, &gang, &survey);
        Some((uid.clone(), Gathered { name: name.clone(), gang, survey, applicants }))
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
