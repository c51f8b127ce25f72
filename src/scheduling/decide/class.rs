//! Pods with equal asks are decided alike: a class remembers its verdict on each node and asks again only where a node has changed.

#[cfg(test)]
mod tests;
mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use super::{
    Decision, Filters, Refusals,
    fit_error::{Awaits, FitError},
    nearest::{Closeness, Refused},
    verdict::{NodeVerdict, Surroundings, best, first_of},
};
use crate::device::{Allocation, Quota};
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        pod::{Ask, Demand},
        steps::{Allowance, FOLD, JUDGE, LOOK, TEST},
    },
    packing::vacancy::Vacancy,
    plugin::{
        cycle::Preferences,
        pod_counts::PodCounts,
        score::{Feasible, RawScores, Scale, weights::ScoreWeights},
    },
    snapshot::Snapshot,
    world::node_state::NodeState,
};
pub use waiting::HeldChange;

/// How a class came to be known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ClassOrigin {
    /// A pod of it was decided.
    Decided,
    /// It was only hinted at.
    Hinted,
}

/// What a class makes of the nodes, by slot. What a decision looks at of every node lies close together.
#[derive(Clone, Debug, Default)]
struct Verdicts {
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
}

/// The score of a node that does not fit.
const UNFIT: f64 = f64::NEG_INFINITY;

/// By what scores of nodes are made.
struct NodeScoring<'a> {
    around: Surroundings<'a>,
    scale: Scale<'a>,
    weights: ScoreWeights,
}

impl Verdicts {
    /// Makes room for so many slots.
    fn resize(&mut self, slots: usize) {
        self.generations.resize(slots, 0);
        self.scores.resize(slots, UNFIT);
        self.of_nodes.resize_with(slots, || NodeVerdict::Fails(Vec::new()));
    }

    /// Forgets what was made of the node in this slot.
    fn forget(&mut self, slot: usize) {
        if let Some(generation) = self.generations.get_mut(slot) {
            (*generation, self.scores[slot]) = (0, UNFIT);
            self.set(slot, NodeVerdict::Fails(Vec::new()));
        }
    }

    /// Whether the node in this slot fits, as far as it is known.
    fn fits(&self, slot: usize) -> bool {
        self.scores.get(slot).is_some_and(|score| *score > UNFIT)
    }

    /// Judges the node in this slot.
    fn judge(&mut self, slot: usize, ask: &Ask, node: &NodeState, scoring: &NodeScoring<'_>) {
        let mut verdict = NodeVerdict::of(ask, node, scoring.around);
        if let NodeVerdict::Fits(fit) = &mut verdict {
            fit.vacancy = fit.vacancy.take().map(|vacancy| self.share(vacancy));
        }
        self.generations[slot] = node.generation;
        self.scores[slot] = match &verdict {
            NodeVerdict::Fits(fit) => scoring.total(node, fit.raw),
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
    fn value(&mut self, slot: usize, node: &NodeState, scoring: &NodeScoring<'_>) {
        if let NodeVerdict::Fits(fit) = &mut self.of_nodes[slot]
            && let Some(vacancy) = &fit.vacancy
        {
            fit.raw.value(vacancy, scoring.around.packing);
            self.scores[slot] = scoring.total(node, fit.raw);
        }
    }
}

impl NodeScoring<'_> {
    fn total(&self, node: &NodeState, raw: RawScores) -> f64 {
        self.scale.scores(&Feasible { node, raw }).total(&self.weights)
    }
}

/// One class of pods.
#[derive(Debug)]
struct Class {
    known: ClassOrigin,
    verdicts: Verdicts,
    /// How close each node comes that fails, and at which generation: found out only where no node is taken.
    closeness: Vec<(u64, Option<Closeness>)>,
    /// Pods that no node would have for what it is itself.
    waiting: BTreeSet<Uid>,
    /// Pods that some node would have, were it not for other nodes and their pods.
    waiting_for_others: BTreeSet<Uid>,
    /// Its place among the classes with waiting pods.
    waiting_place: Option<u64>,
    /// Its place among the classes whose verdicts are kept; `None`: it was only hinted at, or has none.
    judged_place: Option<u64>,
    /// What was last found to be too little of a quota, and of which generation the nodes were.
    too_little: Option<(Vec<Quota>, u64, FitError)>,
}

/// Every class.
#[derive(Debug, Default)]
pub struct Classes {
    by_ask: HashMap<Arc<Ask>, Class>,
    /// The asks with pods waiting, in the order in which they began to.
    waiting: BTreeMap<u64, Arc<Ask>>,
    /// The asks whose verdicts are kept, that which was decided last at the end.
    judged: BTreeMap<u64, Arc<Ask>>,
    /// The asks that were only hinted at, oldest first.
    hinted: VecDeque<Arc<Ask>>,
    /// How many pods of a selector stand on each node.
    counts: PodCounts,
    weights: ScoreWeights,
}

/// Of so many classes the verdicts are kept; a class that is decided after so many others is judged anew. Pods of a class without verdicts still
/// wait in it: a node that changes is asked about each class of which pods wait, whatever it said before.
const REMEMBERED: usize = 1024;

/// Classes that are remembered beside those although no pod of them was decided: hints push out older hints and nothing else.
const HINTED: usize = 64;

impl Classes {
    /// No class yet; nodes will be compared by these weights.
    pub fn new(weights: ScoreWeights) -> Self {
        Self { weights, ..Self::default() }
    }

