//! Room for a gang in a cluster that all pods have left which may be preempted for it, as kube-scheduler makes it: those that can stay beside the gang
//! are put back.
//!
//! It is tried where looking for victims for one pod after another makes no room, as where a pod of the gang is kept away by pods on several nodes.
//! Source: v1.37 `pkg/scheduler/framework/preemption/podgrouppreemption.go` (`selectVictimsOnDomain`). The gang is placed by Berth's own search.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::{
    made_room::as_it_is,
    place::{AsItIs, GangShortfall},
    pool::{Applicant, Pool},
    search::GangSearch,
};
use crate::scheduling::{
    decide::{Decision, class::Classes},
    model::{
        name::{NodeName, Uid},
        pod::{Demand, PreemptionPolicy},
        steps::TRY_POD,
    },
    plan::{
        Plan,
        preemption::{Candidate, OffUnit, Reach, Rules, Victim, take_off_all},
    },
    snapshot::Snapshot,
    world::ledger::Charge,
};

/// So many places of the gang are confirmed at most while pods are put back, which takes about 25 ms; where that is not enough, the gang finds no
/// victims.
const MOST_CONFIRMED: usize = 1_200;

/// So many pods are put back at a time, where each of them can stay.
const AT_A_TIME: usize = 16;

/// The search for victims in the cleared cluster.
#[derive(Debug, Default)]
pub struct ClearedSearch {
    search: GangSearch,
    /// The places of the gang, once they are found: pods are put back in a turn of its own.
    placed: Option<Vec<(Uid, Decision)>>,
}

/// A place of a pod of the gang.
struct Place<'p> {
    applicant: &'p Applicant,
    decision: Decision,
}

impl ClearedSearch {
    /// Whether this can make room where looking for victims for one pod after another does not: that makes what room there is for pods that are alike, as
    /// long as a pod is in their way on its node alone.
    pub fn can_help(pool: &Pool<'_>, snapshot: &Snapshot) -> bool {
        let Some(preemptor) = preemptor(pool) else { return false };
        let ledger = snapshot.ledger();
        let has_lower = ledger.lowest_priority().is_some_and(|lowest| lowest < preemptor.priority);
        let demands = || pool.applicants.iter().map(|applicant| &applicant.demand);
        let are_alike = || demands().all(|demand| demand.is_alike(&preemptor));
        let is_wide = || {
            let mut charges = ledger.all().map(|(_, charge)| charge);
            let has_terms = |charge: &Charge| !charge.footprint.neighbours.anti_affinity.is_empty();
            Reach::of(demands(), snapshot).is_wide() || charges.any(has_terms)
        };
        let helps = || pool.gang.groups.is_some() || !are_alike() || is_wide();
        (has_lower || ledger.has_groups()) && helps()
    }

    /// Goes on until it is known which pods go for the gang: the node of each of its pods, with those that go for it. `None`: it goes on later. The
    /// plan is to be undone.
    ///
    /// # Errors
    ///
    /// The gang finds no room, has lost a place that it had found, or it takes too long to find out which pods can stay.
    pub fn go_on(
        &mut self,
        pool: &Pool<'_>,
        plan: &mut Plan<'_>,
        (classes, rules): (&mut Classes, Rules),
        charge: &dyn Fn(&Uid, &Decision) -> Charge,
        most_steps: u64,
    ) -> Option<Result<Vec<(Uid, Candidate)>, GangShortfall>> {
        let none = || Some(Err(pool.shortfall(0, Vec::new(), None)));
        let Some(preemptor) = preemptor(pool) else { return none() };
        let demands = || pool.applicants.iter().map(|applicant| &applicant.demand);
        let kept = demands().flat_map(|demand| demand.footprint.claims_of_devices()).collect();
        let off = take_off_all(&preemptor, &kept, plan, rules, classes.counts().steps());
        if off.is_empty() {
            return none();
        }
        let Some(placed) = &self.placed else {
            let mut room = AsItIs { classes: &mut *classes, charge };
            return match self.search.go_on(pool, plan, &mut room, &|_| 0, most_steps)? {
                Ok(placed) => {
                    self.placed = Some(placed);
                    None
                }
                Err(shortfall) => Some(Err(shortfall)),
            };
        };
        let mut reprieve =
            Reprieve { places: Vec::new(), reach: Reach::of(demands(), plan), classes, charge, confirmed: 0 };
        for (uid, decision) in placed {
            let applicant = pool.applicants.iter().find(|applicant| applicant.uid() == uid);
            let confirmed = |applicant| Some((applicant, reprieve.confirm(applicant, &decision.node, plan)?));
            // Where the cluster has changed since the places were found, whoever tries the gang tries it again.
            let Some((applicant, decision)) = applicant.and_then(confirmed) else { return none() };
            reprieve.places.push(Place { applicant, decision });
        }
        Some(reprieve.victims(off, plan).ok_or_else(|| pool.shortfall(0, Vec::new(), None)))
    }
}

