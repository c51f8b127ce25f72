//! Pods with equal asks are decided alike: a class remembers its verdict on each node and asks again only where a node has changed.

#[cfg(test)]
mod tests;
mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
};

use super::{
    Decision, Filters,
    evaluation::{Evaluation, Unchosen},
    fit_error::{Awaits, FitError},
    judging::Judging,
    shortlist::LISTED,
    verdicts::{FEW_NODES, NodeChanges, NodeIndex, Verdicts},
};
use crate::device::{Allocation, Quota};
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        pod::{Ask, Demand},
        steps::{Allowance, ESTIMATE, FOLD, JUDGE, LOOK, TEST},
    },
    plugin::{pod_counts::PodCounts, score::weights::ScoreWeights},
    snapshot::Snapshot,
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

/// One class of pods.
#[derive(Debug)]
struct Class {
    known: ClassOrigin,
    verdicts: Verdicts,
    /// About how many bytes these took when they were brought up to date last.
    bytes: usize,
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
    memory: Memory,
    /// What is known of nodes to a class that is new.
    index: NodeIndex,
    /// How many pods of a selector stand on each node.
    counts: PodCounts,
    weights: ScoreWeights,
}

/// How much memory the verdicts of all classes take.
#[derive(Debug)]
struct Memory {
    /// About how many bytes they take.
    bytes: usize,
    /// How many they may take; those of the class that was decided last are kept in any case.
    most: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Self { bytes: 0, most: MOST_BYTES }
    }
}

/// Of 10,000 nodes of which no two have an equal room, this is room for 200 classes; where nodes are alike, for more than [`REMEMBERED`].
const MOST_BYTES: usize = 1 << 30;

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
        let mut filters = Filters::prepare(demand, world, &mut self.counts);
        if let Some(error) = filters.rejected() {
            if error.awaits() != Awaits::Quota {
                // The pod waits in its class: a node that would have it as it is now does not wake it.
                self.update(ask, snapshot, ClassOrigin::Decided, Judging::All);
            }
            return Err(error);
        }
        if let Some(node) = filters.on_nominated(&rank) {
            return Ok(filters.decision(node));
        }
        let mut judging = filters.judging();
        loop {
            self.update(ask, snapshot, ClassOrigin::Decided, judging);
            let class = self.by_ask.get_mut(ask).expect("it was just updated");
            // Many pods may wait for one quota: what is too little for the first is so for all.
            if let Some((too_little, generation, error)) = &class.too_little
                && filters.look_at_one_node()
                && (too_little.as_slice(), *generation) == (filters.quotas(), snapshot.generation())
                && !filters.may_be_reserved()
            {
                return Err(error.clone().beside_quota(filters.standing()));
            }
            let tested = if filters.is_open() { 0 } else { class.verdicts.slots() };
            self.counts.steps().add(TEST, tested);
            if filters.is_open() && class.verdicts.are_independent() {
                class.verdicts.value_best(world.packing(), &self.weights);
            }
            let evaluation = Evaluation::of(filters, &class.verdicts, &mut self.counts, self.weights);
            let refusals = match evaluation.choose(&rank) {
                Ok(node) => return Ok(evaluation.filters().decision(node)),
                Err(Unchosen::Refused(refusals)) => refusals,
                Err(unjudged) => {
                    (judging, filters) = (unjudged.judging_after(judging), evaluation.into_filters());
                    continue;
                }
            };
            let error = evaluation.fit_error_of_nodes(&refusals);
            if !refusals.has_quota() {
                return Err(error);
            }
            let filters = evaluation.filters();
            if filters.look_at_one_node() && !refusals.has_nominated() {
                class.too_little = Some((filters.quotas().to_vec(), snapshot.generation(), error.clone()));
            }
            return Err(error.beside_quota(filters.standing()));
        }
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
        self.update(ask, snapshot, ClassOrigin::Hinted, Judging::Best(LISTED));
    }

    /// Judges the nodes that are asked for, as far as they have changed since the class was decided last.
    fn update(&mut self, ask: &Arc<Ask>, snapshot: &Snapshot, by: ClassOrigin, judging: Judging) {
        self.make_known(ask, by);
        let class = self.by_ask.get_mut(ask).expect("it was just made known");
        let NodeChanges { changed, described, estimated, judged } =
            class.verdicts.update_alike(ask, snapshot.world(), self.weights, &mut self.index, judging);
        self.counts.steps().add(LOOK, 2 * class.verdicts.slots());
        self.counts.steps().add(JUDGE, described);
        self.counts.steps().add(ESTIMATE, estimated);
        // What else a new class takes counts as judging a few nodes.
        self.counts.steps().add(ask.cost(), judged.max(changed.min(FEW_NODES)));
        let bytes = class.verdicts.bytes();
        self.memory.bytes = self.memory.bytes + bytes - std::mem::replace(&mut class.bytes, bytes);
        self.keep_verdicts(ask);
        self.make_room();
    }

    /// Forgets what was found out longest ago, until as much is kept as may be; first what was only hinted at, which pushes out nothing else.
    fn make_room(&mut self) {
        while self.memory.bytes > self.memory.most
            && let Some(oldest) = self.hinted.pop_front()
        {
            self.forget_hinted(&oldest);
        }
        while (self.judged.len() > REMEMBERED || self.memory.bytes > self.memory.most)
            && self.judged.len() > 1
            && let Some((_, oldest)) = self.judged.pop_first()
        {
            self.drop_verdicts(&oldest);
        }
    }

    /// The verdicts of the class are as they should be: they are kept until there is no more room for them.
    fn keep_verdicts(&mut self, ask: &Arc<Ask>) {
        let Some(class) = self.by_ask.get_mut(ask).filter(|class| class.known == ClassOrigin::Decided) else {
            return;
        };
        let place = self.judged.last_key_value().map_or(0, |(last, _)| last + 1);
        if let Some(before) = class.judged_place.replace(place) {
            self.judged.remove(&before);
        }
        self.judged.insert(place, ask.clone());
    }

    fn forget_hinted(&mut self, ask: &Arc<Ask>) {
        if let Some(class) = self.by_ask.remove(ask) {
            self.memory.bytes -= class.bytes;
        }
    }

    /// Forgets what the class makes of nodes; and the class, unless pods of it wait.
    fn drop_verdicts(&mut self, ask: &Arc<Ask>) {
        let Some(class) = self.by_ask.get_mut(ask) else { return };
        class.judged_place = None;
        self.memory.bytes -= std::mem::take(&mut class.bytes);
        (class.verdicts, class.too_little) = (Verdicts::default(), None);
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
                if self.hinted.len() >= HINTED
                    && let Some(oldest) = self.hinted.pop_front()
                {
                    self.forget_hinted(&oldest);
                }
                self.hinted.push_back(ask.clone());
            }
        }
        let new = || Class {
            known: by,
            verdicts: Verdicts::default(),
            bytes: 0,
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
}
