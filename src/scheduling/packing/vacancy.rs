//! What a pod would leave of a node, whichever of the node's cards it gets. It is the same for all nodes with equal rooms.

use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;

use super::{
    Packing,
    fleet::NodeSize,
    rooms::{ValuedRoom, Worth},
};
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
    /// What the pod costs, as far as is known, with the version of what rooms are worth by which that was found.
    cost: Mutex<Option<(u64, Cost)>>,
}

/// What a pod costs on a node, as far as is known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cost {
    /// No less than this, in millionths of a card.
    pub least: i64,
    /// Whether it is exactly that.
    pub is_exact: bool,
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
        self.after
            .iter()
            .zip(self.without_rooms(packing))
            .map(|(left, cost)| cost - packing.worth(&left.room))
    }

    /// What each choice would cost if what it leaves were worth nothing.
    fn without_rooms<'a>(&'a self, packing: &'a Packing) -> impl Iterator<Item = i64> + 'a {
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
            before + left.fixed + of_kind + sought(left.denied, of_size)
        })
    }

    /// What the best choice costs, as far as is known.
    pub fn cost(&self, packing: &Packing) -> Cost {
        // Less than any cost: nothing has to be found out.
        self.cost_up_to(packing, i64::MIN)
    }

    /// What the best choice costs: found out until it is known exactly or to be more than this, in millionths of a card.
    pub fn cost_up_to(&self, packing: &Packing, most: i64) -> Cost {
        let mut known = self.cost.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((version, cost)) = *known
            && version == packing.version()
            && (cost.is_exact || cost.least > most)
        {
            return cost;
        }
        let cost = self.find(packing, most);
        *known = Some((packing.version(), cost));
        cost
    }

    fn find(&self, packing: &Packing, most: i64) -> Cost {
        let bare: SmallVec<[i64; 8]> = self.without_rooms(packing).collect();
        let mut worths: SmallVec<[Worth; 8]> =
            self.after.iter().map(|left| packing.known_worth(&left.room)).collect();
        loop {
            let costs = bare.iter().zip(&worths).map(|(bare, worth)| bare - worth.most);
            let Some((at, least)) = costs.enumerate().min_by_key(|(_, cost)| *cost) else {
                return Cost { least: 0, is_exact: true };
            };
            let is_exact = worths[at].is_exact;
            if is_exact || least > most {
                return Cost { least, is_exact };
            }
            worths[at] = packing.narrowed_worth(&self.after[at].room);
        }
    }
}
