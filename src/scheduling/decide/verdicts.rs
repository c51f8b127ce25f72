//! What the plugins that look at one node make of every node for one ask. A class keeps it, so that only nodes that have changed are judged
//! again; a dry run begins without any. Nodes that are alike share a verdict, and where only the best node is asked for, nodes are put off that can't be it.

#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, hash_map::Entry},
    ops::ControlFlow,
    sync::Arc,
};

use foldhash::fast::FixedState;

use super::{
    deferred::{Deferred, EqualNodes},
    free_rooms::FreeRooms,
    judging::{GoOn, Judging},
    likenesses::{Likenesses, NodeKey},
    nearest::FailedNodes,
    relative::RelativeBySlot,
    shortlist::{CountedScores, LANES, UNFIT, highest, slots_with},
    verdict::{FailingNode, FittingNode, NodeVerdict, Surroundings},
};
use crate::scheduling::{
    model::pod::Ask,
    packing::{Packing, vacancy::Vacancy},
    plugin::{
        amounts::AmountsVerdict,
        filter::reads,
        score::{RelativeColumns, estimate::ScoreEstimates, weights::ScoreWeights},
    },
    world::{
        World,
        by_slot::changed,
        node_parts::{NodePart, PartId},
        node_state::NodeState,
    },
};

/// What is made of the nodes, by slot. What a decision looks at of every node lies close together.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// The node's generation when it was judged; 0: there was no node.
    generations: Vec<u64>,
    /// The weighted sum of the node's scores, as long as none depends on other nodes, by a rough guess of what it costs by its room; [`UNFIT`]: it does
    /// not fit.
    scores: Vec<f64>,
    /// The same by what the node costs exactly, of those that were on the shortlist when it was last made and have not changed since; [`UNFIT`] of others.
    /// Empty before it was made.
    listed: Vec<f64>,
    of_nodes: Vec<Arc<NodeVerdict>>,
    /// How many different ones these are.
    different: usize,
    /// Their scores that depend on those of other nodes.
    relative: RelativeBySlot,
    /// The scores of those that are scored by the room that would be left.
    by_room: CountedScores,
    /// For which version of the mix of pods nodes are scored.
    packing: u64,
    /// What the pod would leave, by the address of the room that it finds: nodes with equal rooms share it.
    vacancies: HashMap<usize, Arc<Vacancy>>,
    /// The nodes that were not judged.
    deferred: Deferred,
}

/// Nodes that fit and share a verdict.
#[derive(Debug)]
pub(super) struct AlikeNodes<'v> {
    /// The weighted sum of the scores of each, as long as none depends on other nodes, by a rough guess of what it costs by its room.
    pub(super) score: f64,
    /// What is made of each.
    pub(super) fit: &'v FittingNode,
    /// Their slots.
    pub(super) slots: Vec<usize>,
}

/// What is known of nodes whatever pods ask for, found out anew where they have changed.
#[derive(Debug, Default)]
pub(super) struct NodeIndex {
    /// Which are alike.
    pub(super) likenesses: Likenesses,
    /// What is free on each.
    pub(super) free_rooms: FreeRooms,
}

/// How many nodes had to be looked at anew.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct NodeChanges {
    /// How many have changed.
    pub(super) changed: usize,
    /// How many were described, to find out which are alike.
    pub(super) described: usize,
    /// Of how many it was found out how high they may score.
    pub(super) estimated: usize,
    /// How many were judged.
    pub(super) judged: usize,
}

/// Where so many nodes have changed or fewer, each is judged: to find out which of them are alike takes about as long.
pub(super) const FEW_NODES: usize = 16;

/// About how many bytes are kept for a slot, and for each verdict that nodes do not share, with the room that it would leave (counted by
/// `tests/allocations.rs`).
const OF_A_SLOT: usize = 32;
const OF_A_VERDICT: usize = 480;

/// The verdicts on nodes of which others are alike, by [`alike_by`].
type SharedVerdicts = HashMap<u128, SharedVerdict, FixedState>;

