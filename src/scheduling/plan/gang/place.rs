//! Placing the pods of a gang in one plan: one after another, each beside those before it, in one domain where they must share one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    order::by_size,
    pool::{Applicant, Pool},
};
use crate::scheduling::{
    decide::{Decision, class::Classes, fit_error::FitError},
    model::{
        gang::{SharedTopology, Strictness},
        name::{NodeName, Uid},
        pod::Demand,
    },
    plan::Plan,
    snapshot::Snapshot,
    world::ledger::Charge,
};

/// A node with this rank is not taken at all.
pub(super) const OUTSIDE: usize = usize::MAX;

/// A node outside the preferred domain comes after every node inside.
const LAST: usize = usize::MAX / 4 * 3;

impl Applicant {
    /// The pod.
    pub fn uid(&self) -> &Uid {
        &self.demand.uid
    }
}

/// What one pod needs to be placed on trial, beside the plan itself.
pub trait Room {
    /// Where the pod goes, by the cluster as the plan has it: a node with a smaller `rank` comes first. It may evict others in the plan.
    ///
    /// # Errors
    ///
    /// No node would have it; `None`: only nodes outside the domain would.
    fn find(
        &mut self,
        applicant: &Applicant,
        plan: &mut Plan<'_>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Result<Decision, Option<FitError>>;

    /// What the decision charges to the pod.
    fn charge(&self, uid: &Uid, decision: &Decision) -> Charge;
}

/// Why a gang is not placed.
#[derive(Clone, Debug)]
pub struct Shortfall {
    /// How many pods find a place together at most, those that hold one included.
    pub fitting: usize,
    /// The pods that find none beside the others, and why; `None`: they would outside the domain.
    pub failed: Vec<(Uid, Option<FitError>)>,
    /// The node label of which no value has room for enough pods, with the best value.
    pub domain: Option<(Arc<str>, Option<Arc<str>>)>,
}

impl Shortfall {
    /// Why this pod finds no place; `None`: it does, or was not tried. The error is none where it would outside the domain.
    pub fn failure_of(&self, uid: &Uid) -> Option<Option<&FitError>> {
        let failed = self.failed.iter().find(|(failed, _)| failed == uid);
        failed.map(|(_, error)| error.as_ref())
    }
}

/// What came of one trial.
struct Trial {
    placed: Vec<(Uid, Decision)>,
    failed: Vec<(Uid, Option<FitError>)>,
    whole: bool,
}

/// Places as many pods as find room, in the plan. Where they are not enough, nothing is placed.
///
/// # Errors
///
/// The pods that find room together are too few.
pub fn place(
    pool: &Pool<'_>,
    plan: &mut Plan<'_>,
    room: &mut impl Room,
    rank: &dyn Fn(&NodeName) -> usize,
) -> Result<Vec<(Uid, Decision)>, Shortfall> {
    let mark = plan.mark();
    let anywhere = attempt_in_orders(pool, plan, room, rank);
    let topology = pool.gang.topology.as_ref();
    let Some(SharedTopology { key, strictness }) = topology.filter(|_| anywhere.whole) else {
        if anywhere.whole {
            return Ok(anywhere.placed);
        }
        plan.undo(mark);
        return Err(pool.shortfall(anywhere, None));
    };
    plan.undo(mark);
    let mut best: Option<(Arc<str>, Trial)> = None;
    for domain in pool.domains(key, plan) {
        let labelled = in_domain(plan, key, &domain);
        let inside = |node: &NodeName| if labelled.contains(node) { rank(node) } else { OUTSIDE };
        let trial = attempt_in_orders(pool, plan, room, &inside);
        if trial.whole && trial.failed.is_empty() {
            return Ok(trial.placed);
        }
        plan.undo(mark);
        let better = |known: &Trial| (trial.whole, trial.placed.len()) > (known.whole, known.placed.len());
        if best.as_ref().is_none_or(|(_, known)| better(known)) {
            best = Some((domain, trial));
        }
    }
    let chosen = best.as_ref().filter(|(_, trial)| trial.whole || *strictness == Strictness::Preferred);
    if let Some((domain, _)) = chosen {
        let labelled = in_domain(plan, key, domain);
        let outside = |node: &NodeName| match strictness {
            Strictness::Required => OUTSIDE,
            Strictness::Preferred => LAST.saturating_add(rank(node)),
        };
        let inside_first = |node: &NodeName| if labelled.contains(node) { rank(node) } else { outside(node) };
        return Ok(attempt_in_orders(pool, plan, room, &inside_first).placed);
    }
    if *strictness == Strictness::Preferred {
        return Ok(attempt_in_orders(pool, plan, room, rank).placed);
    }
    let (domain, trial) = best.unzip();
    let trial = trial.unwrap_or(Trial { placed: Vec::new(), failed: anywhere.failed, whole: false });
    Err(pool.shortfall(trial, Some((key.clone(), domain))))
}

/// Places the pods in the order of the queue, or by their size where that does not make the gang whole. If neither does, the result is what
/// is missing in the order of the queue.
fn attempt_in_orders(
    pool: &Pool<'_>,
    plan: &mut Plan<'_>,
    room: &mut impl Room,
    rank: &dyn Fn(&NodeName) -> usize,
) -> Trial {
    let mark = plan.mark();
    let queued: Vec<&Applicant> = pool.applicants.iter().collect();
    let trial = attempt(pool, &queued, plan, room, rank);
    let Some(sized) = by_size(pool).filter(|_| !trial.whole) else { return trial };
    plan.undo(mark);
    let by_size = attempt(pool, &sized, plan, room, rank);
    if by_size.whole { by_size } else { trial }
}

/// Places the pods one after another, until those that are left can't be enough any more.
fn attempt(
    pool: &Pool<'_>,
    order: &[&Applicant],
    plan: &mut Plan<'_>,
    room: &mut impl Room,
    rank: &dyn Fn(&NodeName) -> usize,
) -> Trial {
    let mut trial = Trial { placed: Vec::new(), failed: Vec::new(), whole: false };
    let mut tally = pool.placed.clone();
    // The pod that failed last, as long as none was placed after it: one like it fails for the same.
    let mut refused: Option<(&Applicant, Option<FitError>)> = None;
    for (at, applicant) in order.iter().copied().enumerate() {
        let left = order.len() - at;
        let full = trial.placed.len() >= pool.gang.room(&pool.placed);
        if full || !pool.gang.can_be_whole(&tally, left) {
            break;
        }
        let like = refused.as_ref().filter(|(other, _)| fails_alike(&other.demand, &applicant.demand));
        let found = match like {
            Some((_, error)) => Err(error.clone()),
            None => room.find(applicant, plan, rank),
        };
        match found {
            Ok(decision) if rank(&decision.node) != OUTSIDE => {
                refused = None;
                plan.place(applicant.uid(), room.charge(applicant.uid(), &decision));
                tally.count(&applicant.member);
                trial.placed.push((applicant.uid().clone(), decision));
            }
            Ok(_) => {
                refused = Some((applicant, None));
                trial.failed.push((applicant.uid().clone(), None));
            }
            Err(error) => {
                refused = Some((applicant, error.clone()));
                trial.failed.push((applicant.uid().clone(), error));
            }
        }
    }
    // Pods beyond the minimum are no gang's success where none of them is placed.
    trial.whole = pool.gang.is_whole(&tally) && !trial.placed.is_empty();
    trial
}

/// Whether one pod finds no room where the other finds none, nor has others evicted where that has none.
fn fails_alike(one: &Demand, other: &Demand) -> bool {
    one.is_alike(other) && one.preemption_policy == other.preemption_policy
}

impl Pool<'_> {
    /// The values of the node label in which the gang may be placed: that of the pods which are placed, else each.
    fn domains(&self, key: &str, snapshot: &Snapshot) -> Vec<Arc<str>> {
        let value = |node: &NodeName| {
            let state = snapshot.node(node)?;
            state.info.labels.get(key).map(|value| value.as_str().into())
        };
        if let Some(taken) = self.nodes.iter().find_map(value) {
            return vec![taken];
        }
        let mut sizes: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        for state in snapshot.nodes() {
            if let Some(value) = state.info.labels.get(key) {
                *sizes.entry(value.as_str().into()).or_default() += 1;
            }
        }
        let mut domains: Vec<_> = sizes.into_iter().map(|(value, size)| (size, value)).collect();
        // The smallest domain that has room leaves the larger ones whole.
        domains.sort();
        domains.into_iter().map(|(_, value)| value).collect()
    }

