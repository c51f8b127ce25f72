//! What the plugins that look at one node make of every node for one ask. A class keeps it, so that only nodes that have changed are judged
//! again; a dry run begins without any.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use super::{
    nearest::{Closeness, Refused},
    verdict::{NodeVerdict, Surroundings},
};
use crate::scheduling::{
    model::pod::Ask,
    packing::vacancy::Vacancy,
    plugin::score::weights::ScoreWeights,
    world::{World, node_state::NodeState},
};

/// What is made of the nodes, by slot. What a decision looks at of every node lies close together.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// The node's generation when it was judged; 0: there was no node.
    generations: Vec<u64>,
    /// The weighted sum of the node's scores, as long as none depends on other nodes; [`UNFIT`]: it does not fit.
    scores: Vec<f64>,
    of_nodes: Vec<NodeVerdict>,
    /// How many of these have scores that depend on those of other nodes.
    relative: usize,
    /// For which version of the mix of pods nodes are scored.
    packing: u64,
    /// What the pod would leave, by the address of the room that it finds: nodes with equal rooms share it.
    vacancies: HashMap<usize, Arc<Vacancy>>,
    /// How close each node comes that fails, and at which generation: found out only where no node is taken.
    closeness: Vec<(u64, Option<Closeness>)>,
}

/// The score of a node that does not fit.
const UNFIT: f64 = f64::NEG_INFINITY;

/// By what scores of nodes are made.
struct NodeScoring<'a> {
    around: Surroundings<'a>,
    weights: ScoreWeights,
}

impl Verdicts {
    /// Judges every node.
    pub fn new(ask: &Ask, world: &World, weights: ScoreWeights) -> Self {
        let mut verdicts = Self::default();
        let _ = verdicts.update(ask, world, weights, || ControlFlow::Continue(()));
        verdicts
    }

    /// Judges the nodes that have changed since the last time, and says how many these were. `go_on` is asked before each; when it says no, the
    /// rest stays as it was.
    pub fn update(
        &mut self,
        ask: &Ask,
        world: &World,
        weights: ScoreWeights,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<(), usize> {
        let (slots, generations) = (world.nodes.slots(), world.nodes.generations());
        let scoring = NodeScoring { around: world.into(), weights };
        self.resize(slots.len());
        let is_revalued = self.packing != scoring.around.packing.version();
        self.packing = scoring.around.packing.version();
        let mut judged_anew = 0;
        for (slot, generation) in generations.iter().enumerate() {
            let is_known = self.generations[slot] == *generation;
            match &slots[slot] {
                Some(state) if !is_known => {
                    go_on()?;
                    judged_anew += 1;
                    self.judge(slot, ask, state, &scoring);
                }
                Some(state) if is_revalued => self.value(slot, &scoring),
                // The slot may be another node's next.
                None if !is_known => self.forget(slot),
                Some(_) | None => {}
            }
        }
        ControlFlow::Continue(judged_anew)
    }

    /// Forgets what was made of the node in this slot.
    pub fn forget(&mut self, slot: usize) {
        if let Some(generation) = self.generations.get_mut(slot) {
            (*generation, self.scores[slot]) = (0, UNFIT);
            self.set(slot, NodeVerdict::Fails(Vec::new()));
        }
    }

    /// Of how many slots something is known.
    pub fn slots(&self) -> usize {
        self.of_nodes.len()
    }

    /// Whether the node in this slot fits, as far as it is known.
    pub fn fits(&self, slot: usize) -> bool {
        self.scores.get(slot).is_some_and(|score| *score > UNFIT)
    }

    /// Whether no node's score depends on those of others.
    pub(super) fn are_independent(&self) -> bool {
        self.relative == 0
    }

    /// Every node with what is made of it, and its score where that depends on no other node.
    pub(super) fn of_nodes<'a>(
        &self,
        world: &'a World,
    ) -> impl Iterator<Item = (&'a Arc<NodeState>, &NodeVerdict, f64)> {
        let verdicts = self.of_nodes.iter().zip(&self.scores);
        let judged = world.nodes.slots().iter().zip(verdicts);
        judged.filter_map(|(state, (verdict, score))| Some((state.as_ref()?, verdict, *score)))
    }

