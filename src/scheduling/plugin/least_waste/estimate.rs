//! The least that a pod can cost on a node, found in the node's numbers without judging it: only nodes that may win are judged.
//!
//! Where the pod takes a share of any card, it is what judging finds; elsewhere it may be less, since which cards the pod would be given is not known.

use std::iter;

use smallvec::SmallVec;

use super::{Leaves, after, denied, left, room_of, takes_any_card, whole};
use crate::{
    device::{ByClass, CoreBudget, Cores, Inventory, MiB, Mode, ProfileRequest},
    dra::ExtendedResources,
    scheduling::{
        model::{
            card_kind::{CardKind, KindId, narrow},
            pod::Ask,
            pod_shape::{CardShape, Portion, ShareShape},
        },
        packing::{
            Packing, cpu_and_memory,
            fleet::NodeSize,
            free_room::{AskedRoom, AskedShare, CostEstimate, FreeRoom, OpenCard},
            room::RoomCard,
            vacancy::Remainder,
        },
        world::node_state::NodeState,
    },
};

pub(super) fn free_room(node: &NodeState, packing: &Packing) -> FreeRoom {
    let info = &node.info;
    let several = |kind| packing.kinds().get(kind).profiles.len() > 1;
    let offered = info.devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
    let is_unsure = !info.devices.aliases.is_empty()
        || info.devices.cards.iter().any(|card| several(card.kind))
        || offered.flat_map(Inventory::cards).any(|card| card.cores == Cores::NONE);
    let amounts = (whole(&info.allocatable), left(node));
    let mut room = FreeRoom::new(room_of(node, packing), NodeSize::of(info), amounts, packing);
    (room.is_full, room.is_unsure) = (node.is_full(), is_unsure);
    room
}

/// What the pod asks of rooms; `None`: it asks for cards in a way of which nothing is known before a node is judged.
pub(super) fn asked_room(ask: &Ask, classes: &ExtendedResources, packing: &Packing) -> Option<AskedRoom> {
    let requested = cpu_and_memory(&ask.resources);
    let (shape, device) = match ask.devices.as_slice() {
        [] => {
            return Some(AskedRoom { requested, cards: 0, any: false, by_claim: false, shares: Vec::new() });
        }
        [device] if device.joint.is_none() => (CardShape::of(&ask.devices)?, device),
        _ => return None,
    };
    let has_class = |by: &ByClass| classes.class_or(&by.resource, &by.otherwise).is_some();
    let by_claim = device.by_class.as_ref().is_some_and(has_class);
    let any = takes_any_card(ask).is_some();
    if !any && device.request.has_several_shares() {
        return None;
    }
    let kinds = packing.kinds().all().iter();
    let shares = kinds.map(|kind| asked_share(&shape.share, kind, device)).collect();
    Some(AskedRoom { requested, cards: shape.count, any, by_claim, shares })
}

fn asked_share(share: &ShareShape, kind: &CardKind, device: &ProfileRequest) -> Option<AskedShare> {
    if !share.is_served_by(&kind.profiles, &kind.model, kind.mode) {
        return None;
    }
    // Slices bring their compute with them, and a card may have more to give than its plugin has registered, or no bound.
    let is_bound = match device.profile.core_budget {
        CoreBudget::Registered | CoreBudget::Units => true,
        CoreBudget::Fixed(budget) => (1..=kind.cores).contains(&budget.get()),
    };
    let by_compute = is_bound && kind.mode != Mode::Mig;
    let memory = narrow(share.memory.of(MiB::new(kind.memory.into())).get());
    Some(AskedShare { memory, portion: share.on(kind), by_compute })
}

pub(super) fn estimate(asked: &AskedRoom, node: &FreeRoom, packing: &Packing) -> CostEstimate {
    let lacks = |(asked, left): (&i64, &i64)| *asked > 0 && asked > left;
    if node.is_full || asked.requested.iter().zip(&node.left).any(lacks) {
        return CostEstimate::NoRoom;
    }
    let leaves = Leaves {
        cards: node.cards,
        free: node.free,
        left: after(node.room_left(), asked.requested),
        denied: denied(asked.requested, node.allocatable, node.cards),
    };
    if asked.cards == 0 {
        let cost = node.rough.of(&leaves.after(0, None), packing);
        return CostEstimate::Exactly(node.drawn(cost, leaves.left));
    }
    let may_serve_by_claim = || asked.by_claim && !node.kinds().any(|kind| asked.share(kind).is_some());
    if node.is_unsure || may_serve_by_claim() {
        return CostEstimate::Unknown;
    }
    let cards = CardsOfNode { asked, node, leaves, packing };
    if asked.any { cards.any() } else { cards.several() }
}

