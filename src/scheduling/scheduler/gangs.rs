//! Gangs: feeding them what happens, placing their pods, and carrying out what they request.
//!
//! What is so of a gang is found out and decided in [`gang`](super::scheduling_cycle::gang), and nowhere here.

use std::ops::ControlFlow;

use jiff::Timestamp;

use super::{
    BindingCycle, Scheduler,
    scheduling_cycle::{
        SchedulingCycle,
        gang::{GangOutcome, GangRequest, Gathering, LeftOver, UnfinishedAttempt, is_in_vain},
        scheduling_queue::PodProgress,
        views::prebind_view,
    },
};
use crate::scheduling::{
    decide::Decision,
    effect::Effect,
    model::{
        gang::{GangName, GroupApi},
        group_condition::GroupCondition,
        measure::{Attempt, GangAttempt, Measure},
        name::Uid,
        pod::Claim,
    },
    plan::gang::{Applicant, GangReason, GangShortfall, Pool},
    prebind::PrebindInput,
    preempt::PreemptInput,
};

impl Scheduler {
    /// Goes on with every gang of which something has changed.
    pub(super) fn mend_gangs(&mut self, now: Timestamp) {
        while let Some(name) = self.binding.cycle.gangs.pop_touched() {
            if !is_gang(&mut self.binding, &name) {
                continue;
            }
            let found = self.binding.gang_view().stand(&name);
            if let Some((gang, survey)) = &found {
                let requests = self.binding.cycle.gangs.mend(&name, gang, survey, now);
                self.carry_out_for_gang(requests, now);
            }
            let requests = self.binding.gang_view().helped(&name, found.as_ref());
            self.carry_out_for_gang(requests, now);
            for (group, condition) in self.binding.gang_view().scheduled(&name, found.as_ref()) {
                state_group(&mut self.binding, &group, &condition);
            }
            for LeftOver { pod, preemptor, node } in self.binding.gang_view().left_over(&name) {
                let left = PreemptInput::LeftOver { pod: &pod, preemptor: &preemptor, node: &node };
                self.binding.advance_preempt(left);
            }
        }
    }

    /// Evicts the bound pods of gangs that could not be completed in time.
    pub(super) fn roll_back_gangs(&mut self, now: Timestamp) {
        let mut due = self.binding.cycle.gangs.due(now);
        // A group goes after those that it is in.
        due.sort_by_key(|name| self.binding.cycle.snapshot.objects().groups().lineage(name).len());
        for name in due {
            if self.binding.gang_view().goes_with_others(&name) {
                self.binding.cycle.gangs.roll_back_with_others(&name, now);
                continue;
            }
            let survey = self.binding.gang_view().survey(&name);
            let requests = self.binding.cycle.gangs.roll_back(&name, &survey, now);
            self.carry_out_for_gang(requests, now);
        }
    }

    fn carry_out_for_gang(&mut self, requests: Vec<GangRequest>, now: Timestamp) {
        for request in requests {
            match request {
                GangRequest::Requeue(uid) => {
                    self.binding.forget(&uid);
                    self.binding.cycle.enqueue_if_wanted(&uid);
                }
                GangRequest::DecideAgain(uid) => self.binding.cycle.decide_waiting_again(&uid),
                GangRequest::Reorder(uid) => self.binding.cycle.enqueue(&uid),
                GangRequest::RollBack(uid, gang) => {
                    let pod = self.binding.cycle.pods.get(&uid).map(|entry| entry.info.key.clone());
                    self.binding.cycle.outbox.effects.extend(pod.map(|pod| Effect::RollBack { pod, gang }));
                }
                GangRequest::Postpone(uid, reason) => {
                    self.binding.cycle.stop_waiting(&uid);
                    self.binding.advance_preempt(PreemptInput::Withdrawn(&uid));
                    // A binder that ended may have written claims for it. Once its PodGroup is listed, it may use them.
                    if !reason.is_of_unlisted() {
                        self.binding.advance_prebind(PrebindInput::Unschedulable(&uid));
                    }
                    let wants = |claim: &Claim| matches!(claim, Claim::Place(_));
                    if let Some(entry) =
                        self.binding.cycle.pods.get(&uid).filter(|entry| wants(&entry.info.claim))
                    {
                        self.binding.cycle.queue.wait_ungathered(entry, now);
                        self.binding.cycle.tell_unschedulable(&uid, reason);
                    }
                }
                GangRequest::Refuse { pod: uid, ask, why } => {
                    self.binding.cycle.take_out(&uid);
                    self.binding.cycle.queue.set_progress(&uid, PodProgress::Idle);
                    self.binding.advance_prebind(PrebindInput::Unschedulable(&uid));
                    if let Some(error) = why.error() {
                        self.binding.cycle.wait(&uid, &ask, error, now);
                    }
                    if let Some(entry) = self.binding.cycle.pods.get(&uid) {
                        self.binding.cycle.queue.wait_for_mates(
                            entry,
                            &ask,
                            now,
                            &mut self.binding.cycle.classes,
                        );
                    }
                    self.binding.cycle.tell_unschedulable(&uid, GangReason::NoRoom(why));
                }
                GangRequest::Measure(measure) => self.binding.cycle.outbox.measures.push(measure),
            }
        }
    }

