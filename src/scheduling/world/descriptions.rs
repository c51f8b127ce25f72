//! Descriptions that were seen: equal ones have one number, and those that are of nothing any more are forgotten from time to time.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;

use super::node_parts::{Description, PartId};

/// The numbers of descriptions.
#[derive(Debug, Default)]
pub struct Descriptions {
    known: HashMap<Box<[u8]>, PartId, FixedState>,
    /// The number that was given last.
    last: u32,
    /// Descriptions of nothing are forgotten once there are so many in all.
    limit: usize,
    /// What is described at the moment.
    description: Description,
}

/// So many descriptions are kept whatever they are of.
pub const KEPT: usize = 1024;

impl Descriptions {
    /// The number of what is described so.
    pub fn number(&mut self, describe: impl FnOnce(&mut Description)) -> PartId {
        self.description.clear();
        describe(&mut self.description);
        self.of_description()
    }

    /// As [`Self::number`], of what can't always be described, with what describing it returns.
    pub fn number_where<T>(
        &mut self,
        describe: impl FnOnce(&mut Description) -> Option<T>,
    ) -> Option<(PartId, T)> {
        self.description.clear();
        let described = describe(&mut self.description)?;
        Some((self.of_description(), described))
    }

    fn of_description(&mut self) -> PartId {
        if let Some(known) = self.known.get(self.description.bytes()) {
            return *known;
        }
        self.last += 1;
        self.known.insert(self.description.bytes().into(), PartId(self.last));
        PartId(self.last)
    }

    /// Whether numbers may run out: everything has to be described anew with others.
    pub fn are_used_up(&self) -> bool {
        self.last > u32::MAX / 2
    }

    /// Forgets what has none of these numbers, where there are many descriptions more than when that was last done.
    pub fn forget_all_but<N: Iterator<Item = PartId>>(&mut self, used: impl FnOnce() -> N) {
        if self.known.len() <= self.limit.max(KEPT) {
            return;
        }
        let used: HashSet<PartId, FixedState> = used().collect();
        self.known.retain(|_, number| used.contains(number));
        self.limit = self.known.len() + self.known.len() / 4;
    }

    /// How many are known.
    pub fn count(&self) -> usize {
        self.known.len()
    }
}