/// What tells nodes apart: the parts that are read of them and the number of what follows from their amounts, which are then not among those parts.
fn alike_by([labels, amounts, rest]: NodeKey, of_amounts: Option<u32>) -> u128 {
    let number = of_amounts.map_or(0, |number| number + 1);
    [labels.0, amounts.0, rest.0, number].into_iter().fold(0, |key, part| key << u32::BITS | u128::from(part))
}

/// A verdict on nodes that are alike.
struct SharedVerdict {
    verdict: Arc<NodeVerdict>,
    score: f64,
    /// Of how many nodes it was just found out.
    nodes: u32,
}

/// A verdict that takes the place of one with other scores.
struct Rescored {
    /// The one whose place it takes. It is kept so that no other has its address meanwhile.
    _before: Arc<NodeVerdict>,
    verdict: Arc<NodeVerdict>,
    score: f64,
    /// Of how many nodes.
    nodes: u32,
}

/// By what scores of nodes are made.
struct NodeScoring<'a> {
    around: Surroundings<'a>,
    weights: ScoreWeights,
}

impl NodeScoring<'_> {
    /// The score of a node as long as none depends on other nodes, by a rough guess of what it costs by its room.
    fn score(&self, verdict: &NodeVerdict) -> f64 {
        match verdict {
            NodeVerdict::Fits(fit) => fit.scores.raw.total(&self.weights),
            NodeVerdict::Fails(_) => UNFIT,
        }
    }
}

impl Verdicts {
    /// Judges every node.
    pub fn new(ask: &Ask, world: &World, weights: ScoreWeights) -> Self {
        let mut verdicts = Self::default();
        let _ = verdicts.update(ask, world, weights, || ControlFlow::Continue(()));
        verdicts
    }

    /// Judges the nodes that have changed since the last time. `go_on` is asked before each; when it says no, the rest stays as it was.
    pub fn update(
        &mut self,
        ask: &Ask,
        world: &World,
        weights: ScoreWeights,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let scoring = NodeScoring { around: world.into(), weights };
        for slot in self.outdated(world, &scoring) {
            let Some(state) = world.nodes.at(slot) else { continue };
            go_on()?;
            let verdict = self.judged(ask, state, &scoring);
            self.set(slot, state.generation, verdict, &scoring);
        }
        ControlFlow::Continue(())
    }

    /// As [`Self::update`]: of nodes that are alike one is judged, and of others those alone that are asked for.
    pub(super) fn update_alike(
        &mut self,
        ask: &Ask,
        world: &World,
        weights: ScoreWeights,
        index: &mut NodeIndex,
        judging: Judging,
    ) -> NodeChanges {
        let go_on = || ControlFlow::Continue(());
        self.update_alike_while(ask, (world, weights), index, judging, go_on).expect("it is never stopped")
    }

