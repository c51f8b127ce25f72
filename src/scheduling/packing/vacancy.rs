//! What a pod would leave of a node, whichever of the node's cards it gets. It is the same for all nodes with equal rooms.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::{Packing, fleet::NodeSize, rooms::ValuedRoom};
use crate::scheduling::model::card_kind::KindId;

/// A node's room before the pod, and after.
#[derive(Debug)]
pub struct Vacancy {
    /// Before.
    pub before: Arc<ValuedRoom>,
    /// After, for each of the cards between which there is a choice.
    pub after: SmallVec<[Remainder; 1]>,
    /// How large the node is when it is empty; `None`: it has no cards.
    pub size: Option<NodeSize>,
    /// What the pod costs, in millionths of a card, with the version of what rooms are worth by which that was found.
    cost: Mutex<Option<(u64, i64)>>,
}

/// What is left of a node once the pod is there.
#[derive(Clone, Debug)]
pub struct Remainder {
    /// The room.
    pub room: Arc<ValuedRoom>,
    /// Of which kind cards are taken, and how much, in thousandths of one; `None`: none are.
    pub taken: Option<(KindId, u32)>,
    /// How much of the node others can't have, in thousandths of one of its cards: the largest part of cards, cpu and memory.
    pub denied: u32,
    /// What it costs whatever pods may come, in millionths of a card.
    pub fixed: i64,
}

impl Vacancy {
    /// A node's room before the pod, and after.
    pub fn new(before: Arc<ValuedRoom>, after: SmallVec<[Remainder; 1]>, size: Option<NodeSize>) -> Self {
        Self { before, after, size, cost: Mutex::default() }
    }

    /// Whether both find as much room and leave as much.
    pub fn is_alike(&self, other: &Self) -> bool {
        let same = |(one, other): (&Remainder, &Remainder)| {
            Arc::ptr_eq(&one.room, &other.room)
                && (one.taken, one.denied, one.fixed) == (other.taken, other.denied, other.fixed)
        };
        Arc::ptr_eq(&self.before, &other.before)
            && self.size == other.size
            && self.after.len() == other.after.len()
            && self.after.iter().zip(&other.after).all(same)
    }

    /// What each choice costs, in millionths of a card.
    pub fn costs<'a>(&'a self, packing: &'a Packing) -> impl Iterator<Item = i64> + 'a {
        let before = packing.worth(&self.before);
        let of_size = self.size.map_or(0, |size| packing.pressure().of_size(size));
        // Thousandths of a card, and millionths of what there is.
        let sought = |thousandths: u32, pressure: u64| {
            i64::try_from(u64::from(thousandths).saturating_mul(pressure) / 1000).unwrap_or(i64::MAX / 8)
        };
        self.after.iter().map(move |left| {
            let of_kind = left
                .taken
                .map_or(0, |(kind, thousandths)| sought(thousandths, packing.pressure().of_kind(kind)));
            before - packing.worth(&left.room) + left.fixed + of_kind + sought(left.denied, of_size)
        })
    }

    /// What the best choice costs, in millionths of a card.
    pub fn cost(&self, packing: &Packing) -> i64 {
        let mut known = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some((version, cost)) if version == packing.version() => cost,
            _ => {
                let cost = self.costs(packing).min().unwrap_or(0);
                *known = Some((packing.version(), cost));
                cost
            }
        }
    }
}