    /// As these, with decisions that compare claims with devices for so many steps at most.
    #[must_use]
    pub fn bounded(self, claim_allowance: Allowance) -> Self {
        Self { counts: PodCounts::bounded(claim_allowance), ..self }
    }

    /// How many pods of a selector stand on each node, as far as it is known.
    pub(in crate::scheduling) fn counts(&mut self) -> &mut PodCounts {
        &mut self.counts
    }

    /// As [`Self::counts`], beside the weights.
    pub(in crate::scheduling) fn counts_and_weights(&mut self) -> (&mut PodCounts, ScoreWeights) {
        (&mut self.counts, self.weights)
    }

    /// How many steps decisions have taken since they were last taken out.
    pub(in crate::scheduling) fn steps(&mut self) -> u64 {
        self.counts.steps().count()
    }

    /// Counts that what so many pods of a node hold was added up anew for a decision.
    pub(in crate::scheduling) fn count_folded(&mut self, pods: usize) {
        self.counts.steps().add(FOLD, pods);
    }

    /// How many steps decisions have taken since this was last asked.
    pub(in crate::scheduling) fn take_steps(&mut self) -> u64 {
        std::mem::take(self.counts.steps()).count()
    }

    /// By how much each plugin's score of a node is multiplied.
    pub fn weights(&self) -> ScoreWeights {
        self.weights
    }

