//! Moves that were found, before they are proven.

use std::collections::BTreeSet;

use super::NodeCard;
use crate::scheduling::model::name::Uid;

/// A pod that is moved on trial.
#[derive(Clone, Debug)]
pub(super) struct StagedMove {
    pub(super) uid: Uid,
    /// Cards that are closed while it is decided, beside those that are to become free.
    pub(super) closed: BTreeSet<NodeCard>,
}

/// The cards that a group of moves frees.
#[derive(Clone, Debug)]
pub(super) struct MoveGroup {
    pub(super) cards: BTreeSet<NodeCard>,
    pub(super) moves: Vec<StagedMove>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) groups: Vec<MoveGroup>,
    pub(super) won: usize,
    pub(super) is_cut_short: bool,
}

impl MoveGroup {
    /// The pods that are moved.
    pub(super) fn pods(&self) -> impl Iterator<Item = Uid> + '_ {
        self.moves.iter().map(|staged| staged.uid.clone())
    }
}

impl Found {
    /// How many pods are moved.
    pub(super) fn moves(&self) -> usize {
        self.groups.iter().map(|group| group.moves.len()).sum()
    }
}
