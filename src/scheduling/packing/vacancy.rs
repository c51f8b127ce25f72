//! What a pod would leave of a node, whichever of the node's cards it gets.

use std::sync::Arc;

use smallvec::SmallVec;

use super::rooms::ValuedRoom;
use crate::{device::CardId, scheduling::model::card_kind::KindId};

/// A node's room before the pod, and after.
#[derive(Clone, Debug)]
pub struct Vacancy {
    /// Before.
    pub before: Arc<ValuedRoom>,
    /// After, for each of the cards between which there is a choice.
    pub after: SmallVec<[Left; 2]>,
}

/// What is left of a node once the pod is there.
#[derive(Clone, Debug)]
pub struct Left {
    /// The room.
    pub room: Arc<ValuedRoom>,
    /// The card that is chosen; `None`: there is no choice.
    pub card: Option<CardId>,
    /// Of which kind cards are taken, and how much, in thousandths of one; `None`: none are.
    pub taken: Option<(KindId, u32)>,
    /// What it costs whatever pods may come, in millionths of a card.
    pub fixed: i64,
}
