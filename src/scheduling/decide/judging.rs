//! Which nodes are judged for a decision: where only the best one is asked for, not all.

use std::ops::ControlFlow;

use super::shortlist::LISTED;

/// Asked before a node is looked at: whether to go on.
pub(super) type GoOn<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Which nodes are judged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Judging {
    /// Every node.
    All,
    /// The nodes with so many highest different scores at least, and those of which nothing is known that could put them off. Of those that are equal, a few.
    Best(usize),
}

/// Where so many of the best nodes are not enough, every node is judged.
const MOST: usize = 16 * LISTED;

impl Judging {
    /// Of so many equal nodes it is known that they fit, or of all: the first by name is the best, unless the pod can't go there for other reasons.
    pub(super) fn fitting(self) -> usize {
        match self {
            Self::Best(wanted) => (wanted / LISTED).max(1),
            Self::All => usize::MAX,
        }
    }

    /// More nodes than these.
    pub(super) fn wider(self) -> Self {
        match self {
            Self::Best(wanted) if wanted < MOST => Self::Best(4 * wanted),
            Self::Best(_) | Self::All => Self::All,
        }
    }
}
