//! Looking for places for the pods of a gang on trial: as the cluster is, without pods that give their places to others, and with victims.
//!
//! Only places that make the gang whole are kept; what was tried beside that is undone, and what was found of other pods still holds then.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::unfinished::{MOST_ON_TRIAL, UnfinishedAttempt};
use crate::scheduling::{
    decide::{Decision, blame::Resolvable, class::Classes, comparison::ClaimComparison},
    model::name::{NodeName, Uid},
    node_flow::NodeFlows,
    plan::{
        Plan,
        gang::{AsItIs, ClearedSearch, GangSearch, GangShortfall, MadeRoom, Placed, Pool},
        held_places::{HeldCard, cards},
        preemption::{Candidate, Rules},
    },
    scheduler::scheduling_cycle::{
        alike::Versions,
        compare::left_to_compare,
        decide::assumed,
        pods::Pods,
        scheduling_queue::{MOST_STEPS, Rejections},
    },
    snapshot::Snapshot,
    world::ledger::Charge,
};

/// What places are looked for with.
pub(in crate::scheduling::scheduler) struct GangTrial<'a> {
    /// The cluster, which is as it was after a trial of which nothing is kept.
    pub(in crate::scheduling::scheduler) snapshot: &'a mut Snapshot,
    /// What is known of pods with equal asks.
    pub(in crate::scheduling::scheduler) classes: &'a mut Classes,
    /// What is known of pods that were rejected.
    pub(in crate::scheduling::scheduler) rejections: &'a mut Rejections,
    /// The pods that were seen.
    pub(in crate::scheduling::scheduler) pods: &'a Pods,
    /// How nodes rank.
    pub(in crate::scheduling::scheduler) flows: &'a NodeFlows,
}

/// What comes of an attempt to place a gang.
pub(in crate::scheduling::scheduler) enum GangOutcome {
    /// Its pods hold these places.
    Placed(Vec<(Uid, Decision)>),
    /// It takes longer than a turn, and goes on later.
    Unfinished,
    /// Claims are to be compared with devices first.
    Unknown(ClaimComparison),
    /// It finds room once these pods have given it their places.
    InTheWay(Vec<Uid>),
    /// It finds no room.
    NoRoom(GangShortfall),
}