    /// As [`Self::update_alike`]. `go_on` is asked before each node that is described or judged; `None`: it has said no, and the rest stays as it was.
    pub(super) fn update_alike_while(
        &mut self,
        ask: &Ask,
        (world, weights): (&World, ScoreWeights),
        index: &mut NodeIndex,
        judging: Judging,
        mut go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<NodeChanges> {
        // The rest is compiled once, whoever asks.
        let go_on: GoOn<'_> = &mut go_on;
        let scoring = NodeScoring { around: world.into(), weights };
        let mut outdated = self.outdated(world, &scoring);
        let mut changes = NodeChanges { changed: outdated.len(), ..NodeChanges::default() };
        if judging == Judging::All {
            outdated.extend(self.unchanged(self.deferred.slots(), world));
        } else {
            let free_rooms = &mut index.free_rooms;
            self.defer(ask, (world, weights), free_rooms, (&mut outdated, &mut changes), go_on)?;
        }
        self.judge(ask, world, &outdated, (&scoring, &mut index.likenesses), &mut changes, go_on)?;
        let Judging::Best(wanted) = judging else { return Some(changes) };
        let (mut count, fitting) = (wanted + wanted / 2, judging.fitting());
        loop {
            self.deferred.refresh();
            let least = self.by_room.least_of(wanted).unwrap_or(UNFIT);
            let mut equal = Vec::new();
            let is_one_left = self.deferred.highest().is_some_and(|highest| highest >= least);
            if is_one_left {
                let first = self.deferred.first(count, least);
                let (of_room, others) = self.equal_nodes(&first, &index.free_rooms);
                let scene = (&scoring, &mut index.likenesses);
                self.judge(ask, world, &others, scene, &mut changes, go_on)?;
                equal = of_room;
                count *= 2;
            }
            equal.extend(self.deferred.take_to_judge(least, fitting));
            if equal.is_empty() && !is_one_left {
                self.deferred.put_back_released();
                return Some(changes);
            }
            let scene = (&scoring, &mut index.likenesses);
            self.judge_equal((ask, world), (equal, fitting), scene, &mut changes, go_on)?;
        }
    }

    /// Judges of equal nodes the first by name, until so many fit or none is left; the others stand behind the last of these. `None`: `go_on` has said no.
    fn judge_equal(
        &mut self,
        (ask, world): (&Ask, &World),
        (mut equal, fitting): (Vec<EqualNodes>, usize),
        (scoring, likenesses): (&NodeScoring<'_>, &mut Likenesses),
        changes: &mut NodeChanges,
        go_on: GoOn<'_>,
    ) -> Option<()> {
        while !equal.is_empty() {
            let mut taken: Vec<(EqualNodes, Vec<usize>)> = Vec::with_capacity(equal.len());
            for mut equal in std::mem::take(&mut equal) {
                let next = self.deferred.take_next(&mut equal, &world.nodes);
                taken.extend((!next.is_empty()).then_some((equal, next)));
            }
            let slots: Vec<_> = taken.iter().flat_map(|(_, next)| next).copied().collect();
            let judged = self.judge(ask, world, &slots, (scoring, &mut *likenesses), changes, go_on);
            for (mut of_room, next) in taken {
                if judged.is_none() {
                    self.deferred.put_back(&of_room, &next);
                    continue;
                }
                let fits = |slot: &&usize| self.scores[**slot].total_cmp(&of_room.most).is_eq();
                of_room.fitting += next.iter().filter(fits).count();
                match next.iter().rfind(fits) {
                    Some(front) if of_room.fitting >= fitting => self.deferred.stand_behind(*front, of_room),
                    _ => {
                        of_room.next *= 2;
                        equal.push(of_room);
                    }
                }
            }
            judged?;
        }
        Some(())
    }

    /// The nodes in these slots, which were put off: those together on which as much is free and which have one score if they fit; and the others.
    fn equal_nodes(&self, slots: &[usize], free_rooms: &FreeRooms) -> (Vec<EqualNodes>, Vec<usize>) {
        let (mut of_rooms, mut others) = (Vec::<EqualNodes>::new(), Vec::new());
        let mut places: HashMap<usize, usize, FixedState> = HashMap::default();
        for slot in slots.iter().copied() {
            let room = free_rooms.room_of(slot, self.generations[slot]);
            let Some((room, most)) = room.zip(self.deferred.exact(slot)) else {
                others.push(slot);
                continue;
            };
            let place = *places.entry(room).or_insert_with(|| {
                of_rooms.push(EqualNodes::new(most));
                of_rooms.len() - 1
            });
            if of_rooms[place].most.total_cmp(&most).is_eq() {
                of_rooms[place].push(slot);
            } else {
                others.push(slot);
            }
        }
        (of_rooms, others)
    }

    /// Puts off all of many nodes that have changed, and finds out anew how high those may score that were put off, where they were for another mix of pods;
    /// what has to be judged at once stays in `outdated`. `go_on` is asked before each node that is looked at; `None`: it has said no.
    fn defer(
        &mut self,
        ask: &Ask,
        (world, weights): (&World, ScoreWeights),
        free_rooms: &mut FreeRooms,
        (outdated, changes): (&mut Vec<usize>, &mut NodeChanges),
        go_on: GoOn<'_>,
    ) -> Option<()> {
        let version = world.packing().version();
        let is_known = self.deferred.is_known_by(version);
        if outdated.len() <= FEW_NODES && is_known {
            return Some(());
        }
        let Some(estimates) = ScoreEstimates::prepare(ask, world, weights) else {
            if !is_known {
                self.deferred.dissolve();
                outdated.extend(self.unchanged(self.deferred.slots(), world));
            }
            return Some(());
        };
        changes.described += free_rooms.refresh(world, go_on)?;
        let mut slots = if outdated.len() > FEW_NODES { std::mem::take(outdated) } else { Vec::new() };
        if !is_known {
            self.rescore_behind(world, free_rooms, &estimates);
            slots.extend(self.unchanged(self.deferred.slots_in_front(), world));
        }
        let unjudged = nothing();
        for (slot, most) in free_rooms.most(slots, &estimates) {
            self.put_off(slot, world.nodes.generations()[slot], most, &unjudged);
            changes.estimated += 1;
        }
        self.different += usize::from(Arc::strong_count(&unjudged) > 1);
        self.deferred.note_estimates(version, estimates.are_exact());
        Some(())
    }

    /// Finds out anew which score the nodes have that stand behind others, for another mix of pods.
    fn rescore_behind(&mut self, world: &World, free_rooms: &FreeRooms, estimates: &ScoreEstimates<'_>) {
        // Where a dry run was stopped, some are still to be looked at, by the mix before.
        self.deferred.put_back_released();
        let generations = world.nodes.generations();
        let fronts = self.deferred.fronts(|slot| self.generations[slot] == generations[slot]);
        let slots: Vec<_> = fronts.iter().filter_map(|(_, slot)| *slot).collect();
        let most: HashMap<_, _, FixedState> = free_rooms.most(slots, estimates).collect();
        for (front, slot) in fronts {
            // Where none is left behind it, it does not matter what they have.
            let most = slot.and_then(|slot| *most.get(&slot)?).unwrap_or(f64::INFINITY);
            let is_of_front = self.scores[front].total_cmp(&most).is_eq();
            self.deferred.rescore(front, most, is_of_front);
        }
    }

    /// Judges the nodes in these slots: of those that are alike one, where there are many. `go_on` is asked before each that is described or judged;
    /// `None`: it has said no.
    fn judge(
        &mut self,
        ask: &Ask,
        world: &World,
        slots: &[usize],
        (scoring, likenesses): (&NodeScoring<'_>, &mut Likenesses),
        changes: &mut NodeChanges,
        go_on: GoOn<'_>,
    ) -> Option<()> {
        let read = if slots.len() > FEW_NODES { reads(ask) } else { None };
        if read.is_some() {
            changes.described += likenesses.refresh(world, slots.iter().copied(), go_on)?;
        }
        let mut shared = SharedVerdicts::default();
        let judged = match &read {
            Some(read) => self.judge_alike(
                (ask, world),
                slots,
                (scoring, likenesses),
                read,
                (&mut shared, changes),
                go_on,
            ),
            None => self.judge_each((ask, world), slots, scoring, changes, go_on),
        };
        for SharedVerdict { verdict, score, nodes } in shared.into_values() {
            if is_by_room(&verdict) {
                self.by_room.add(score, nodes);
            }
        }
        judged
    }

    /// As [`Self::judge`], each by itself.
    fn judge_each(
        &mut self,
        (ask, world): (&Ask, &World),
        slots: &[usize],
        scoring: &NodeScoring<'_>,
        changes: &mut NodeChanges,
        go_on: GoOn<'_>,
    ) -> Option<()> {
        for state in slots.iter().filter_map(|slot| world.nodes.at(*slot)) {
            go_on().continue_value()?;
            changes.judged += 1;
            let verdict = self.judged(ask, state, scoring);
            self.set(state.slot, state.generation, verdict, scoring);
        }
        Some(())
    }

    /// As [`Self::judge`], where these parts are read of a node. How many nodes have which score by their rooms is noted in `shared` alone.
    fn judge_alike(
        &mut self,
        (ask, world): (&Ask, &World),
        slots: &[usize],
        (scoring, likenesses): (&NodeScoring<'_>, &Likenesses),
        read: &[NodePart],
        (shared, changes): (&mut SharedVerdicts, &mut NodeChanges),
        go_on: GoOn<'_>,
    ) -> Option<()> {
        let others: Vec<_> = read.iter().copied().filter(|part| *part != NodePart::Amounts).collect();
        let Surroundings { device_resources, packing } = scoring.around;
        let mut of_amounts: HashMap<[PartId; 2], Option<u32>, FixedState> = HashMap::default();
        let mut different_amounts: HashMap<AmountsVerdict, u32, FixedState> = HashMap::default();
        // The nodes lie anywhere in memory, so that of most nothing is read but their generations.
        let (nodes, generations) = (world.nodes.slots(), world.nodes.generations());
        for (slot, state) in slots.iter().filter_map(|slot| Some((*slot, nodes.get(*slot)?.as_ref()?))) {
            let mut is_asked = false;
            let mut go_on =
                || if std::mem::replace(&mut is_asked, true) { Some(()) } else { go_on().continue_value() };
            let amounts = match of_amounts.entry(likenesses.amounts(slot)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(place) => {
                    go_on()?;
                    let found = AmountsVerdict::of(ask, state, device_resources, packing).and_then(|found| {
                        let next = u32::try_from(different_amounts.len()).ok()?;
                        Some(*different_amounts.entry(found).or_insert(next))
                    });
                    *place.insert(found)
                }
            };
            let parts = likenesses.key(slot, if amounts.is_some() { &others } else { read });
            let shared = match shared.entry(alike_by(parts, amounts)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    go_on()?;
                    changes.judged += 1;
                    let verdict = self.judged(ask, state, scoring);
                    let score = scoring.score(&verdict);
                    place.insert(SharedVerdict { verdict, score, nodes: 0 })
                }
            };
            shared.nodes += 1;
            self.enter(slot, generations[slot], shared.verdict.clone(), shared.score);
        }
        Some(())
    }

    /// Those of these slots whose nodes have not changed since they were looked at.
    fn unchanged(&self, slots: impl Iterator<Item = usize>, world: &World) -> Vec<usize> {
        slots.filter(|slot| self.generations[*slot] == world.nodes.generations()[*slot]).collect()
    }

    /// Puts off the node in this slot, of this generation, which has at most this score; `None`: it does not fit. Where it was judged before, `unjudged`
    /// takes the place of its verdict.
    fn put_off(&mut self, slot: usize, generation: u64, most: Option<f64>, unjudged: &Arc<NodeVerdict>) {
        self.generations[slot] = generation;
        let is_nothing = |fails: &FailingNode| fails.reasons.is_empty();
        if !matches!(&*self.of_nodes[slot], NodeVerdict::Fails(fails) if is_nothing(fails)) {
            self.replace(slot, unjudged.clone(), UNFIT);
        }
        self.deferred.put_off(slot, self.of_nodes.len(), most);
    }

    /// The slots of which something else has to be found out than is known. What is known is made right in the others, and where there is no node any
    /// more.
    fn outdated(&mut self, world: &World, scoring: &NodeScoring<'_>) -> Vec<usize> {
        let (slots, generations) = (world.nodes.slots(), world.nodes.generations());
        self.resize(slots.len());
        let outdated = changed(&self.generations, generations);
        for &slot in &outdated {
            if slots[slot].is_none() {
                // The slot may be another node's next.
                self.forget(slot);
            }
        }
        if self.packing != scoring.around.packing.version() {
            self.packing = scoring.around.packing.version();
            self.value(scoring);
        }
        outdated
    }

    /// Forgets what was made of the node in this slot.
    pub fn forget(&mut self, slot: usize) {
        if let Some(generation) = self.generations.get_mut(slot) {
            *generation = 0;
            self.deferred.remove(slot);
            self.different += 1;
            self.replace(slot, nothing(), UNFIT);
        }
    }

    /// Of how many slots something is known.
    pub fn slots(&self) -> usize {
        self.of_nodes.len()
    }

    /// About how many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        let of_slots = OF_A_SLOT * self.slots() + self.relative.bytes() + self.deferred.bytes();
        of_slots + OF_A_VERDICT * self.different
    }

    /// Whether the node in this slot fits, as far as it is known.
    pub fn fits(&self, slot: usize) -> bool {
        self.scores.get(slot).is_some_and(|score| *score > UNFIT)
    }

    /// Whether every node was judged.
    pub(super) fn are_complete(&self) -> bool {
        self.deferred.is_empty()
    }

    /// Whether nodes stand behind this one that were not judged: they are as good, and their names come later.
    pub(super) fn is_in_front(&self, slot: usize) -> bool {
        self.deferred.is_in_front(slot)
    }

    /// The slots of the nodes of which that is so.
    pub(super) fn fronts(&self) -> impl Iterator<Item = usize> {
        self.deferred.in_front()
    }

    /// The highest score that a node may have that was not judged and stands behind none; `None`: none of them fits, or there is none.
    pub(super) fn highest_deferred(&self) -> Option<f64> {
        self.deferred.highest()
    }

    /// Whether no node's score depends on those of others.
    pub(super) fn are_independent(&self) -> bool {
        self.relative.is_empty()
    }

    /// Whether nodes are scored by the room that would be left.
    pub(super) fn are_by_room(&self) -> bool {
        !self.by_room.is_empty()
    }

    /// Every node with what is made of it, and its score where that depends on no other node.
    pub(super) fn of_nodes<'a>(
        &self,
        world: &'a World,
    ) -> impl Iterator<Item = (&'a Arc<NodeState>, &NodeVerdict, f64)> {
        let verdicts = self.of_nodes.iter().zip(&self.scores);
        let judged = world.nodes.slots().iter().zip(verdicts);
        judged.filter_map(|(state, (verdict, score))| Some((state.as_ref()?, &**verdict, *score)))
    }

    /// The slots of the nodes that fit, each with the sum of the scores that depend on no other node's.
    pub(super) fn fitting(&self) -> (Vec<usize>, Vec<f64>) {
        if !self.scores.contains(&UNFIT) {
            return ((0..self.slots()).collect(), self.scores.clone());
        }
        let (mut slots, mut scores) = (Vec::with_capacity(self.slots()), Vec::with_capacity(self.slots()));
        for (slot, score) in self.scores.iter().enumerate().filter(|(_, score)| **score > UNFIT) {
            slots.push(slot);
            scores.push(*score);
        }
        (slots, scores)
    }

    /// The scores of the nodes in these slots that are in percent of the highest. The slots are in order, each once.
    pub(super) fn relative(&self, slots: &[usize]) -> RelativeColumns<'_> {
        self.relative.of_slots(slots)
    }

