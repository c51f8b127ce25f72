//! Deciding the pods of a gang together: all that wait are placed in one plan, which is committed if they are enough.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::{
    PodProgress, Scheduler, Survey, charge_of,
    unfinished::{MOST_ON_TRIAL, UnfinishedAttempt},
};
use crate::scheduling::{
    decide::{Decision, blame::Blame, fit_error::FitError, no_room::NoRoom},
    model::{
        gang::{Gang, GangName, Membership, Policy},
        measure::{Attempt, GangAttempt, Measure},
        message::Message,
        name::{NodeName, Uid},
        pod::{Ask, Claim},
    },
    plan::{
        Plan,
        gang::{Applicant, AsItIs, GangSearch, Placed, Pool, Shortfall, Ungathered, Words},
    },
    queue::{backoff_end, flush_time},
    scheduler::{
        prebind::held::{HeldCard, cards},
        turn::MOST_STEPS,
    },
    world::ledger::Charge,
};

impl Scheduler {
    /// Decides a pod together with its gang; `false`: it is decided alone.
    pub(in crate::scheduling::scheduler) fn decide_in_gang(&mut self, uid: &Uid, now: Timestamp) -> bool {
        let Some((member, membership)) = self.membership(uid) else { return false };
        let name = &member.gang;
        let gang = match membership {
            Membership::Policy(Policy::Gang(gang)) => gang,
            Membership::Policy(Policy::Alone) => return false,
            Membership::NotFound => {
                return self.leave_ungathered(name, None, uid, &Ungathered::NotFound, now);
            }
            Membership::Unlisted => {
                return self.leave_ungathered(name, None, uid, &Ungathered::Unlisted, now);
            }
            Membership::Policy(Policy::Unserved(why)) => {
                return self.leave_ungathered(name, None, uid, &Ungathered::Unserved(why), now);
            }
        };
        let survey = self.survey(name);
        let placed = survey.placed.total();
        if self.gangs.is_rolling_back(name) {
            return self.leave_ungathered(name, Some(&gang), uid, &Ungathered::RollingBack, now);
        }
        if gang.room(&survey.placed) == 0 {
            return self.leave_ungathered(name, Some(&gang), uid, &Ungathered::Full(placed), now);
        }
        if gang.is_whole(&survey.placed) && gang.topology.is_none() {
            return false;
        }
        let applicants = self.applicants(name, uid, &gang, &survey);
        let members = applicants.iter().map(|applicant| &applicant.member);
        let together = survey.placed.clone().beside(members);
        if !gang.is_whole(&together) {
            let why = Ungathered::TooFew(together.total());
            for applicant in &applicants {
                self.leave_ungathered(name, Some(&gang), applicant.uid(), &why, now);
            }
            return true;
        }
        let pool = Pool { gang: &gang, placed: survey.placed, nodes: survey.nodes, applicants };
        self.place_gang(name, uid, &pool, now);
        true
    }

    /// The pods of a gang that are to be placed, in the order of the queue: this one and, unless the gang is whole, all others that wait.
    fn applicants(&self, name: &GangName, uid: &Uid, gang: &Gang, survey: &Survey) -> Vec<Applicant> {
        let whole = gang.is_whole(&survey.placed);
        let mut applicants: Vec<_> = self
            .gangs
            .members(name)
            .filter_map(|mate| {
                let entry = self.pods.get(mate)?;
                let waits = matches!(
                    entry.progress,
                    PodProgress::Queued
                        | PodProgress::Waiting(_)
                        | PodProgress::OverQuota
                        | PodProgress::Ungathered
                        | PodProgress::Comparing
                );
                let waits = waits && !whole && self.unlisted_kinds(mate).is_empty();
                let holds = self.snapshot.ledger().get(mate).is_some();
                let demand = self.demand(mate).filter(|_| (waits || mate == uid) && !holds)?;
                let member = (**entry.info.groups.gang.as_ref()?).clone();
                let place = (std::cmp::Reverse(demand.priority), entry.info.lifetime.created, entry.seen);
                Some((place, Applicant { demand, member }))
            })
            .collect();
        applicants.sort_by_key(|(place, _)| *place);
        applicants.into_iter().map(|(_, applicant)| applicant).collect()
    }