    /// Decides a pod together with its gang; `false`: it is decided alone.
    pub(super) fn decide_in_gang(&mut self, uid: &Uid, now: Timestamp) -> bool {
        match self.binding.gang_view().gather(uid) {
            Gathering::Alone => return false,
            Gathering::Postponed(requests) => {
                state_refusal(&mut self.binding, &requests);
                self.carry_out_for_gang(requests, now);
            }
            Gathering::Together(gathered) => {
                gathered.with_pool(|name, pool| self.place_gang(name, uid, pool, now));
            }
        }
        true
    }

    /// Places all pods, or says to each why they wait; or goes on with that in a later turn.
    fn place_gang(&mut self, name: &GangName, uid: &Uid, pool: &Pool<'_>, now: Timestamp) {
        let mut attempt = self.binding.cycle.gangs.take_attempt(name, pool);
        if attempt.shortfall.is_none() {
            let holders = yielding_to(&self.binding, pool);
            match self.binding.gang_trial().place(&mut attempt, pool, &holders, now) {
                GangOutcome::Placed(placed) => {
                    self.binding.cycle.outbox.measures.push(Measure::Gang(GangAttempt::Scheduled));
                    return self.assume_gang(pool, placed, now);
                }
                GangOutcome::Unknown(comparison) => {
                    return self
                        .binding
                        .cycle
                        .compare_beside(comparison, pool.applicants.iter().map(Applicant::uid));
                }
                GangOutcome::InTheWay(holders) => {
                    for uid in &holders {
                        self.binding.advance_prebind(PrebindInput::PlaceTaken(uid));
                    }
                    return self.place_gang(name, uid, pool, now);
                }
                GangOutcome::NoRoom(shortfall) => attempt.shortfall = Some(shortfall),
                GangOutcome::Unfinished => {}
            }
        }
        let shortfall = attempt.shortfall.take();
        let made_room =
            shortfall.as_ref().map(|shortfall| self.preempt_for_gang(&mut attempt, pool, shortfall));
        let (Some(shortfall), Some(ControlFlow::Continue(()))) = (&shortfall, made_room) else {
            // The attempt goes on in a later turn, when it is the pod's turn again.
            attempt.shortfall = shortfall;
            self.binding.cycle.gangs.put_off(pool, attempt, &self.binding.cycle.snapshot);
            return self.binding.cycle.enqueue(uid);
        };
        self.binding.cycle.outbox.measures.push(Measure::Gang(GangAttempt::Unschedulable));
        self.binding.cycle.outbox.measures.push(Measure::Attempt(Attempt::Unschedulable));
        let paused = preempts_not_before(&self.binding.cycle, pool);
        let refusals = self.binding.gang_view().refusals(name, pool, shortfall, paused);
        state_refusal(&mut self.binding, &refusals);
        self.carry_out_for_gang(refusals, now);
        if attempt.has_missed_changes(&self.binding.cycle.snapshot) {
            self.binding.cycle.decide_waiting_again(uid);
        }
    }

    /// Looks for pods of lower priority that can go so that the whole gang finds room, and begins to preempt them: victims are chosen for each pod
    /// that finds no room, beside the places and victims of those before it. If the gang would be whole then, each pod's node is kept for it,
    /// whether others go for it or not, and the victims go as they do for a single pod; else nothing is kept for its pods any more. `Break`: that
    /// takes longer than a turn, and goes on later.
    fn preempt_for_gang(
        &mut self,
        attempt: &mut UnfinishedAttempt,
        pool: &Pool<'_>,
        shortfall: &GangShortfall,
    ) -> ControlFlow<()> {
        let view = self.binding.cycle.preempt_view();
        let awaits =
            |applicant: &Applicant| self.binding.cycle.preempting.awaits_victims(applicant.uid(), &view);
        if !view.knows_budgets() || pool.applicants.iter().any(awaits) {
            return ControlFlow::Continue(());
        }
        let is_paused = preempts_not_before(&self.binding.cycle, pool).is_some();
        let rules =
            self.binding.cycle.preempting.rules().filter(|_| !is_paused && !is_in_vain(pool, shortfall));
        let nominations = match rules {
            None => None,
            Some(rules) => match self.binding.gang_trial().make_room(attempt, pool, rules) {
                None => return ControlFlow::Break(()),
                Some(found) => found.ok(),
            },
        };
        let Some(nominations) = nominations else {
            for applicant in &pool.applicants {
                self.binding.advance_preempt(PreemptInput::Withdrawn(applicant.uid()));
            }
            return ControlFlow::Continue(());
        };
        let victims = nominations.iter().map(|(_, candidate)| candidate.victims.len()).sum();
        self.binding.cycle.outbox.measures.push(Measure::Preemption(victims));
        for (uid, candidate) in nominations {
            let applicant = pool.applicants.iter().find(|applicant| *applicant.uid() == uid);
            let priority = applicant.map_or(0, |applicant| applicant.demand.priority);
            self.binding.advance_preempt(PreemptInput::Chosen { pod: &uid, priority, candidate });
        }
        ControlFlow::Continue(())
    }