/// The cards of a node of which a pod takes some.
struct CardsOfNode<'a> {
    asked: &'a AskedRoom,
    node: &'a FreeRoom,
    leaves: Leaves,
    packing: &'a Packing,
}

/// What is known of a share of one card.
enum Serves {
    No,
    Unknown,
    /// And takes so much of it.
    Yes(Portion),
}

impl AskedShare {
    /// Whether the card serves it as a card of a room does, which is no less than what plugins demand.
    fn served_by(&self, card: &RoomCard) -> Serves {
        if card.slots == 0 || card.memory < self.memory {
            return Serves::No;
        }
        match self.portion {
            Some(portion) if card.takes(&portion) => Serves::Yes(portion),
            _ if self.by_compute => Serves::No,
            _ => Serves::Unknown,
        }
    }
}

impl CardsOfNode<'_> {
    /// How much less is free of the card, which is of this kind, once the pod has this of it, in thousandths.
    fn less(card: &OpenCard, kind: &CardKind, portion: &Portion) -> u32 {
        u32::from(card.free).saturating_sub(card.card.with(portion).free_of(kind))
    }

    /// The cost of the best choice between the cards, which is that of the node.
    fn any(&self) -> CostEstimate {
        let (mut least, mut may_serve) = (None, false);
        // The cards of a room are in the order of their kinds.
        for cards in self.node.open.chunk_by(|one, other| one.card.kind == other.card.kind) {
            let kind = cards[0].card.kind;
            let (Some(share), of_kind) = (self.asked.share(kind), self.packing.kinds().get(kind)) else {
                continue;
            };
            // Cards of one kind that become as much less free cost the same.
            let mut known: SmallVec<[u32; 8]> = SmallVec::new();
            for card in cards {
                match share.served_by(&card.card) {
                    Serves::Yes(portion) => {
                        let less = Self::less(card, of_kind, &portion);
                        if known.contains(&less) {
                            continue;
                        }
                        known.push(less);
                        let left = self.leaves.after(less, Some((kind, portion.worth)));
                        let cost = self.node.rough.of(&left, self.packing);
                        least = Some(least.map_or(cost, |least: i64| least.min(cost)));
                    }
                    Serves::Unknown => may_serve = true,
                    Serves::No => {}
                }
            }
        }
        match least {
            Some(cost) => CostEstimate::Exactly(self.node.drawn(cost, self.leaves.left)),
            None if may_serve => CostEstimate::Unknown,
            None => CostEstimate::NoRoom,
        }
    }

    /// What it would cost if each part of the cost were that of those cards by which it is least.
    fn several(&self) -> CostEstimate {
        let Self { asked, node, leaves, packing } = self;
        let mut each: SmallVec<[u32; 8]> = SmallVec::new();
        let mut least_sought: Option<(u64, KindId)> = None;
        for card in &node.open {
            let kind = card.card.kind;
            match asked.share(kind).map_or(Serves::No, |share| share.served_by(&card.card)) {
                Serves::Yes(portion) if packing.kinds().get(kind).mode != Mode::Mig => {
                    let less =
                        Self::less(card, packing.kinds().get(kind), &Portion { alone: false, ..portion });
                    each.extend(iter::repeat_n(less, card.alike.into()));
                    let sought = (packing.pressure().of_kind(kind), kind);
                    least_sought = Some(least_sought.map_or(sought, |least| least.min(sought)));
                }
                Serves::No => {}
                Serves::Yes(_) | Serves::Unknown => return CostEstimate::Unknown,
            }
        }
        let wanted = usize::try_from(asked.cards).unwrap_or(usize::MAX);
        let Some((_, kind)) = least_sought.filter(|_| each.len() >= wanted) else {
            return CostEstimate::NoRoom;
        };
        each.sort_unstable();
        let (least, most) = (each[..wanted].iter().sum(), each[each.len() - wanted..].iter().sum());
        let left = leaves.after(least, Some((kind, least)));
        let least_free = leaves.free.saturating_sub(most);
        let left = Remainder { fixed: leaves.fixed(least_free), ..left };
        CostEstimate::AtLeast(node.least_drawn(node.rough.of(&left, packing)))
    }
}