    /// The best node for a pod, and the cards that it would give: a smaller `rank` comes before a higher score, 0 is the best; equals
    /// go by name.
    ///
    /// Verdicts are kept as they are without a quota. What an ask comes to is mostly the same on every node, and is compared with the
    /// quota before; where it depends on the cards, a node that would take too much is judged anew.
    pub fn decide(
        &mut self,
        demand: &Demand,
        snapshot: &Snapshot,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Result<Decision, FitError> {
        let Demand { ask, .. } = demand;
        let world = snapshot.world();
        let filters = Filters::prepare(demand, world, &mut self.counts);
        if let Some(error) = filters.rejected() {
            if error.awaits() != Awaits::Quota {
                // The pod waits in its class: a node that would have it as it is now does not wake it.
                self.update(ask, snapshot, ClassOrigin::Decided);
            }
            return Err(error);
        }
        if let Some(decision) = filters.on_nominated(&rank) {
            return Ok(decision);
        }
        if let Some(decision) = self.decide_in_reservation(&filters, &rank) {
            return Ok(decision);
        }
        self.update(ask, snapshot, ClassOrigin::Decided);
        let class = self.by_ask.get_mut(ask).expect("it was just updated");
        // Many pods may wait for one quota: what is too little for the first is so for all.
        if let Some((too_little, generation, error)) = &class.too_little
            && filters.look_at_one_node()
            && (too_little.as_slice(), *generation) == (filters.quotas(), snapshot.generation())
        {
            return Err(error.clone().beside_quota(filters.standing()));
        }
        let preferences = filters.preferences(&mut self.counts, &self.weights);
        let is_independent = preferences.is_empty() && class.verdicts.relative == 0;
        if filters.is_open()
            && is_independent
            && let Some(state) = class.best(snapshot).filter(|state| rank(&state.info.name) == 0)
        {
            return Ok(filters.decision(state));
        }
        let tested = if filters.is_open() { 0 } else { class.verdicts.of_nodes.len() };
        self.counts.steps().add(TEST, tested);
        let mut refusals = Refusals::default();
        let alone = Preferences::default();
        let scale = Scale::of(&alone, &[]);
        let verdicts = class.verdicts.of_nodes.iter().zip(&class.verdicts.scores);
        let judged = snapshot.nodes.slots().iter().zip(verdicts);
        let fitting = judged.filter_map(|(state, (verdict, score))| {
            let (Some(state), NodeVerdict::Fits(fit)) = (state, verdict) else { return None };
            let tested = filters.test(state, (fit.raw, &fit.taken));
            let admitted = tested.map_err(|refusal| refusals.note(state, refusal)).ok()?;
            let feasible = Feasible { node: state, raw: admitted };
            let score =
                if admitted == fit.raw { *score } else { scale.scores(&feasible).total(&self.weights) };
            Some((state, feasible, score))
        });
        let best = if is_independent {
            best(fitting.map(|(state, _, score)| (state, score)), rank)
        } else {
            let fitting: Vec<_> = fitting.map(|(state, feasible, _)| (state, feasible)).collect();
            let feasible: Vec<_> = fitting.iter().map(|(_, feasible)| *feasible).collect();
            let scale = Scale::of(&preferences, &feasible);
            let scored = fitting.iter().map(|(state, one)| (*state, scale.scores(one).total(&self.weights)));
            best(scored, rank)
        };
        if let Some(state) = best {
            return Ok(filters.decision(state));
        }
        class.measure(ask, snapshot);
        let error = refusals.fit_error(&filters, class.failed(snapshot));
        if !refusals.has_quota() {
            return Err(error);
        }
        if filters.look_at_one_node() && !refusals.has_nominated() {
            class.too_little = Some((filters.quotas().to_vec(), snapshot.generation(), error.clone()));
        }
        Err(error.beside_quota(filters.standing()))
    }

    /// The best of the nodes on which a Reservation is for the pod and has enough left: other nodes are not looked at then.
    fn decide_in_reservation(
        &self,
        filters: &Filters<'_>,
        rank: impl Fn(&NodeName) -> usize,
    ) -> Option<Decision> {
        let alone = Preferences::default();
        let scale = Scale::of(&alone, &[]);
        let score = |node, raw| scale.scores(&Feasible { node, raw }).total(&self.weights);
        let fitting = filters.in_reservations();
        let first = first_of(fitting.iter().map(|(node, _, preference)| (*node, *preference)), &rank)?;
        let fitting =
            fitting.iter().filter(|(node, _, preference)| (rank(&node.info.name), *preference) == first);
        let best = best(fitting.map(|(node, raw, _)| (*node, score(node, *raw))), &rank)?;
        Some(filters.decision(best))
    }

    /// The cards that one node would give a pod whose claims are all bound, within what its namespace may still take.
    pub(in crate::scheduling) fn judge(
        &mut self,
        demand: &Demand,
        node: &NodeName,
        snapshot: &Snapshot,
    ) -> Option<Vec<Allocation>> {
        let decision = self.decide_on(demand, node, snapshot)?;
        decision.steps.is_empty().then_some(decision.allocations)
    }

    /// The decision for a pod whose node was found before, which is counted; `None`: the node would not have it any more.
    pub(in crate::scheduling) fn confirm(
        &mut self,
        demand: &Demand,
        node: &NodeName,
        snapshot: &Snapshot,
    ) -> Option<Decision> {
        self.counts.steps().add(JUDGE + demand.ask.cost(), 1);
        self.decide_on(demand, node, snapshot)
    }

    /// The decision for a pod on one node; `None`: it would not have it.
    pub(in crate::scheduling) fn decide_on(
        &mut self,
        demand: &Demand,
        node: &NodeName,
        snapshot: &Snapshot,
    ) -> Option<Decision> {
        let filters = Filters::prepare(demand, snapshot.world(), &mut self.counts);
        let fits = filters.rejected().is_none();
        filters.try_on(snapshot.node(node).filter(|_| fits)?).ok()
    }

    /// Judges for pods that may come: when one does, only nodes that have changed since are asked. Nothing else follows from it.
    pub fn warm(&mut self, ask: &Arc<Ask>, snapshot: &Snapshot) {
        self.update(ask, snapshot, ClassOrigin::Hinted);
    }

    /// Judges the nodes that have changed since the class was decided last.
    fn update(&mut self, ask: &Arc<Ask>, snapshot: &Snapshot, by: ClassOrigin) {
        self.make_known(ask, by);
        let class = self.by_ask.get_mut(ask).expect("it was just made known");
        let (slots, generations) = (snapshot.nodes.slots(), snapshot.nodes.generations());
        let alone = Preferences::default();
        let scoring = NodeScoring {
            around: snapshot.world().into(),
            scale: Scale::of(&alone, &[]),
            weights: self.weights,
        };
        let verdicts = &mut class.verdicts;
        verdicts.resize(slots.len());
        let is_revalued = verdicts.packing != scoring.around.packing.version();
        verdicts.packing = scoring.around.packing.version();
        let mut judged_anew = 0;
        for (slot, generation) in generations.iter().enumerate() {
            let is_known = verdicts.generations[slot] == *generation;
            match &slots[slot] {
                Some(state) if !is_known => {
                    judged_anew += 1;
                    verdicts.judge(slot, ask, state, &scoring);
                }
                Some(state) if is_revalued => verdicts.value(slot, state, &scoring),
                // The slot may be another node's next.
                None if !is_known => verdicts.forget(slot),
                Some(_) | None => {}
            }
        }
        self.counts.steps().add(LOOK, 2 * slots.len());
        self.counts.steps().add(ask.cost(), judged_anew);
        self.keep_verdicts(ask);
    }

    /// The verdicts of the class are as they should be: they are kept until as many others were decided as are kept.
    fn keep_verdicts(&mut self, ask: &Arc<Ask>) {
        let Some(class) = self.by_ask.get_mut(ask).filter(|class| class.known == ClassOrigin::Decided) else {
            return;
        };
        let place = self.judged.last_key_value().map_or(0, |(last, _)| last + 1);
        if let Some(before) = class.judged_place.replace(place) {
            self.judged.remove(&before);
        }
        self.judged.insert(place, ask.clone());
        if self.judged.len() > REMEMBERED
            && let Some((_, oldest)) = self.judged.pop_first()
        {
            self.drop_verdicts(&oldest);
        }
    }

    /// Forgets what the class makes of nodes; and the class, unless pods of it wait.
    fn drop_verdicts(&mut self, ask: &Arc<Ask>) {
        let Some(class) = self.by_ask.get_mut(ask) else { return };
        class.judged_place = None;
        (class.verdicts, class.closeness, class.too_little) = (Verdicts::default(), Vec::new(), None);
        self.forget_empty(ask);
    }

    /// Forgets a class without verdicts and without pods that wait.
    fn forget_empty(&mut self, ask: &Arc<Ask>) {
        let is_empty = |class: &&Class| {
            class.known == ClassOrigin::Decided && class.judged_place.is_none() && class.has_none_waiting()
        };
        if self.by_ask.get(ask).as_ref().is_some_and(is_empty) {
            self.by_ask.remove(ask);
        }
    }

    fn make_known(&mut self, ask: &Arc<Ask>, by: ClassOrigin) {
        match (self.by_ask.get_mut(ask), by) {
            (Some(class), ClassOrigin::Decided) if class.known == ClassOrigin::Hinted => {
                class.known = ClassOrigin::Decided;
                self.hinted.retain(|hinted| hinted != ask);
            }
            (Some(_), _) => return,
            (None, ClassOrigin::Decided) => {}
            (None, ClassOrigin::Hinted) => {
                if self.hinted.len() >= HINTED {
                    let oldest = self.hinted.pop_front();
                    oldest.and_then(|oldest| self.by_ask.remove(&oldest));
                }
                self.hinted.push_back(ask.clone());
            }
        }
        let new = || Class {
            known: by,
            verdicts: Verdicts::default(),
            closeness: Vec::new(),
            waiting: BTreeSet::new(),
            waiting_for_others: BTreeSet::new(),
            waiting_place: None,
            judged_place: None,
            too_little: None,
        };
        self.by_ask.entry(ask.clone()).or_insert_with(new);
    }
}

impl Class {
    fn has_none_waiting(&self) -> bool {
        self.waiting.is_empty() && self.waiting_for_others.is_empty()
    }