    /// Every pod that has found its place holds it now; those that were left over wait.
    fn assume_gang(&mut self, pool: &Pool<'_>, placed: Vec<(Uid, Decision)>, now: Timestamp) {
        let is_placed = |uid: &Uid| placed.iter().any(|(placed, _)| placed == uid);
        for uid in pool.applicants.iter().map(Applicant::uid).filter(|uid| !is_placed(uid)) {
            // Decided alone from now on, beside those that are placed.
            self.binding.cycle.take_out(uid);
            self.binding.cycle.enqueue(uid);
        }
        for (uid, _) in &placed {
            self.binding.cycle.take_out(uid);
            self.binding.cycle.preempting.stop(uid);
        }
        for (uid, Decision { node, steps, .. }) in placed {
            self.binding.cycle.outbox.measures.push(Measure::Attempt(Attempt::Scheduled));
            self.binding.cycle.note_decided(&uid);
            let view = prebind_view(&self.binding.cycle);
            let steps = [self.binding.prebinding.unsettled_claims(&uid, &steps, &view), steps].concat();
            self.binding.begin_prebind(&uid, node, steps);
        }
        self.binding.advance_prebinds(now);
        if let Some(applicant) = pool.applicants.first() {
            self.binding.end_nominations_beyond_quota(&applicant.demand.footprint.namespace);
        }
    }
}

/// Whether this is a gang with pods. A group in another is none by itself: the root of its tree is touched instead.
fn is_gang(binding: &mut BindingCycle, name: &GangName) -> bool {
    let mut lineage = binding.cycle.snapshot.objects().groups().lineage(name);
    if name.api == GroupApi::Composite {
        let is_there = binding.cycle.snapshot.objects().groups().is_there(name);
        let has_pods = is_there && binding.gang_view().members(name).next().is_some();
        if !has_pods {
            binding.cycle.gangs.forget(name);
        }
        return has_pods && lineage.len() == 1;
    }
    let above = lineage.split_off(1);
    binding.cycle.gangs.note_above(name, &above);
    above.is_empty()
}

/// Has the status of each PodGroup say why its pods wait.
fn state_refusal(binding: &mut BindingCycle, requests: &[GangRequest]) {
    for (group, condition) in binding.gang_view().refused(requests) {
        state_group(binding, &group, &condition);
    }
}

/// Has the status of the PodGroup say this, unless it does.
fn state_group(binding: &mut BindingCycle, name: &GangName, condition: &GroupCondition) {
    let Some(statement) = binding.gang_view().statement(name, condition) else { return };
    if binding.cycle.gangs.begin_to_state(name, &statement) {
        binding.cycle.outbox.effects.push(Effect::TellGroup(statement));
    }
}

/// The pods that give their places to the gang.
fn yielding_to(BindingCycle { cycle, prebinding, .. }: &BindingCycle, pool: &Pool<'_>) -> Vec<Uid> {
    let demands = || pool.applicants.iter().map(|applicant| &applicant.demand);
    let (first, priority) = (demands().next(), demands().map(|demand| demand.priority).min());
    let Some((first, priority)) = first.zip(priority).filter(|_| prebinding.yields_any()) else {
        return Vec::new();
    };
    let view = prebind_view(cycle);
    let holders = prebinding.yielding(priority, Some(&first.uid), &cycle.queue.order, &view);
    holders.into_values().flatten().map(|(.., uid)| uid).collect()
}

/// Until when no pods are preempted for the gang, since one of its pods has had others preempted in vain.
fn preempts_not_before(cycle: &SchedulingCycle, pool: &Pool<'_>) -> Option<Timestamp> {
    let view = cycle.preempt_view();
    let paused = |applicant: &Applicant| cycle.preempting.preempts_not_before(applicant.uid(), &view);
    pool.applicants.iter().filter_map(paused).max()
}
