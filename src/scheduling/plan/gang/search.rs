//! The search for places for a gang. One that takes long ends after so many steps and goes on later from what it has found.
//!
//! The pods are placed on trial one after another, each beside those before it: in the order of the queue, then by their size, and once for each
//! domain where they must share one. What was found is remembered until the search is over. When it goes on, each place is confirmed by the
//! cluster as it is by then, which costs a look at one node, and one that is lost is looked for anew. A pod that found no place is not tried
//! again, so that a gang which fits nowhere is refused after as many steps however often the cluster changes.

mod groups;
#[cfg(test)]
mod tests;

use std::{
    cell::OnceCell,
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use groups::TreeSearch;

use super::{
    order::by_size,
    place::{GangShortfall, LAST, NodesByValue, OUTSIDE, TrialRoom},
    pool::{Applicant, Pool},
};
use crate::scheduling::{
    decide::{Decision, fit_error::FitError},
    model::{
        gang::{SharedTopology, Strictness},
        name::{NodeName, Uid},
        pod::Demand,
    },
    plan::{Plan, Savepoint},
    snapshot::Snapshot,
};

/// Where a pod goes or why nowhere; no error where it would outside the domain.
type Found = Result<Decision, Option<FitError>>;

/// The places of a gang's pods, or why there are not enough.
pub type Placed = Result<Vec<(Uid, Decision)>, GangShortfall>;

/// Places as many pods as find room, in the plan. Where they are not enough, nothing is placed.
///
/// # Errors
///
/// The pods that find room together are too few.
pub fn place(
    pool: &Pool<'_>,
    plan: &mut Plan<'_>,
    room: &mut impl TrialRoom,
    rank: &dyn Fn(&NodeName) -> usize,
) -> Placed {
    let found = GangSearch::default().go_on(pool, plan, room, rank, u64::MAX);
    found.expect("a search without a limit is not interrupted")
}

/// How far the search for places for a gang is.
#[derive(Debug, Default)]
pub struct GangSearch {
    stage: SearchStage,
    trials: Trials,
    /// The same of a tree of groups.
    of_tree: TreeSearch,
}

#[derive(Debug, Default)]
enum SearchStage {
    /// On any node.
    #[default]
    Anywhere,
    /// In one domain after another.
    Domains(CandidateDomains),
    /// In the domain that was chosen; none: on any node, although the pods should share one.
    Chosen(Strictness, Option<Domain>),
}

/// The domains that a gang may be placed in.
#[derive(Debug)]
struct CandidateDomains {
    topology: SharedTopology,
    /// Those that are still to be tried.
    left: VecDeque<Arc<str>>,
    /// The domain with room for most pods, of those that were tried.
    best: Option<(Arc<str>, Trial)>,
    /// The pods that find no place on any node beside the others.
    failed: Vec<(Uid, Option<FitError>)>,
}

/// The nodes with one value of a label.
#[derive(Clone, Debug)]
struct Domain {
    key: Arc<str>,
    value: Arc<str>,
}

/// What came of one trial.
#[derive(Debug)]
struct Trial {
    placed: Vec<(Uid, Decision)>,
    failed: Vec<(Uid, Option<FitError>)>,
    whole: bool,
}

/// What is remembered of the trials in one domain.
#[derive(Debug, Default)]
struct Trials {
    /// What the order of the queue came to, while the pods are tried by their size.
    queued: Option<Trial>,
    /// What was found so far in the trial under way.
    found: HashMap<Uid, Found>,
}

/// How much a search may take before it is interrupted.
struct SearchSlice {
    most: u64,
    /// How many steps were taken before the first place was looked for: what it takes to confirm others is not counted, so that the search always
    /// comes further.
    began: Option<u64>,
}

impl SearchSlice {
    /// Whether another place may be looked for.
    fn goes_on(&mut self, steps: u64) -> bool {
        let Some(began) = self.began else {
            self.began = Some(steps);
            return true;
        };
        steps.saturating_sub(began) < self.most
    }
}

/// What the cluster is for the search: it places pods in the plan, and asks the room.
struct Ground<'s, 'p, R> {
    pool: &'s Pool<'s>,
    plan: &'s mut Plan<'p>,
    room: &'s mut R,
    slice: SearchSlice,
}

impl GangSearch {
    /// Goes on until the gang is placed in the plan, or can't be, or places have been looked for with so many steps; `None`: it goes on later, and
    /// what the plan holds is to be undone. Where the gang can't be placed, the plan is as it was.
    ///
    /// The pool must be the one that the search began with.
    pub fn go_on(
        &mut self,
        pool: &Pool<'_>,
        plan: &mut Plan<'_>,
        room: &mut impl TrialRoom,
        rank: &dyn Fn(&NodeName) -> usize,
        most_steps: u64,
    ) -> Option<Placed> {
        let mark = plan.mark();
        let mut ground = Ground { pool, plan, room, slice: SearchSlice { most: most_steps, began: None } };
        if let Some(tree) = &pool.gang.groups {
            return self.of_tree.go_on(tree, &mut ground, rank);
        }
        // A plan changes no label: the nodes are gone through once, however many domains are tried.
        let by_value = OnceCell::new();
        loop {
            let trials = &mut self.trials;
            self.stage = match &mut self.stage {
                SearchStage::Anywhere => {
                    let trial = trials.in_orders(&mut ground, rank)?;
                    let topology = pool.gang.topology.as_ref();
                    let Some(topology) = topology.filter(|_| trial.whole) else {
                        return Some(ground.end(mark, trial));
                    };
                    ground.plan.undo(mark);
                    let nodes = by_value.get_or_init(|| nodes_by_value(ground.plan, &topology.key));
                    let left = pool.domains(&topology.key, ground.plan, nodes).into();
                    let (topology, failed) = (topology.clone(), trial.failed);
                    SearchStage::Domains(CandidateDomains { topology, left, best: None, failed })
                }
                SearchStage::Domains(domains) => match domains.left.front().cloned() {
                    Some(value) => {
                        let key = &domains.topology.key;
                        let nodes = by_value.get_or_init(|| nodes_by_value(ground.plan, key)).get(&value);
                        let is_inside = |node: &NodeName| nodes.is_some_and(|nodes| nodes.contains(node));
                        let inside = |node: &NodeName| if is_inside(node) { rank(node) } else { OUTSIDE };
                        let trial = trials.in_orders(&mut ground, &inside)?;
                        if trial.whole && trial.failed.is_empty() {
                            return Some(Ok(trial.placed));
                        }
                        ground.plan.undo(mark);
                        domains.note_tried(trial);
                        continue;
                    }
                    None => match domains.choose(pool) {
                        Ok(chosen) => chosen,
                        Err(shortfall) => return Some(Err(shortfall)),
                    },
                },
                SearchStage::Chosen(strictness, domain) => {
                    let nodes = domain.as_ref().map(|Domain { key, value }| {
                        by_value.get_or_init(|| nodes_by_value(ground.plan, key)).get(value)
                    });
                    let outside = |node: &NodeName| match strictness {
                        Strictness::Required => OUTSIDE,
                        Strictness::Preferred => LAST.saturating_add(rank(node)),
                    };
                    let is_inside = |node: &NodeName| {
                        nodes.is_none_or(|nodes| nodes.is_some_and(|nodes| nodes.contains(node)))
                    };
                    let inside_first =
                        |node: &NodeName| if is_inside(node) { rank(node) } else { outside(node) };
                    let trial = trials.in_orders(&mut ground, &inside_first)?;
                    if trial.whole || *strictness == Strictness::Required || domain.is_none() {
                        return Some(ground.end(mark, trial));
                    }
                    ground.plan.undo(mark);
                    SearchStage::Chosen(*strictness, None)
                }
            };
        }
    }
}

impl<R: TrialRoom> Ground<'_, '_, R> {
    /// The end of the search: the gang is whole, or nothing of it is placed.
    fn end(&mut self, mark: Savepoint, trial: Trial) -> Placed {
        if trial.whole {
            return Ok(trial.placed);
        }
        self.plan.undo(mark);
        Err(self.pool.shortfall(trial.placed.len(), trial.failed, None))
    }
}

impl CandidateDomains {
    /// The first of those that are left has been tried.
    fn note_tried(&mut self, trial: Trial) {
        let better = |known: &Trial| (trial.whole, trial.placed.len()) > (known.whole, known.placed.len());
        let is_best = self.best.as_ref().is_none_or(|(_, known)| better(known));
        if let Some(value) = self.left.pop_front().filter(|_| is_best) {
            self.best = Some((value, trial));
        }
    }

    /// Where the gang goes, once each was tried.
    ///
    /// # Errors
    ///
    /// No domain has room for enough pods: what is missing in the best one.
    fn choose(&mut self, pool: &Pool<'_>) -> Result<SearchStage, GangShortfall> {
        let SharedTopology { key, strictness } = self.topology.clone();
        let best = self.best.take();
        if strictness == Strictness::Preferred || best.as_ref().is_some_and(|(_, trial)| trial.whole) {
            let domain = best.map(|(value, _)| Domain { key, value });
            return Ok(SearchStage::Chosen(strictness, domain));
        }
        let (placed, failed, value) = match best {
            Some((value, trial)) => (trial.placed.len(), trial.failed, Some(value)),
            None => (0, std::mem::take(&mut self.failed), None),
        };
        Err(pool.shortfall(placed, failed, Some((key, value))))
    }
}

/// The nodes with each value of the label.
fn nodes_by_value(snapshot: &Snapshot, key: &str) -> NodesByValue {
    let mut nodes = NodesByValue::new();
    for state in snapshot.nodes() {
        if let Some(value) = state.info.labels.get(key) {
            nodes.entry(value.into()).or_default().insert(state.info.name.clone());
        }
    }
    nodes
}

impl Trials {
    /// Places the pods in the order of the queue, or by their size where that does not make the gang whole. If neither does, the result is what
    /// is missing in the order of the queue; what the plan holds is to be undone then. `None`: interrupted.
    fn in_orders<R: TrialRoom>(
        &mut self,
        ground: &mut Ground<'_, '_, R>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Option<Trial> {
        let mark = ground.plan.mark();
        let pool = ground.pool;
        let queued = match self.queued.take() {
            Some(trial) => trial,
            None => self.in_order(&pool.applicants.iter().collect::<Vec<_>>(), ground, rank)?,
        };
        let Some(sized) = by_size(pool).filter(|_| !queued.whole) else { return Some(queued) };
        ground.plan.undo(mark);
        match self.in_order(&sized, ground, rank) {
            Some(sized) if sized.whole => Some(sized),
            Some(_) => Some(queued),
            None => {
                self.queued = Some(queued);
                None
            }
        }
    }

    /// Places the pods one after another, until those that are left can't be enough any more. `None`: interrupted.
    fn in_order<R: TrialRoom>(
        &mut self,
        order: &[&Applicant],
        ground: &mut Ground<'_, '_, R>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Option<Trial> {
        let pool = ground.pool;
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
                None => self.place_of(applicant, ground, rank)?,
            };
            match found {
                Ok(decision) if rank(&decision.node) != OUTSIDE => {
                    refused = None;
                    ground.place(applicant, &decision);
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
        self.found.clear();
        // Pods beyond the minimum are no gang's success where none of them is placed.
        trial.whole = pool.gang.is_whole(&tally) && !trial.placed.is_empty();
        Some(trial)
    }

    /// Where the pod goes beside those before it: where it went before, if that still holds. `None`: interrupted.
    fn place_of<R: TrialRoom>(
        &mut self,
        applicant: &Applicant,
        ground: &mut Ground<'_, '_, R>,
        rank: &dyn Fn(&NodeName) -> usize,
    ) -> Option<Found> {
        let before = self.found.remove(applicant.uid());
        let confirmed = before.and_then(|found| ground.confirm(applicant, found));
        let found = confirmed.or_else(|| ground.find(applicant, rank))?;
        self.found.insert(applicant.uid().clone(), found.clone());
        Some(found)
    }
}

impl<R: TrialRoom> Ground<'_, '_, R> {
    /// Places the pod in the plan.
    fn place(&mut self, applicant: &Applicant, decision: &Decision) {
        let charge = self.room.charge(applicant.uid(), decision);
        self.plan.place(applicant.uid(), charge);
        let beside = self.plan.node(&decision.node).map_or(0, |node| node.pods.len());
        let claims = applicant.demand.footprint.claims_of_devices();
        let users = claims.map(|claim| self.plan.ledger().users_of_claim(&claim).count());
        self.room.classes().count_folded(beside + users.sum::<usize>());
    }

    /// What was found for the pod before, if that still holds.
    fn confirm(&mut self, applicant: &Applicant, found: Found) -> Option<Found> {
        match found {
            Ok(decision) => self.room.confirm(applicant, self.plan, &decision).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// Where the pod goes; `None`: so much has been looked for that the search is interrupted.
    fn find(&mut self, applicant: &Applicant, rank: &dyn Fn(&NodeName) -> usize) -> Option<Found> {
        self.slice.goes_on(self.room.classes().steps()).then(|| self.room.find(applicant, self.plan, rank))
    }
}

/// Whether one pod finds no room where the other finds none, nor has others evicted where that has none.
fn fails_alike(one: &Demand, other: &Demand) -> bool {
    one.is_alike(other) && one.preemption_policy == other.preemption_policy
}