    /// Places all pods, or says to each why they wait; or goes on with that in a later turn.
    fn place_gang(&mut self, name: &GangName, uid: &Uid, pool: &Pool<'_>, now: Timestamp) {
        let mut attempt = self.gangs.unfinished.take(name, pool);
        let shortfall = match attempt.shortfall.take() {
            Some(shortfall) => shortfall,
            None => match self.search_as_it_is(&mut attempt, pool, now) {
                None => return self.put_off(uid, pool, attempt),
                Some(Ok(placed)) => {
                    self.outbox.measures.push(Measure::Gang(GangAttempt::Scheduled));
                    return self.assume_gang(pool, placed, now);
                }
                Some(Err(shortfall)) => {
                    if self.compare_for_gang(pool, &shortfall) {
                        return;
                    }
                    if self.take_held_for_gang(pool, now) {
                        return self.place_gang(name, uid, pool, now);
                    }
                    attempt.search = GangSearch::default();
                    shortfall
                }
            },
        };
        if self.preempt_for_gang(&mut attempt, pool, &shortfall).is_break() {
            attempt.shortfall = Some(shortfall);
            return self.put_off(uid, pool, attempt);
        }
        self.outbox.measures.push(Measure::Gang(GangAttempt::Unschedulable));
        self.outbox.measures.push(Measure::Attempt(Attempt::Unschedulable));
        self.refuse_gang(name, pool, &shortfall, now);
        if attempt.has_missed_changes(&self.snapshot) {
            self.decide_waiting_again(uid);
        }
    }

    /// The attempt goes on in a later turn, when it is the pod's turn again.
    fn put_off(&mut self, uid: &Uid, pool: &Pool<'_>, attempt: UnfinishedAttempt) {
        if let Some(applicant) = pool.applicants.first() {
            let namespace = &applicant.demand.footprint.namespace;
            self.gangs.unfinished.put_off(namespace, attempt, &self.snapshot);
        }
        self.enqueue(uid);
    }

    /// Goes on to look for places for the pods as the cluster is; they hold them if that makes the gang whole. `None`: it takes longer than a turn.
    fn search_as_it_is(
        &mut self,
        attempt: &mut UnfinishedAttempt,
        pool: &Pool<'_>,
        now: Timestamp,
    ) -> Option<Placed> {
        let before = self.versions();
        let (pods, flows) = (&self.pods, &self.flows);
        let charge = charge_of(pods, now);
        let mut plan = Plan::new(&mut self.snapshot);
        let mut room = AsItIs { classes: &mut self.classes, charge };
        let rank = |node: &NodeName| flows.rank(node);
        let found = attempt.search.go_on(pool, &mut plan, &mut room, &rank, MOST_STEPS);
        drop(room);
        if let Some(Ok(_)) = found {
            plan.commit();
        } else {
            drop(plan);
            self.keep_rejections(before);
        }
        found
    }