    fn shortfall(&self, trial: Trial, domain: Option<(Arc<str>, Option<Arc<str>>)>) -> Shortfall {
        Shortfall { fitting: self.placed.total() + trial.placed.len(), failed: trial.failed, domain }
    }
}

/// The nodes with this value of the label.
fn in_domain(snapshot: &Snapshot, key: &str, value: &str) -> BTreeSet<NodeName> {
    let labelled = |labels: &BTreeMap<String, String>| labels.get(key).is_some_and(|own| own == value);
    let nodes = snapshot.nodes().filter(|state| labelled(&state.info.labels));
    nodes.map(|state| state.info.name.clone()).collect()
}

/// A gang is placed where its pods fit, and no pod is evicted.
#[derive(Debug)]
pub struct AsItIs<'a, C> {
    /// What is known of pods with equal asks.
    pub classes: &'a mut Classes,
    /// What a decision charges.
    pub charge: C,
}

impl<C: Fn(&Uid, &Decision) -> Charge> Room for AsItIs<'_, C> {
    fn find(
        &mut self,
        applicant: &Applicant,
        plan: &mut Plan<'_>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Result<Decision, Option<FitError>> {
        self.classes.decide(&applicant.demand, plan, rank).map_err(Some)
    }

    fn charge(&self, uid: &Uid, decision: &Decision) -> Charge {
        (self.charge)(uid, decision)
    }
}
