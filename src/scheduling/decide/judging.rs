//! Which nodes are judged for a decision: where only the best one is asked for, not all.

use super::shortlist::LISTED;

/// Which nodes are judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Judging {
    /// Every node.
    All,
    /// The nodes with so many highest different scores at least, and those of which nothing is known that could put them off.
    Best(usize),
}

/// Where so many of the best nodes are not enough, every node is judged.
const MOST: usize = 16 * LISTED;

impl Judging {
    /// More nodes than these.
    pub(super) fn wider(self) -> Self {
        match self {
            Self::Best(wanted) if wanted < MOST => Self::Best(4 * wanted),
            Self::Best(_) | Self::All => Self::All,
        }
    }
}