    /// Puts pods back that give their places to others, where the gang would find room without them; whether there were some. Those go that hold
    /// cards of its places, or all on its nodes.
    fn take_held_for_gang(&mut self, pool: &Pool<'_>, now: Timestamp) -> bool {
        let demands = || pool.applicants.iter().map(|applicant| &applicant.demand);
        let Some(priority) = demands().map(|demand| demand.priority).min() else { return false };
        let holders = self.yielding(priority, demands().next().map(|demand| &demand.uid));
        if holders.is_empty() {
            return false;
        }
        let before = self.versions();
        let (pods, flows) = (&self.pods, &self.flows);
        let mut held: Vec<(Uid, Charge)> = Vec::new();
        let mut plan = Plan::new(&mut self.snapshot);
        for (.., uid) in holders.values().flatten() {
            held.extend(plan.evict(uid).map(|charge| (uid.clone(), charge)));
        }
        let charge = charge_of(pods, now);
        let mut room = AsItIs { classes: &mut self.classes, charge };
        let rank = |node: &NodeName| flows.rank(node);
        let placed = GangSearch::default().go_on(pool, &mut plan, &mut room, &rank, MOST_ON_TRIAL);
        let placed = placed.and_then(Result::ok).unwrap_or_default();
        drop((room, plan));
        self.keep_rejections(before);
        let won: Vec<Charge> =
            placed.iter().map(|(uid, decision)| charge_of(&self.pods, now)(uid, decision)).collect();
        held.retain(|(_, charge)| won.iter().any(|place| place.node == charge.node));
        let of = |charge: &Charge| cards(&charge.node, &charge.allocations);
        let taken: BTreeSet<HeldCard> = won.iter().flat_map(of).collect();
        let is_in_the_way = |charge: &Charge| !taken.is_disjoint(&of(charge));
        if held.iter().any(|(_, charge)| is_in_the_way(charge)) {
            held.retain(|(_, charge)| is_in_the_way(charge));
        }
        for (uid, _) in &held {
            self.put_back(uid, now);
        }
        !held.is_empty()
    }

    /// Has the claims of the gang's pods compared beside the decisions, where this decision could not; whether it is so.
    fn compare_for_gang(&mut self, pool: &Pool<'_>, shortfall: &Shortfall) -> bool {
        let begins = |(uid, error): &(Uid, Option<FitError>)| {
            error.as_ref().is_some_and(|error| self.compare_beside(uid, error))
        };
        let is_compared = shortfall.failed.iter().any(begins);
        if is_compared {
            for applicant in &pool.applicants {
                self.await_comparison(applicant.uid(), &applicant.demand.footprint.namespace);
            }
        }
        is_compared
    }

    /// Every pod that has found its place holds it now; those that were left over wait.
    fn assume_gang(&mut self, pool: &Pool<'_>, placed: Vec<(Uid, Decision)>, now: Timestamp) {
        let left: Vec<Uid> = pool.applicants.iter().map(|applicant| applicant.uid().clone()).collect();
        for uid in left.iter().filter(|uid| !placed.iter().any(|(placed, _)| placed == *uid)) {
            // Decided alone from now on, beside those that are placed.
            self.stop_waiting(uid);
            self.waiting.queue.remove(uid);
            self.enqueue(uid);
        }
        for (uid, _) in &placed {
            self.stop_waiting(uid);
            self.waiting.queue.remove(uid);
            self.preempting.stop(uid);
        }
        for (uid, Decision { node, steps, .. }) in placed {
            self.outbox.measures.push(Measure::Attempt(Attempt::Scheduled));
            self.note_decided(&uid);
            let steps = [self.released_claims(&uid, &steps), steps].concat();
            self.begin_prebind(&uid, node, steps, now);
        }
        self.advance_prebinds(now);
        if let Some(applicant) = pool.applicants.first() {
            self.end_nominations_beyond_quota(&applicant.demand.footprint.namespace);
        }
    }

    /// The pods find no room together: each waits for what may help it, and says what is missing.
    fn refuse_gang(&mut self, name: &GangName, pool: &Pool<'_>, shortfall: &Shortfall, now: Timestamp) {
        let pods = pool.placed.total() + pool.applicants.len();
        let words = Words { name, gang: pool.gang, pods, shortfall };
        let details = self.reports.details;
        let named = |uid: &Uid| match self.pods.get(uid) {
            Some(entry) => entry.info.key.name.clone(),
            None => uid.clone(),
        };
        let paused = self.gang_preempts_not_before(pool).map(|until| format!(" {}", NoRoom::Paused(until)));
        let message =
            |uid| words.told(uid, named, details).followed_by(paused.as_deref().unwrap_or_default());
        let messages: Vec<Message> =
            pool.applicants.iter().map(|applicant| message(applicant.uid())).collect();
        for (applicant, message) in pool.applicants.iter().zip(messages) {
            let uid = applicant.uid();
            self.stop_waiting(uid);
            self.waiting.queue.remove(uid);
            self.set_progress(uid, PodProgress::Idle);
            let blame = match shortfall.failure_of(uid) {
                Some(Some(error)) => {
                    self.wait(uid, &applicant.demand.ask, error, now);
                    error.blame()
                }
                _ => Blame::Gang("TooFewFit"),
            };
            self.wait_for_mates(uid, &applicant.demand.ask, now);
            self.tell_unschedulable(uid, blame, message);
        }
    }

