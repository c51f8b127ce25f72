//! Preemption for a whole gang: victims are chosen for each pod that finds no room, beside the places and victims of those before it. If the
//! gang would be whole then, each pod's node is kept for it, and the victims go as they do for a single pod.

use std::ops::ControlFlow;

use jiff::Timestamp;

use super::{Scheduler, charge_of, unfinished::UnfinishedAttempt};
use crate::scheduling::{
    decide::{blame::Resolvable, fit_error::FitError},
    model::{measure::Measure, name::Uid},
    plan::{
        gang::{MadeRoom, Pool, Shortfall},
        preemption::Candidate,
    },
};
use crate::scheduling::{plan::Plan, scheduler::scheduling_queue::MOST_STEPS};

/// Whether a pod of the gang fits nowhere, whichever pods go.
fn is_in_vain(shortfall: &Shortfall) -> bool {
    let is_lost = |(_, error): &(Uid, Option<FitError>)| {
        error.as_ref().is_some_and(|error| error.blame().resolvable() == Resolvable::No)
    };
    shortfall.domain.is_none() && shortfall.failed.iter().any(is_lost)
}

impl Scheduler {
    /// Looks for pods of lower priority that can go so that the whole gang finds room, and begins to preempt them. Where that makes no
    /// room, nothing is kept for its pods any more. `Break`: that takes longer than a turn, and goes on later.
    pub(super) fn preempt_for_gang(
        &mut self,
        attempt: &mut UnfinishedAttempt,
        pool: &Pool<'_>,
        shortfall: &Shortfall,
    ) -> ControlFlow<()> {
        let waits = pool.applicants.iter().any(|applicant| self.awaits_victims(applicant.uid()));
        if !self.knows_budgets() || waits {
            return ControlFlow::Continue(());
        }
        if self.gang_preempts_not_before(pool).is_some() {
            self.withdraw_nominations(pool);
            return ControlFlow::Continue(());
        }
        let Some(rules) = self.preempting.rules().filter(|_| !is_in_vain(shortfall)) else {
            self.withdraw_nominations(pool);
            return ControlFlow::Continue(());
        };
        let before = self.versions();
        let pods = &self.pods;
        let names = |pod: &Uid| pods.get(pod).map(|entry| entry.info.key.name.clone());
        let charge = charge_of(pods, Timestamp::UNIX_EPOCH);
        let candidates = std::mem::take(&mut attempt.candidates);
        let mut room = MadeRoom::new(&mut self.classes, rules, &names, charge).going_on(candidates);
        let mut plan = Plan::new(&mut self.snapshot);
        let found = attempt.search.go_on(pool, &mut plan, &mut room, &|_| 0, MOST_STEPS);
        let Some(placed) = found else {
            attempt.candidates = room.candidates();
            drop(plan);
            self.keep_rejections(before);
            return ControlFlow::Break(());
        };
        let nominations = placed.map(|placed| room.nominations(placed));
        drop(plan);
        self.keep_rejections(before);
        match nominations {
            Ok(nominations) => self.nominate_gang(pool, nominations),
            Err(_) => self.withdraw_nominations(pool),
        }
        ControlFlow::Continue(())
    }

    /// Until when no pods are preempted for the gang, since one of its pods has had others preempted in vain.
    pub(super) fn gang_preempts_not_before(&self, pool: &Pool<'_>) -> Option<Timestamp> {
        pool.applicants.iter().filter_map(|applicant| self.preempts_not_before(applicant.uid())).max()
    }

    /// Keeps its node for each pod of the gang, whether others go for it or not.
    fn nominate_gang(&mut self, pool: &Pool<'_>, nominations: Vec<(Uid, Candidate)>) {
        let victims = nominations.iter().map(|(_, candidate)| candidate.victims.len()).sum();
        self.outbox.measures.push(Measure::Preemption(victims));
        for (uid, candidate) in nominations {
            let applicant = pool.applicants.iter().find(|applicant| *applicant.uid() == uid);
            let priority = applicant.map_or(0, |applicant| applicant.demand.priority);
            self.nominate(&uid, priority, candidate);
        }
    }

    fn withdraw_nominations(&mut self, pool: &Pool<'_>) {
        for applicant in &pool.applicants {
            self.withdraw_nomination(applicant.uid());
        }
    }
}
