//! The nodes that a class has not judged yet, since others suit its pods better: each with the highest score that it may have.
//!
//! Where as much is free on several nodes, those that fit score the same, and the first of them by name is the best. Once that one is judged, the others stand
//! behind it: they can't be better as long as it stays as it is.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use super::shortlist::{UNFIT, highest, least_of_highest};
use crate::scheduling::world::nodes::Nodes;

/// A node that does not fit, although it was not judged.
const NO_ROOM: f64 = f64::MIN;

/// Scores up to this one, which no node has, stand for nodes behind others: each [`EqualNodes`] have one of their own.
const BEHIND: f64 = f64::MIN / 2.0;

fn is_behind(most: f64) -> bool {
    most <= BEHIND && most > NO_ROOM
}

/// The nodes that were not judged yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Deferred {
    /// By slot, the highest score that the node may have, [`NO_ROOM`], or what stands for those that are behind the same one; [`UNFIT`]: it was judged. Empty
    /// where all were.
    most: Vec<f64>,
    /// The nodes that stand behind others, by the slot of that one.
    behind: HashMap<usize, EqualNodes, FixedState>,
    /// Those that stood behind a node that is not as it was.
    released: Vec<EqualNodes>,
    /// How many slots both have.
    listed: usize,
    /// How many equal nodes have stood behind one so far.
    marks: u64,
    /// How many there are.
    nodes: usize,
    /// The highest of these scores, as of the last time that it was looked for, or higher.
    highest: f64,
    /// Whether the node that had it may be judged by now.
    is_outdated: bool,
    /// By which version of what a pod may cost the scores were found.
    packing: u64,
    /// Whether nodes that fit have exactly these scores.
    are_exact: bool,
}

/// Nodes on which as much is free, of which the first by name is the best.
#[derive(Clone, Debug)]
pub(super) struct EqualNodes {
    /// The score of each that fits.
    pub(super) most: f64,
    /// Their slots. Some may be of nodes that were judged meanwhile, or of which something else is free by now.
    slots: Vec<u32>,
    /// Whether the slots are in order of name, the last name first.
    are_in_order: bool,
    /// What stands for each of them, once they stand behind another node; before, their score.
    mark: f64,
    /// How many were judged that fit.
    pub(super) fitting: usize,
    /// So many are judged next: twice as many each time that none fits.
    pub(super) next: usize,
}

impl EqualNodes {
    /// Nodes without any yet.
    pub(super) fn new(most: f64) -> Self {
        Self { most, slots: Vec::new(), are_in_order: false, mark: most, fitting: 0, next: 1 }
    }

    pub(super) fn push(&mut self, slot: usize) {
        self.slots.extend(u32::try_from(slot));
    }

    fn are_behind(&self) -> bool {
        is_behind(self.mark)
    }

    /// Whether this stands for one of them.
    fn is_one(&self, most: Option<&f64>) -> bool {
        most.is_some_and(|most| most.total_cmp(&self.mark).is_eq())
    }

    fn slots(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().map(|slot| *slot as usize)
    }
}