    /// The pod can't be decided for now. Always `true`: it is not decided alone either.
    fn leave_ungathered(
        &mut self,
        name: &GangName,
        gang: Option<&Gang>,
        uid: &Uid,
        why: &Ungathered,
        now: Timestamp,
    ) -> bool {
        self.stop_waiting(uid);
        self.withdraw_nomination(uid);
        let Some(entry) = self.pods.get(uid).filter(|entry| matches!(entry.info.claim, Claim::Place(_)))
        else {
            return true;
        };
        self.waiting.queue.set_aside(&entry.info, entry.seen, flush_time(now));
        self.set_progress(uid, PodProgress::Ungathered);
        self.tell_unschedulable(uid, Blame::Gang(why.name()), why.message(name, gang));
        true
    }

    /// The pod waits for any node that would have it, since its place may leave room for another of its gang; not too often.
    fn wait_for_mates(&mut self, uid: &Uid, ask: &Arc<Ask>, now: Timestamp) {
        let Some(entry) = self.pods.get_mut(uid) else { return };
        if entry.backoff_until.is_none_or(|until| until <= now) {
            entry.rejections += 1;
            entry.backoff_until = Some(backoff_end(now, entry.rejections));
        }
        if entry.progress == PodProgress::OverQuota || matches!(entry.progress, PodProgress::Waiting(_)) {
            return;
        }
        self.waiting.queue.set_aside(&entry.info, entry.seen, flush_time(now));
        self.classes.wait_known(ask, uid.clone());
        self.set_progress(uid, PodProgress::Waiting(ask.clone()));
    }

    /// Decides a gang on trial whose pods wait although they would find room together: that ought never to be. A gang of which a pod is in the
    /// queue is decided with it.
    pub(in crate::scheduling::scheduler) fn audit_gang(&mut self, name: &GangName) {
        let is_queued =
            |uid: &Uid| self.pods.get(uid).is_some_and(|entry| entry.progress == PodProgress::Queued);
        if self.gangs.members(name).any(is_queued) {
            return;
        }
        let waits = |uid: &&Uid| {
            let entry = self.pods.get(uid);
            entry.is_some_and(|entry| {
                matches!(entry.progress, PodProgress::Waiting(_) | PodProgress::OverQuota)
            })
        };
        let waiting = self.gangs.members(name).find(waits).cloned();
        if let Some(uid) = waiting.filter(|uid| self.would_be_placed(name, uid)) {
            self.end_needless_wait(&uid);
        }
    }

    /// Whether the gang of this pod would find room now.
    fn would_be_placed(&mut self, name: &GangName, uid: &Uid) -> bool {
        let Some((_, Membership::Policy(Policy::Gang(gang)))) = self.membership(uid) else { return false };
        if self.gangs.is_rolling_back(name) {
            return false;
        }
        let survey = self.survey(name);
        let applicants = self.applicants(name, uid, &gang, &survey);
        let pool = Pool { gang: &gang, placed: survey.placed, nodes: survey.nodes, applicants };
        let before = self.versions();
        let (pods, flows) = (&self.pods, &self.flows);
        let charge = charge_of(pods, Timestamp::UNIX_EPOCH);
        let mut room = AsItIs { classes: &mut self.classes, charge };
        let mut plan = Plan::new(&mut self.snapshot);
        let rank = |node: &NodeName| flows.rank(node);
        let placed = GangSearch::default().go_on(&pool, &mut plan, &mut room, &rank, MOST_ON_TRIAL);
        drop((room, plan));
        self.keep_rejections(before);
        placed.and_then(Result::ok).is_some_and(|placed| !placed.is_empty())
    }
}