    /// Of the nodes with the highest score the first by name, where no node's score depends on those of others; `None`: none fits.
    fn best<'a>(&self, snapshot: &'a Snapshot) -> Option<&'a Arc<NodeState>> {
        let scores = &self.verdicts.scores;
        let highest = scores.iter().copied().fold(UNFIT, f64::max);
        let is_highest = |(_, score): &(&Option<Arc<NodeState>>, &f64)| {
            score.total_cmp(&highest).is_eq() && highest > UNFIT
        };
        let highest = snapshot.nodes.slots().iter().zip(scores).filter(is_highest);
        highest
            .filter_map(|(state, _)| state.as_ref())
            .min_by(|one, other| one.info.name.cmp(&other.info.name))
    }

    /// Finds out how close each node comes that fails and has changed since the last time.
    fn measure(&mut self, ask: &Ask, snapshot: &Snapshot) {
        self.closeness.resize(self.verdicts.of_nodes.len(), (0, None));
        let judged = snapshot.nodes.slots().iter().zip(&self.verdicts.of_nodes);
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

    /// The nodes that the plugins which look at one node rejected, each with why and how close it comes.
    fn failed<'a>(&'a self, snapshot: &'a Snapshot) -> impl Iterator<Item = Refused<'a>> + Clone {
        let judged = snapshot.nodes.slots().iter().zip(&self.verdicts.of_nodes).zip(&self.closeness);
        judged.filter_map(|((state, verdict), (_, closeness))| match verdict {
            NodeVerdict::Fails(reasons) => Some((state.as_ref()?, reasons, (*closeness)?)),
            NodeVerdict::Fits(_) => None,
        })
    }
}
