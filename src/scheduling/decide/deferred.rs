//! The nodes that a class has not judged yet, since others suit its pods better: each with the highest score that it may have.

use super::shortlist::{UNFIT, highest, least_of_highest};

/// A node that does not fit, although it was not judged.
const NO_ROOM: f64 = f64::MIN;

/// The nodes that were not judged yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Deferred {
    /// By slot, the highest score that the node may have; [`UNFIT`]: it was judged. Empty where all were.
    most: Vec<f64>,
    /// How many there are.
    nodes: usize,
    /// The highest of these scores, as of the last time that it was looked for, or higher.
    highest: f64,
    /// Whether the node that had it may be judged by now.
    is_outdated: bool,
    /// By which version of what a pod may cost the scores were found.
    packing: u64,
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

    /// By this version of what a pod may cost all scores were found.
    pub(super) fn note_version(&mut self, packing: u64) {
        self.packing = packing;
    }

    /// The highest score that a node may have that was not judged, or a higher one where [`Self::refresh`] was not asked since; `None`: none of them fits.
    pub(super) fn highest(&self) -> Option<f64> {
        (self.nodes > 0 && self.highest > NO_ROOM).then_some(self.highest)
    }

    /// Looks for the highest score anew if that node may be judged by now.
    pub(super) fn refresh(&mut self) {
        if std::mem::take(&mut self.is_outdated) {
            self.highest = highest(&self.most);
        }
    }

    /// The slots of all.
    pub(super) fn slots(&self) -> Vec<usize> {
        let deferred = self.most.iter().enumerate().filter(|(_, most)| **most > UNFIT);
        deferred.map(|(slot, _)| slot).collect()
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
        let may_fit = self.most.iter().copied().filter(|most| *most > NO_ROOM);
        let least = least.max(least_of_highest(count, may_fit));
        let is_first = |most: &f64| *most >= least;
        let mut first = Vec::with_capacity(self.most.iter().filter(|most| is_first(most)).count());
        first.extend(self.most.iter().enumerate().filter(|(_, most)| is_first(most)).map(|(slot, _)| slot));
        first
    }

    /// How many bytes they take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.most.as_slice())
    }
}