    /// Of the nodes with the highest score the first by name, where no node's score depends on those of others; `None`: none fits.
    pub(super) fn best<'a>(&self, world: &'a World) -> Option<&'a Arc<NodeState>> {
        let highest = self.scores.iter().copied().fold(UNFIT, f64::max);
        let is_highest = |(_, score): &(&Option<Arc<NodeState>>, &f64)| {
            score.total_cmp(&highest).is_eq() && highest > UNFIT
        };
        let highest = world.nodes.slots().iter().zip(&self.scores).filter(is_highest);
        highest
            .filter_map(|(state, _)| state.as_ref())
            .min_by(|one, other| one.info.name.cmp(&other.info.name))
    }

    /// Finds out how close each node comes that fails and has changed since the last time.
    pub(super) fn measure(&mut self, ask: &Ask, world: &World) {
        self.closeness.resize(self.of_nodes.len(), (0, None));
        let judged = world.nodes.slots().iter().zip(&self.of_nodes);
        for ((state, verdict), (generation, closeness)) in judged.zip(&mut self.closeness) {
            let Some(state) = state.as_ref().filter(|state| state.generation != *generation) else {
                continue;
            };
            *generation = state.generation;
            *closeness = match verdict {
                NodeVerdict::Fails(reasons) => Some(Closeness::of(ask, state, reasons, &[])),
                NodeVerdict::Fits(_) => None,
            };
        }
    }

    /// The nodes that fail, each with why and how close it comes, as it was [measured](Self::measure).
    pub(super) fn failed<'a>(&'a self, world: &'a World) -> impl Iterator<Item = Refused<'a>> + Clone {
        let judged = world.nodes.slots().iter().zip(&self.of_nodes).zip(&self.closeness);
        judged.filter_map(|((state, verdict), (_, closeness))| match verdict {
            NodeVerdict::Fails(reasons) => Some((state.as_ref()?, reasons, (*closeness)?)),
            NodeVerdict::Fits(_) => None,
        })
    }

    /// Makes room for so many slots.
    fn resize(&mut self, slots: usize) {
        self.generations.resize(slots, 0);
        self.scores.resize(slots, UNFIT);
        self.of_nodes.resize_with(slots, || NodeVerdict::Fails(Vec::new()));
    }

    /// Judges the node in this slot.
    fn judge(&mut self, slot: usize, ask: &Ask, node: &NodeState, scoring: &NodeScoring<'_>) {
        let mut verdict = NodeVerdict::of(ask, node, scoring.around);
        if let NodeVerdict::Fits(fit) = &mut verdict {
            fit.vacancy = fit.vacancy.take().map(|vacancy| self.share(vacancy));
        }
        self.generations[slot] = node.generation;
        self.scores[slot] = match &verdict {
            NodeVerdict::Fits(fit) => fit.raw.total(&scoring.weights),
            NodeVerdict::Fails(_) => UNFIT,
        };
        self.set(slot, verdict);
    }

    /// The same, as other nodes with this room have it where as much is left of them.
    fn share(&mut self, vacancy: Arc<Vacancy>) -> Arc<Vacancy> {
        // Only once there are twice as many as nodes, so that few decisions look through all of them.
        if self.vacancies.len() > 2 * self.of_nodes.len() {
            self.vacancies.retain(|_, vacancy| Arc::strong_count(vacancy) > 1);
        }
        let known = self.vacancies.entry(Arc::as_ptr(&vacancy.before).addr());
        let known = known.or_insert_with(|| vacancy.clone());
        if known.is_alike(&vacancy) { known.clone() } else { vacancy }
    }

    fn set(&mut self, slot: usize, verdict: NodeVerdict) {
        let is_relative =
            |verdict: &NodeVerdict| matches!(verdict, NodeVerdict::Fits(fit) if fit.raw.is_relative());
        self.relative += usize::from(is_relative(&verdict));
        self.relative -= usize::from(is_relative(&self.of_nodes[slot]));
        self.of_nodes[slot] = verdict;
    }

    /// Scores a node anew for another mix of pods.
    fn value(&mut self, slot: usize, scoring: &NodeScoring<'_>) {
        if let NodeVerdict::Fits(fit) = &mut self.of_nodes[slot]
            && let Some(vacancy) = &fit.vacancy
        {
            fit.raw.value(vacancy, scoring.around.packing);
            self.scores[slot] = fit.raw.total(&scoring.weights);
        }
    }
}