/// For whom pods go: the pod of the gang with the lowest priority. `None`: one of its pods preempts no others.
fn preemptor(pool: &Pool<'_>) -> Option<Demand> {
    let demands = || pool.applicants.iter().map(|applicant| &applicant.demand);
    if demands().any(|demand| demand.preemption_policy == PreemptionPolicy::Never) {
        return None;
    }
    demands().min_by_key(|demand| demand.priority).cloned()
}

/// Pods are put back beside the gang.
struct Reprieve<'p, 'c> {
    places: Vec<Place<'p>>,
    /// Which pods are in the way of the gang from other nodes.
    reach: Reach,
    classes: &'c mut Classes,
    charge: &'c dyn Fn(&Uid, &Decision) -> Charge,
    /// How many places were confirmed.
    confirmed: usize,
}

impl<'p> Reprieve<'p, '_> {
    /// The node of each pod of the gang, and who of these goes for it. `None`: it takes too long.
    fn victims(mut self, off: Vec<OffUnit>, plan: &mut Plan<'_>) -> Option<Vec<(Uid, Candidate)>> {
        // Those that nothing of the gang depends on stay in any case.
        let mut concerned: Vec<OffUnit> =
            off.into_iter().filter(|unit| !self.concerned(std::slice::from_ref(unit)).is_empty()).collect();
        let mut gone = Vec::new();
        while !concerned.is_empty() {
            let next = concerned.drain(..AT_A_TIME.min(concerned.len())).collect();
            gone.extend(self.put_back(next, plan)?);
        }
        Some(self.candidates(gone))
    }

    /// Puts as many of these back as can stay, in their order; those that can't. To put one back more never gives the gang room. `None`: it takes
    /// too long.
    fn put_back(&mut self, mut units: Vec<OffUnit>, plan: &mut Plan<'_>) -> Option<Vec<OffUnit>> {
        if self.can_stay(&units, plan)? {
            return Some(Vec::new());
        }
        if units.len() == 1 {
            return Some(units);
        }
        let others = units.split_off(units.len() / 2);
        let mut gone = self.put_back(units, plan)?;
        gone.extend(self.put_back(others, plan)?);
        Some(gone)
    }

    /// Puts these back, if each pod of the gang still has its node then; whether it has. `None`: it takes too long.
    fn can_stay(&mut self, units: &[OffUnit], plan: &mut Plan<'_>) -> Option<bool> {
        let concerned = self.concerned(units);
        let mark = plan.mark();
        for at in &concerned {
            plan.evict(self.places[*at].applicant.uid());
        }
        for unit in units {
            unit.put_back(plan);
        }
        let mut decisions = Vec::new();
        for at in &concerned {
            let Place { applicant, decision } = &self.places[*at];
            let (applicant, node) = (*applicant, decision.node.clone());
            if self.confirmed == MOST_CONFIRMED {
                return None;
            }
            self.confirmed += 1;
            let Some(decision) = self.confirm(applicant, &node, plan) else {
                plan.undo(mark);
                return Some(false);
            };
            decisions.push(decision);
        }
        for (at, decision) in concerned.into_iter().zip(decisions) {
            self.places[at].decision = decision;
        }
        Some(true)
    }

    /// The places of the gang that depend on these pods.
    fn concerned(&self, units: &[OffUnit]) -> Vec<usize> {
        let victims = units.iter().flat_map(OffUnit::victims);
        let nodes: BTreeSet<&NodeName> = victims.map(|victim| &victim.node).collect();
        let is_far = units.iter().flat_map(OffUnit::charges).any(|charge| self.reach.is_far(charge));
        let is_concerned = |place: &Place<'_>| is_far || nodes.contains(&place.decision.node);
        let places = self.places.iter().enumerate().filter(|(_, place)| is_concerned(place));
        places.map(|(at, _)| at).collect()
    }

    /// Places the pod of the gang on this node, if that has room for it.
    fn confirm(
        &mut self,
        applicant: &'p Applicant,
        node: &NodeName,
        plan: &mut Plan<'_>,
    ) -> Option<Decision> {
        self.classes.counts().steps().add(TRY_POD, 1);
        let decision = self.classes.confirm(&applicant.demand, node, plan)?;
        plan.place(applicant.uid(), (self.charge)(applicant.uid(), &decision));
        Some(decision)
    }

    /// The node of each pod of the gang, and who goes for it: those on its node, and for the first one those on nodes that none of them takes.
    fn candidates(self, mut gone: Vec<OffUnit>) -> Vec<(Uid, Candidate)> {
        OffUnit::sort(&mut gone);
        let mut first: BTreeMap<NodeName, usize> = BTreeMap::new();
        for (at, place) in self.places.iter().enumerate() {
            first.entry(place.decision.node.clone()).or_insert(at);
        }
        let mut candidates: Vec<(Uid, Candidate)> = self
            .places
            .into_iter()
            .map(|Place { applicant, decision }| (applicant.uid().clone(), as_it_is(decision.node)))
            .collect();
        for unit in gone {
            let of_node = |victim: &Victim| first.get(&victim.node).copied();
            let at = unit.victims().iter().find_map(of_node).unwrap_or_default();
            if let Some((_, candidate)) = candidates.get_mut(at) {
                candidate.violations += unit.violations();
                candidate.victims.extend(unit.victims().iter().cloned());
            }
        }
        candidates
    }
}
