//! Preemption for a whole gang: victims are chosen for each pod that finds no room, beside the places and victims of those before it. If the
//! gang would be whole then, each pod's node is kept for it, and the victims go as they do for a single pod.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::Scheduler;
use crate::scheduling::{
    blame::Resolvable,
    decide::Decision,
    fit_error::FitError,
    gang::{MadeRoom, Pool, Shortfall, place},
    measure::Measure,
    object::Kind,
    pod::Uid,
    preemption::Candidate,
    scheduler::decide::assumed,
};

impl Scheduler {
    /// Looks for pods of lower priority that can go so that the whole gang finds room, and begins to preempt them. Where that makes no
    /// room, nothing is kept for its pods any more.
    pub(super) fn preempt_for_gang(&mut self, pool: &Pool<'_>, shortfall: &Shortfall) {
        let Some(rules) = self.preempting.rules() else { return };
        let ready = self.snapshot.objects().are_listed(&[Kind::PodDisruptionBudget]);
        let waits = pool.applicants.iter().any(|applicant| self.preempting.is_under_way(applicant.uid()));
        let is_in_vain = |(_, error): &(Uid, Option<FitError>)| {
            error.as_ref().is_some_and(|error| error.blame().resolvable() == Resolvable::No)
        };
        if !ready || waits || shortfall.failed.iter().any(is_in_vain) && shortfall.domain.is_none() {
            return;
        }
        let before = self.versions();
        let pods = &self.pods;
        let names = |pod: &Uid| pods.get(pod).map(|entry| entry.info.key.name.clone());
        let charge = |uid: &Uid, decision: &Decision| {
            let Decision { node, allocations, volumes } = decision.clone();
            let info = &pods.get(uid).expect("only known pods are placed").info;
            assumed(info, node, allocations, volumes, Timestamp::UNIX_EPOCH)
        };
        let mut room = MadeRoom::new(&mut self.classes, rules, &names, charge);
        let mut plan = self.snapshot.plan();
        let placed = place(pool, &mut plan, &mut room, &|_| 0);
        let candidates = room.into_candidates();
        drop(plan);
        self.keep_rejections(before);
        match placed {
            Ok(placed) if !candidates.is_empty() => self.nominate_gang(pool, placed, candidates),
            _ => self.withdraw_nominations(pool),
        }
    }

    /// Keeps its node for each pod of the gang, whether others go for it or not.
    fn nominate_gang(
        &mut self,
        pool: &Pool<'_>,
        placed: Vec<(Uid, Decision)>,
        mut candidates: BTreeMap<Uid, Candidate>,
    ) {
        let victims = candidates.values().map(|candidate| candidate.victims.len()).sum();
        self.outbox.measures.push(Measure::Preemption(victims));
        for (uid, Decision { node, .. }) in placed {
            let priority = pool.applicants.iter().find(|applicant| *applicant.uid() == uid);
            let priority = priority.map_or(0, |applicant| applicant.demand.priority);
            let none = Candidate { node, victims: Vec::new(), violations: 0 };
            self.nominate(&uid, priority, candidates.remove(&uid).unwrap_or(none));
        }
    }

    fn withdraw_nominations(&mut self, pool: &Pool<'_>) {
        for applicant in &pool.applicants {
            self.withdraw_nomination(applicant.uid());
        }
    }
}