impl Deferred {
    /// Whether every node was judged.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes == 0
    }

    /// Whether the scores were found by this version of what a pod may cost.
    pub(super) fn is_known_by(&self, packing: u64) -> bool {
        self.is_empty() || self.packing == packing
    }

    /// By this version of what a pod may cost all scores were found, and nodes that fit have exactly these or may have less.
    pub(super) fn note_estimates(&mut self, packing: u64, are_exact: bool) {
        (self.packing, self.are_exact) = (packing, are_exact);
    }

    /// The highest score that this node may have, where nodes that fit have exactly these; `None`: they may have less, or that of this node is not known.
    pub(super) fn exact(&self, slot: usize) -> Option<f64> {
        self.most.get(slot).copied().filter(|most| self.are_exact && *most > BEHIND && most.is_finite())
    }

    /// Whether nodes stand behind this one.
    pub(super) fn is_in_front(&self, slot: usize) -> bool {
        self.behind.contains_key(&slot)
    }

    /// The slots of the nodes behind which others stand.
    pub(super) fn in_front(&self) -> impl Iterator<Item = usize> {
        self.behind.keys().copied()
    }

    /// The node in this slot is not what it was: those behind it have to be looked at.
    pub(super) fn release(&mut self, slot: usize) {
        if !self.behind.is_empty() {
            self.released.extend(self.behind.remove(&slot));
        }
    }

    /// The equal nodes of which one has to be judged anew, where they may have this score, and those of which fewer fit than so many that were judged.
    pub(super) fn take_to_judge(&mut self, least: f64, fitting: usize) -> Vec<EqualNodes> {
        let is_front = |_: &usize, equal: &mut EqualNodes| equal.fitting < fitting && equal.most >= least;
        let mut taken: Vec<_> = self.released.extract_if(.., |equal| equal.most >= least).collect();
        if fitting > 1 {
            taken.extend(self.behind.extract_if(is_front).map(|(_, equal)| equal));
        }
        self.listed -= taken.iter().map(|equal| equal.slots.len()).sum::<usize>();
        taken
    }

    /// The slots of those that are judged next, the first by name.
    pub(super) fn take_next(&self, equal: &mut EqualNodes, nodes: &Nodes) -> Vec<usize> {
        if equal.next == 1 && !equal.are_in_order && !equal.are_behind() {
            let first = nodes.first_slot(equal.slots());
            equal.slots.retain(|slot| Some(*slot as usize) != first);
            return first.into_iter().collect();
        }
        if !equal.are_in_order {
            nodes.sort_by_name(&mut equal.slots);
            equal.slots.reverse();
            equal.are_in_order = true;
        }
        let mut next = Vec::with_capacity(equal.next.min(equal.slots.len()));
        while next.len() < equal.next
            && let Some(slot) = equal.slots.pop()
        {
            let slot = slot as usize;
            next.extend(equal.is_one(self.most.get(slot)).then_some(slot));
        }
        next
    }

    /// These nodes stand behind the one in this slot, whose name comes before theirs.
    pub(super) fn stand_behind(&mut self, front: usize, mut equal: EqualNodes) {
        if equal.slots.is_empty() {
            return;
        }
        if !equal.are_behind() {
            self.marks += 1;
            // The lower the number, the higher its bits.
            equal.mark = f64::from_bits(BEHIND.to_bits() + self.marks);
            for slot in equal.slots() {
                self.most[slot] = equal.mark;
            }
            self.is_outdated |= equal.most >= self.highest;
        }
        equal.next = 1;
        self.listed += equal.slots.len();
        self.behind.insert(front, equal);
        // Nodes that have changed since stay listed.
        if self.listed > 2 * self.most.len() {
            self.dissolve();
        }
    }

    /// These nodes stand behind none any more.
    pub(super) fn put_back(&mut self, equal: &EqualNodes, taken: &[usize]) {
        if !equal.are_behind() {
            return;
        }
        for slot in equal.slots().chain(taken.iter().copied()) {
            if equal.is_one(self.most.get(slot)) {
                self.most[slot] = equal.most;
                self.highest = self.highest.max(equal.most);
            }
        }
    }

    /// No node stands behind one that is not as it was.
    pub(super) fn put_back_released(&mut self) {
        for equal in std::mem::take(&mut self.released) {
            self.listed -= equal.slots.len();
            self.put_back(&equal, &[]);
        }
    }

    /// No node stands behind another one.
    pub(super) fn dissolve(&mut self) {
        self.released.extend(std::mem::take(&mut self.behind).into_values());
        self.put_back_released();
    }

    /// The slot of each node in front of others, with that of one of those behind it that are unchanged.
    pub(super) fn fronts(&self, is_unchanged: impl Fn(usize) -> bool) -> Vec<(usize, Option<usize>)> {
        let one = |equal: &EqualNodes| {
            equal.slots().find(|slot| equal.is_one(self.most.get(*slot)) && is_unchanged(*slot))
        };
        self.behind.iter().map(|(front, equal)| (*front, one(equal))).collect()
    }

    /// The nodes behind this one have this score from now on, if they fit; it does not have it itself: then they stand behind none any more.
    pub(super) fn rescore(&mut self, front: usize, most: f64, is_of_front: bool) {
        let Some(equal) = self.behind.get_mut(&front) else { return };
        equal.most = most;
        if !is_of_front {
            self.release(front);
        }
    }

    /// The highest score that a node may have that was not judged and stands behind none, or a higher one where [`Self::refresh`] was not asked since; `None`:
    /// none of them fits.
    pub(super) fn highest(&self) -> Option<f64> {
        (self.nodes > 0 && self.highest > BEHIND).then_some(self.highest)
    }

    /// Looks for the highest score anew if that node may be judged by now.
    pub(super) fn refresh(&mut self) {
        if std::mem::take(&mut self.is_outdated) {
            self.highest = highest(&self.most);
        }
    }

    /// The slots of all.
    pub(super) fn slots(&self) -> impl Iterator<Item = usize> {
        self.most.iter().enumerate().filter(|(_, most)| **most > UNFIT).map(|(slot, _)| slot)
    }

    /// The slots of those that stand behind none.
    pub(super) fn slots_in_front(&self) -> impl Iterator<Item = usize> {
        self.slots().filter(|slot| !is_behind(self.most[*slot]))
    }

    /// Puts off the node in this slot, of so many; `None`: it does not fit.
    pub(super) fn put_off(&mut self, slot: usize, slots: usize, most: Option<f64>) {
        self.most.resize(slots, UNFIT);
        let most = most.unwrap_or(NO_ROOM);
        let before = std::mem::replace(&mut self.most[slot], most);
        self.is_outdated |= before > UNFIT && before >= self.highest;
        self.highest = if self.nodes == 0 { most } else { self.highest.max(most) };
        self.nodes += usize::from(before == UNFIT);
    }

    /// The node in this slot is judged, or gone.
    pub(super) fn remove(&mut self, slot: usize) {
        let Some(most) = self.most.get_mut(slot).filter(|most| **most > UNFIT) else { return };
        self.is_outdated |= *most >= self.highest;
        *most = UNFIT;
        self.nodes -= 1;
        if self.nodes == 0 {
            *self = Self::default();
        }
    }

    /// The slots of those that may have so many highest different scores; none that may have none of `least`.
    pub(super) fn first(&self, count: usize, least: f64) -> Vec<usize> {
        let may_fit = self.most.iter().copied().filter(|most| *most > BEHIND);
        let least = least.max(least_of_highest(count, may_fit));
        let is_first = |most: &f64| *most >= least;
        let mut first = Vec::with_capacity(self.most.iter().filter(|most| is_first(most)).count());
        first.extend(self.most.iter().enumerate().filter(|(_, most)| is_first(most)).map(|(slot, _)| slot));
        first
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.most.as_slice()) + size_of::<u32>() * self.listed
    }
}
