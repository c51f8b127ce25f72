//! Pods with equal asks are decided alike: a class remembers its verdict on each node and asks again only where a node has changed.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use super::{
    cycle::{Cycle, Preferences},
    filter::filter,
    fit_error::FitError,
    node::NodeName,
    plugin::volume_binding::VolumeChoice,
    pod::{Ask, Demand, Uid},
    pod_counts::PodCounts,
    reason::NodeReasons,
    score::{Feasible, ScoreWeights},
    snapshot::{NodeState, Snapshot},
    verdict::{Decision, NodeVerdict, Relation, best_scored, judge, within},
};
use crate::device::{Assignment, Quota};

/// How a class came to be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Known {
    /// A pod of it was decided.
    Decided,
    /// It was only hinted at.
    Hinted,
}

/// One class of pods.
#[derive(Debug)]
struct Class {
    known: Known,
    verdicts: Vec<(u64, NodeVerdict)>,
    /// Whether the scores in the verdicts depend on each other.
    relation: Relation,
    /// Pods that no node would have for what it is itself.
    waiting: BTreeSet<Uid>,
    /// Pods that some node would have, were it not for other nodes and their pods.
    waiting_around: BTreeSet<Uid>,
    /// What was last found to be too little of a quota, and of which generation the nodes were.
    too_little: Option<(Quota, u64, FitError)>,
}

/// Which plugins rejected the nodes that a waiting pod found no place on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rejected {
    /// Plugins that look at one node.
    Itself,
    /// Also plugins that look at more than one.
    Around,
}

/// Whether nodes failed for the quota alone.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ByQuota {
    Some,
    None,
}

/// Every class.
#[derive(Debug, Default)]
pub struct Classes {
    by_ask: HashMap<Arc<Ask>, Class>,
    /// The asks with pods waiting, in the order in which they began to.
    waiting: Vec<Arc<Ask>>,
    /// The asks that were only hinted at, oldest first.
    hinted: VecDeque<Arc<Ask>>,
    /// How many pods of a selector stand on each node.
    counts: PodCounts,
    weights: ScoreWeights,
}

/// Classes without waiting pods that are remembered; beyond, they are judged anew.
const REMEMBERED: usize = 1024;

/// Classes that are remembered beside those although no pod of them was decided: hints push out older hints and nothing else.
const HINTED: usize = 64;

impl Classes {
    /// No class yet; nodes will be compared by these weights.
    pub fn new(weights: ScoreWeights) -> Self {
        Self { weights, ..Self::default() }
    }