    /// By slot, the scores where none depends on those of other nodes; [`UNFIT`]: the node does not fit, or there is none.
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores
    }

    /// The nodes that have one of so many highest different scores below this one, where nodes are scored by the room that would be left: from the highest
    /// score down, those together that share a verdict.
    pub(super) fn alike(&self, below: f64, scores: usize) -> Vec<AlikeNodes<'_>> {
        let Some(least) = self.by_room.least_below(below, scores) else { return Vec::new() };
        let mut alike: Vec<AlikeNodes<'_>> = Vec::new();
        let mut places: HashMap<*const NodeVerdict, usize, FixedState> = HashMap::default();
        for (at, scores) in self.scores.chunks(LANES).enumerate() {
            if !scores.iter().any(|score| *score >= least) {
                continue;
            }
            let scores = scores.iter().enumerate().filter(|(_, score)| (least..below).contains(*score));
            for (slot, score) in scores.map(|(lane, score)| (at * LANES + lane, *score)) {
                let place = match places.entry(Arc::as_ptr(&self.of_nodes[slot])) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(place) => {
                        let Some(fit) = self.fit(slot) else { continue };
                        alike.push(AlikeNodes { score, fit, slots: Vec::new() });
                        *place.insert(alike.len() - 1)
                    }
                };
                alike[place].slots.push(slot);
            }
        }
        alike.sort_by(|one, other| other.score.total_cmp(&one.score));
        alike
    }

    /// What is made of the node in this slot, where it fits.
    pub(super) fn fit(&self, slot: usize) -> Option<&FittingNode> {
        match &**self.of_nodes.get(slot)? {
            NodeVerdict::Fits(fit) => Some(fit),
            NodeVerdict::Fails(_) => None,
        }
    }

    /// Finds out exactly what the nodes on the shortlist cost by their rooms, where no node's score depends on those of others.
    pub(super) fn value_best(&mut self, packing: &Packing, weights: &ScoreWeights) {
        if !self.are_by_room() {
            return;
        }
        let least = self.by_room.least_listed();
        self.listed.resize(self.slots(), UNFIT);
        let chunks = self.scores.chunks(LANES).zip(self.listed.chunks_mut(LANES));
        for ((scores, listed), verdicts) in chunks.zip(self.of_nodes.chunks(LANES)) {
            if !scores.iter().any(|score| *score >= least) {
                listed.fill(UNFIT);
                continue;
            }
            for ((score, listed), verdict) in scores.iter().zip(listed).zip(verdicts) {
                if *score < least {
                    *listed = UNFIT;
                } else if *listed == UNFIT
                    && let NodeVerdict::Fits(fit) = &**verdict
                {
                    *listed = fit.scores.exact(packing).total(weights);
                }
            }
        }
    }

    /// Of the nodes with the highest score the first by name, where no node's score depends on those of others and [`Self::value_best`] has found out what
    /// those cost that may have it; `None`: none fits.
    pub(super) fn best<'a>(&self, world: &'a World) -> Option<&'a Arc<NodeState>> {
        let of_slots = if self.are_by_room() { &self.listed } else { &self.scores };
        let highest = highest(of_slots);
        if highest == UNFIT {
            return None;
        }
        world.nodes.first_by_name(slots_with(highest, of_slots))
    }

    /// The nodes that fail, those together that share a verdict.
    pub(super) fn failed<'a>(&'a self, ask: &'a Ask, world: &'a World) -> Vec<FailedNodes<'a>> {
        let mut failed: Vec<FailedNodes<'a>> = Vec::new();
        // `None`: a verdict on nodes that fit.
        let mut places: HashMap<*const NodeVerdict, Option<usize>, FixedState> = HashMap::default();
        let mut last: Option<(*const NodeVerdict, Option<usize>)> = None;
        for (slot, (state, verdict)) in world.nodes.slots().iter().zip(&self.of_nodes).enumerate() {
            let Some(state) = state else { continue };
            let shared = Arc::as_ptr(verdict);
            let place = match last {
                Some((last, place)) if last == shared => place,
                _ => match places.entry(shared) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(known) => {
                        let place = if let NodeVerdict::Fails(fails) = &**verdict {
                            let closeness = fails.closeness(ask, state);
                            failed.push(FailedNodes {
                                first: state,
                                count: 0,
                                reasons: &fails.reasons,
                                closeness,
                            });
                            Some(failed.len() - 1)
                        } else {
                            None
                        };
                        *known.insert(place)
                    }
                },
            };
            last = Some((shared, place));
            let Some(alike) = place.map(|place| &mut failed[place]) else { continue };
            alike.count += 1;
            if world.nodes.comes_before(slot, alike.first.slot) {
                alike.first = state;
            }
        }
        failed
    }

    /// Makes room for so many slots.
    fn resize(&mut self, slots: usize) {
        self.generations.resize(slots, 0);
        self.scores.resize(slots, UNFIT);
        if self.of_nodes.len() != slots {
            self.different += 1;
            self.of_nodes.resize(slots, nothing());
        }
    }

    /// The verdict on a node.
    fn judged(&mut self, ask: &Ask, node: &NodeState, scoring: &NodeScoring<'_>) -> Arc<NodeVerdict> {
        self.different += 1;
        let mut verdict = NodeVerdict::of(ask, node, scoring.around);
        if let NodeVerdict::Fits(fit) = &mut verdict {
            fit.scores.vacancy = fit.scores.vacancy.take().map(|vacancy| self.share(vacancy));
        }
        Arc::new(verdict)
    }

    /// Takes in the verdict on the node in this slot, of this generation.
    fn set(&mut self, slot: usize, generation: u64, verdict: Arc<NodeVerdict>, scoring: &NodeScoring<'_>) {
        let score = scoring.score(&verdict);
        if is_by_room(&verdict) {
            self.by_room.add(score, 1);
        }
        self.enter(slot, generation, verdict, score);
    }

    /// As [`Self::set`], where the score is counted elsewhere.
    fn enter(&mut self, slot: usize, generation: u64, verdict: Arc<NodeVerdict>, score: f64) {
        self.generations[slot] = generation;
        self.deferred.remove(slot);
        self.replace(slot, verdict, score);
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

    fn replace(&mut self, slot: usize, verdict: Arc<NodeVerdict>, score: f64) {
        self.deferred.release(slot);
        self.relative.set(slot, self.of_nodes.len(), &verdict);
        if is_by_room(&self.of_nodes[slot]) {
            self.by_room.remove(self.scores[slot]);
        }
        self.scores[slot] = score;
        if let Some(listed) = self.listed.get_mut(slot) {
            *listed = UNFIT;
        }
        let before = std::mem::replace(&mut self.of_nodes[slot], verdict);
        if Arc::strong_count(&before) == 1 {
            self.different = self.different.saturating_sub(1);
        }
    }

    /// Scores the nodes anew for another mix of pods.
    fn value(&mut self, scoring: &NodeScoring<'_>) {
        // Whoever shares a verdict shares the next one.
        let mut rescored: HashMap<*const NodeVerdict, Rescored, FixedState> = HashMap::default();
        for slot in 0..self.of_nodes.len() {
            if self.scores[slot] == UNFIT {
                continue;
            }
            let before = &self.of_nodes[slot];
            let one = match rescored.entry(Arc::as_ptr(before)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    let NodeVerdict::Fits(fit) = &**before else { continue };
                    if fit.scores.vacancy.is_none() {
                        continue;
                    }
                    let mut valued = fit.clone();
                    valued.scores.value(scoring.around.packing);
                    let verdict = Arc::new(NodeVerdict::Fits(valued));
                    let score = scoring.score(&verdict);
                    place.insert(Rescored { _before: before.clone(), verdict, score, nodes: 0 })
                }
            };
            one.nodes += 1;
            self.scores[slot] = one.score;
            self.of_nodes[slot] = one.verdict.clone();
        }
        self.listed.clear();
        self.by_room = CountedScores::default();
        for one in rescored.into_values() {
            self.by_room.add(one.score, one.nodes);
        }
    }
}

/// Whether the node is scored by the room that would be left.
fn is_by_room(verdict: &NodeVerdict) -> bool {
    matches!(verdict, NodeVerdict::Fits(fit) if fit.scores.vacancy.is_some())
}

/// What is made of a slot without a node.
fn nothing() -> Arc<NodeVerdict> {
    Arc::new(NodeVerdict::Fails(FailingNode::default()))
}