impl GangTrial<'_> {
    /// Goes on to place the pods, beside these that give their places to others.
    pub(in crate::scheduling::scheduler) fn place(
        mut self,
        attempt: &mut UnfinishedAttempt,
        pool: &Pool<'_>,
        holders: &[Uid],
        now: Timestamp,
    ) -> GangOutcome {
        let shortfall = match self.search(attempt, pool, now) {
            None => return GangOutcome::Unfinished,
            Some(Ok(placed)) => return GangOutcome::Placed(placed),
            Some(Err(shortfall)) => shortfall,
        };
        for (uid, error) in shortfall.failed.iter().filter_map(|(uid, error)| Some((uid, error.as_ref()?))) {
            let demand = || self.snapshot.nominations().demand(&self.pods.get(uid)?.info);
            if let Some(comparison) = left_to_compare(demand, error, self.snapshot, self.classes) {
                return GangOutcome::Unknown(comparison);
            }
        }
        let in_the_way = if holders.is_empty() { Vec::new() } else { self.in_the_way(holders, pool, now) };
        if !in_the_way.is_empty() {
            return GangOutcome::InTheWay(in_the_way);
        }
        attempt.search = GangSearch::default();
        GangOutcome::NoRoom(shortfall)
    }

    /// Goes on to look for places for the pods as the cluster is; they hold them if that makes the gang whole. `None`: it takes longer than a turn.
    fn search(&mut self, attempt: &mut UnfinishedAttempt, pool: &Pool<'_>, now: Timestamp) -> Option<Placed> {
        let before = Versions::of(self.snapshot);
        let mut plan = Plan::new(self.snapshot);
        let mut room = AsItIs { classes: &mut *self.classes, charge: charge_of(self.pods, now) };
        let rank = |node: &NodeName| self.flows.rank(node);
        let found = attempt.search.go_on(pool, &mut plan, &mut room, &rank, MOST_STEPS);
        if let Some(Ok(_)) = found {
            plan.commit();
        } else {
            drop(plan);
            self.rejections.keep(before, self.snapshot);
        }
        found
    }

    /// Whether the gang would find room as the cluster is.
    pub(in crate::scheduling::scheduler) fn would_be_placed(self, pool: &Pool<'_>) -> bool {
        !self.place_without(&[], pool, Timestamp::UNIX_EPOCH).1.is_empty()
    }

    /// The pods of these that are in the way of the gang, which finds room without all of them; none: it finds none. Those are that hold cards of
    /// its places, or all on its nodes.
    fn in_the_way(self, holders: &[Uid], pool: &Pool<'_>, now: Timestamp) -> Vec<Uid> {
        let (mut held, won) = self.place_without(holders, pool, now);
        held.retain(|(_, charge)| won.iter().any(|place| place.node == charge.node));
        let of = |charge: &Charge| cards(&charge.node, &charge.allocations);
        let taken: BTreeSet<HeldCard> = won.iter().flat_map(of).collect();
        let is_in_the_way = |charge: &Charge| !taken.is_disjoint(&of(charge));
        if held.iter().any(|(_, charge)| is_in_the_way(charge)) {
            held.retain(|(_, charge)| is_in_the_way(charge));
        }
        held.into_iter().map(|(uid, _)| uid).collect()
    }

    /// What these pods hold, and what the pods of the gang would hold without them; nothing of that is kept.
    fn place_without(
        self,
        holders: &[Uid],
        pool: &Pool<'_>,
        now: Timestamp,
    ) -> (Vec<(Uid, Arc<Charge>)>, Vec<Charge>) {
        let before = Versions::of(self.snapshot);
        let mut plan = Plan::new(self.snapshot);
        let mut held: Vec<(Uid, Arc<Charge>)> = Vec::new();
        for uid in holders {
            held.extend(plan.evict(uid).map(|charge| (uid.clone(), charge)));
        }
        let charge = charge_of(self.pods, now);
        let mut room = AsItIs { classes: self.classes, charge: &charge };
        let rank = |node: &NodeName| self.flows.rank(node);
        let placed = GangSearch::default().go_on(pool, &mut plan, &mut room, &rank, MOST_ON_TRIAL);
        drop(plan);
        self.rejections.keep(before, self.snapshot);
        let placed = placed.and_then(Result::ok).unwrap_or_default();
        (held, placed.iter().map(|(uid, decision)| charge(uid, decision)).collect())
    }

    /// Goes on to look for pods of lower priority that can go so that the whole gang finds room: the node of each pod, with those that go for it. Victims
    /// are looked for each pod after another first, and where that makes no room, among all pods of the cluster at once.
    /// An error: there are none. `None`: it takes longer than a turn.
    pub(in crate::scheduling::scheduler) fn make_room(
        self,
        attempt: &mut UnfinishedAttempt,
        pool: &Pool<'_>,
        rules: Rules,
    ) -> Option<Result<Vec<(Uid, Candidate)>, GangShortfall>> {
        let before = Versions::of(self.snapshot);
        let charge = charge_of(self.pods, Timestamp::UNIX_EPOCH);
        let found = if let Some(cleared) = &mut attempt.cleared {
            let mut plan = Plan::new(self.snapshot);
            cleared.go_on(pool, &mut plan, (self.classes, rules), &charge, MOST_STEPS)
        } else {
            let candidates = std::mem::take(&mut attempt.candidates);
            let mut room = MadeRoom::new(self.classes, rules, charge).going_on(candidates);
            let mut plan = Plan::new(self.snapshot);
            match attempt.search.go_on(pool, &mut plan, &mut room, &|_| 0, MOST_STEPS) {
                Some(Ok(placed)) => Some(Ok(room.nominations(placed))),
                Some(Err(_)) if ClearedSearch::can_help(pool, &plan) => {
                    // In a turn of its own: this one may have taken long.
                    attempt.cleared = Some(ClearedSearch::default());
                    None
                }
                Some(Err(shortfall)) => Some(Err(shortfall)),
                None => {
                    attempt.candidates = room.candidates();
                    None
                }
            }
        };
        self.rejections.keep(before, self.snapshot);
        found
    }
}

/// Whether a pod of the gang fits nowhere, whichever pods go. In a tree of groups, the others may be enough without it.
pub(in crate::scheduling::scheduler) fn is_in_vain(pool: &Pool<'_>, shortfall: &GangShortfall) -> bool {
    let is_lost = |uid: &Uid| {
        let error = shortfall.failure_of(uid).flatten();
        error.is_some_and(|error| error.blame().resolvable() == Resolvable::No)
    };
    if shortfall.domain.is_some() {
        return false;
    }
    match &pool.gang.groups {
        None => shortfall.failed.iter().any(|(uid, _)| is_lost(uid)),
        Some(tree) => {
            let others = pool.applicants.iter().filter(|applicant| !is_lost(applicant.uid()));
            !tree.wholes(&pool.placed.clone().beside(others.map(|applicant| &applicant.member)))[pool.part]
        }
    }
}

/// What a decision charges to a pod of these.
fn charge_of(pods: &Pods, now: Timestamp) -> impl Fn(&Uid, &Decision) -> Charge {
    move |uid, decision| {
        let Decision { node, allocations, steps } = decision.clone();
        let info = &pods.get(uid).expect("only known pods are placed").info;
        assumed(info, node, allocations, steps, now)
    }
}