    /// The best node for a pod, and the cards that it would give: a smaller `rank` comes before a higher score, 0 is the best; equals
    /// go by name.
    pub fn decide(
        &mut self,
        demand: &Demand,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Result<Decision, FitError> {
        let Demand { ask, footprint, .. } = demand;
        let (quotas, profile, namespace) = (snapshot.quotas(), &ask.profile.name, &*footprint.namespace);
        if let Some(exceeded) = quotas.exceeded(namespace, profile, ask.request.least()) {
            return Err(FitError::of_quota(exceeded));
        }
        let quota = quotas.left(namespace, profile);
        let (node, volumes) =
            self.best(demand, snapshot, device_resources, quota, rank).map_err(|(error, cause)| {
                let standing = || quotas.standing(namespace, profile);
                if cause == ByQuota::Some { error.beside_quota(standing()) } else { error }
            })?;
        let state = snapshot.node(&node).expect("the best node is one of the snapshot");
        let judged = judge(ask, state, device_resources, quota);
        let (assignment, _) = judged.expect("a class's verdict is of the node as it is");
        Ok(Decision { node, assignment, volumes })
    }

    /// The cards that one node would give a pod, within what its namespace may still take.
    pub(super) fn judge(
        &mut self,
        demand: &Demand,
        node: &NodeName,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
    ) -> Option<Assignment> {
        let Demand { ask, footprint, .. } = demand;
        let state = snapshot.node(node)?;
        let quota = snapshot.quotas().left(&footprint.namespace, &ask.profile.name);
        let (assignment, _) = judge(ask, state, device_resources, quota).ok()?;
        let cycle = Cycle::prepare(demand, snapshot.surroundings(), &mut self.counts).ok()?;
        cycle.test(state).ok()?;
        snapshot.nominations().test(demand, state, snapshot.surroundings(), device_resources).ok()?;
        // A pod whose claims are still to be bound is not ready for its node.
        cycle.volumes(state).ok()?.is_empty().then_some(assignment)
    }

    /// The best node, or why there is none.
    ///
    /// Verdicts are kept as they are without a quota. What an ask comes to is mostly the same on every node, and [`decide`] has
    /// compared that with the quota; where it depends on the cards, a node that would take too much is judged anew.
    ///
    /// [`decide`]: Self::decide
    fn best(
        &mut self,
        demand: &Demand,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        quota: Quota,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Result<(NodeName, Vec<VolumeChoice>), (FitError, ByQuota)> {
        let ask = &demand.ask;
        let cycle = match Cycle::prepare(demand, snapshot.surroundings(), &mut self.counts) {
            Ok(cycle) => cycle,
            Err(reason) => {
                // A node that would have it as it is now does not wake it.
                self.judged(ask, snapshot, device_resources, Known::Decided);
                return Err((FitError::of_pod(snapshot.nodes().count(), reason), ByQuota::None));
            }
        };
        let preferences = Preferences::prepare(demand, snapshot.surroundings(), &mut self.counts);
        let weights = self.weights;
        let class = self.judged(ask, snapshot, device_resources, Known::Decided);
        // Many pods may wait for one quota: what is too little for the first is so for all.
        if let Some((too_little, generation, error)) = &class.too_little
            && cycle.is_empty()
            && (*too_little, *generation) == (quota, snapshot.generation())
        {
            return Err((error.clone(), ByQuota::Some));
        }
        let mut refused: Vec<NodeReasons> = Vec::new();
        let mut rejected: Vec<NodeReasons> = Vec::new();
        let mut kept = false;
        let judged = snapshot.slots().iter().zip(&class.verdicts);
        let fitting = judged.filter_map(|(state, (_, verdict))| {
            let (Some(state), NodeVerdict::Fits(raw, total)) = (state, verdict) else { return None };
            if let Err(reasons) = cycle.test(state) {
                rejected.push(reasons);
                return None;
            }
            let around = snapshot.surroundings();
            if let Err(reasons) = snapshot.nominations().test(demand, state, around, device_resources) {
                kept = true;
                rejected.push(reasons);
                return None;
            }
            let raw = within(ask, state, device_resources, quota, (*raw, *total));
            raw.map(|raw| Feasible { node: &state.info, raw }).map_err(|reasons| refused.push(reasons)).ok()
        });
        let relation = if preferences.is_empty() { class.relation } else { Relation::Relative };
        if let Some(name) = best_scored(ask, &preferences, relation, &weights, fitting, rank) {
            let state = snapshot.node(name).expect("the best node is one of the snapshot");
            let volumes = cycle.volumes(state).expect("a node that fits has passed the test of claims");
            return Ok((name.clone(), volumes));
        }
        let error = class.fit_error(snapshot, refused.iter().chain(&rejected));
        let error = if kept { error.beside_nominated() } else { error };
        if refused.is_empty() {
            return Err((error, ByQuota::None));
        }
        if cycle.is_empty() && !kept {
            class.too_little = Some((quota, snapshot.generation(), error.clone()));
        }
        Err((error, ByQuota::Some))
    }

    /// Judges for pods that may come: when one does, only nodes that have changed since are asked. Nothing else follows from it.
    pub fn warm(&mut self, ask: &Arc<Ask>, snapshot: &Snapshot, device_resources: &BTreeSet<String>) {
        self.judged(ask, snapshot, device_resources, Known::Hinted);
    }

    /// How many pods of all classes wait for a node to change.
    pub fn waiting(&self) -> usize {
        let classes = self.waiting.iter().filter_map(|ask| self.by_ask.get(ask));
        classes.map(|class| class.waiting.len() + class.waiting_around.len()).sum()
    }

    /// A pod of this class found no node: it waits for one to change. `Around` says that a plugin which looks at more than one node
    /// has rejected some: what these were is no reason to decide again.
    pub fn wait(&mut self, ask: &Arc<Ask>, uid: Uid, rejected: Rejected) {
        let Some(class) = self.by_ask.get_mut(ask) else {
            return;
        };
        match rejected {
            Rejected::Itself => class.waiting.insert(uid),
            Rejected::Around => class.waiting_around.insert(uid),
        };
        if !self.waiting.contains(ask) {
            self.waiting.push(ask.clone());
        }
    }

    /// A pod of this class waits no more.
    pub fn leave(&mut self, ask: &Arc<Ask>, uid: &Uid) {
        if let Some(class) = self.by_ask.get_mut(ask) {
            class.waiting.remove(uid);
            class.waiting_around.remove(uid);
            if class.has_none_waiting() {
                self.waiting.retain(|waiting| waiting != ask);
            }
        }
    }

    /// Whether the class is remembered: its pods can wait.
    pub fn knows(&self, ask: &Arc<Ask>) -> bool {
        self.by_ask.contains_key(ask)
    }

    /// Whether a pod of this class waits.
    pub fn holds(&self, ask: &Arc<Ask>, uid: &Uid) -> bool {
        let class = self.by_ask.get(ask);
        class.is_some_and(|class| class.waiting.contains(uid) || class.waiting_around.contains(uid))
    }

    /// Forgets what was found of the node in this slot: it is judged anew, and wakes every waiting pod that it would have.
    pub fn forget(&mut self, slot: usize) {
        for class in self.by_ask.values_mut() {
            if let Some(verdict) = class.verdicts.get_mut(slot) {
                *verdict = (0, NodeVerdict::Fails(Vec::new()));
            }
        }
    }

    /// The waiting pods that the node in this slot, as it now is, would have, were it not for their quotas and for other nodes. Pods
    /// that wait for other nodes and their pods are among them only if the node did not fit when their class was last decided.
    pub fn wake(&mut self, slot: usize, node: &NodeState, device_resources: &BTreeSet<String>) -> Vec<Uid> {
        let mut woken = Vec::new();
        for ask in &self.waiting {
            let Some(class) = self.by_ask.get_mut(ask) else { continue };
            let fitted = matches!(class.verdicts.get(slot), Some((_, NodeVerdict::Fits(..))));
            if class.waiting.is_empty() && fitted {
                continue;
            }
            if filter(ask, node, device_resources, Quota::default()).is_err() {
                continue;
            }
            woken.extend(std::mem::take(&mut class.waiting));
            if !fitted {
                woken.extend(std::mem::take(&mut class.waiting_around));
            }
        }
        let by_ask = &self.by_ask;
        self.waiting.retain(|ask| by_ask.get(ask).is_some_and(|class| !class.has_none_waiting()));
        woken
    }

    fn judged(
        &mut self,
        ask: &Arc<Ask>,
        snapshot: &Snapshot,
        device_resources: &BTreeSet<String>,
        by: Known,
    ) -> &mut Class {
        self.make_known(ask, by);
        let class = self.by_ask.get_mut(ask).expect("it was just made known");
        class.verdicts.resize_with(snapshot.slots().len(), || (0, NodeVerdict::Fails(Vec::new())));
        class.relation = Relation::Independent;
        for (state, verdict) in snapshot.slots().iter().zip(&mut class.verdicts) {
            let Some(state) = state else {
                // The slot may be another node's next.
                *verdict = (0, NodeVerdict::Fails(Vec::new()));
                continue;
            };
            if verdict.0 != state.generation {
                *verdict = (state.generation, NodeVerdict::of(ask, state, device_resources));
            }
            if matches!(&verdict.1, NodeVerdict::Fits(raw, _) if raw.is_relative()) {
                class.relation = Relation::Relative;
            }
        }
        class
    }

    fn make_known(&mut self, ask: &Arc<Ask>, by: Known) {
        match (self.by_ask.get_mut(ask), by) {
            (Some(class), Known::Decided) if class.known == Known::Hinted => {
                class.known = Known::Decided;
                self.hinted.retain(|hinted| hinted != ask);
            }
            (Some(_), _) => return,
            (None, Known::Decided) => {}
            (None, Known::Hinted) => {
                if self.hinted.len() >= HINTED {
                    let oldest = self.hinted.pop_front();
                    oldest.and_then(|oldest| self.by_ask.remove(&oldest));
                }
                self.hinted.push_back(ask.clone());
            }
        }
        if by == Known::Decided && self.by_ask.len() - self.hinted.len() > REMEMBERED {
            self.by_ask.retain(|known, class| {
                !class.has_none_waiting() || class.known == Known::Hinted || known == ask
            });
        }
        let new = || Class {
            known: by,
            verdicts: Vec::new(),
            relation: Relation::Independent,
            waiting: BTreeSet::new(),
            waiting_around: BTreeSet::new(),
            too_little: None,
        };
        self.by_ask.entry(ask.clone()).or_insert_with(new);
    }
}

impl Class {
    fn has_none_waiting(&self) -> bool {
        self.waiting.is_empty() && self.waiting_around.is_empty()
    }

    /// Why each node failed; those that are refused for the quota would do without it.
    fn fit_error<'a>(
        &'a self,
        snapshot: &'a Snapshot,
        refused: impl Iterator<Item = &'a NodeReasons>,
    ) -> FitError {
        let judged = snapshot.slots().iter().zip(&self.verdicts).filter(|(state, _)| state.is_some());
        let failed = judged.filter_map(|(_, (_, verdict))| match verdict {
            NodeVerdict::Fails(reasons) => Some(reasons),
            NodeVerdict::Fits(..) => None,
        });
        FitError::of_nodes(failed.chain(refused))
    }
}

#[cfg(test)]
mod tests;
