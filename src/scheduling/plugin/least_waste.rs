//! Where a pod leaves least of no use for the pods that may come: which node, and which of its cards.
//!
//! What a node's room is worth, [`packing`](crate::scheduling::packing) says. A pod costs what the room is worth less with the pod there; something for
//! what stays free of the node's cards, so that nodes fill one after the other; and something for cards that other pods ask for by their model, and
//! for nodes that other pods need because they fit on no smaller one.

mod estimate;

use std::{convert::Infallible, sync::Arc};

use smallvec::{SmallVec, smallvec};

use super::contract::{Placement, RoomAmounts, RoomScore, SchedulingPlugin};
use crate::{
    device::{Allocation, CardId, CardPreference, IdFilter, InitPhase, Tie, Usage},
    dra::ExtendedResources,
    scheduling::{
        model::{
            card_kind::KindId,
            pod::Ask,
            pod_shape::{CardShape, Portion},
            resources::ResourceAmounts,
        },
        packing::{
            Packing, cpu_and_memory,
            fleet::NodeSize,
            free_room::{AskedRoom, CostEstimate, FreeRoom},
            room::{self, Room, RoomCard},
            vacancy::{Remainder, TakenCards, Vacancy},
        },
        world::{node_parts::NodePart, node_state::NodeState},
    },
};

/// What a node costs of which all cards stay free, in millionths of a card.
const FREE: i64 = 300_000;

/// What much free cpu and many free cards cost, in millionths of a card: it decides between equals alone.
const TIE: i64 = 100;

/// So much cpu, in thousandths, and so much of cards count as much.
const MUCH: [i64; 2] = [128_000, 8_000];

/// What each card costs that a claim serves, in millionths of a card: which of the node's cards it is, is not known yet.
const BY_CLAIM: i64 = 1_000_000;

/// Millionths of a card that cost one point.
const POINT: f64 = 10_000.0;

/// Prefers nodes where the pod leaves least of no use for the pods that may come. It scores pods alone whose policy is `least-waste`.
#[derive(Debug)]
pub struct LeastWaste;

impl SchedulingPlugin for LeastWaste {
    const NAME: &'static str = "LeastWaste";
    const WEIGHT: Option<u32> = Some(1);

    type Reason = Infallible;

    fn reads(ask: &Ask) -> Option<&'static [NodePart]> {
        if ask.wastes_least() { Some(&[NodePart::Amounts, NodePart::Rest]) } else { Some(&[]) }
    }
}

impl RoomScore for LeastWaste {
    fn vacancy(placement: &Placement<'_>) -> Option<Arc<Vacancy>> {
        placement.ask.wastes_least().then(|| Arc::new(vacancy(placement)))
    }

    fn amounts(ask: &Ask, node: &NodeState) -> RoomAmounts {
        let [left_cpu, left_memory] = left(node);
        let before = room::cpu_and_memory(left_cpu, left_memory);
        let (after, denied) = (after(before, cpu_and_memory(&ask.resources)), denied_on(ask, node));
        let size = NodeSize::of(&node.info).map_or([0, 0], |size| [size.cpu, size.memory]);
        [before[0], before[1], after[0], after[1], denied, size[0], size[1]]
    }

    fn free_room(node: &NodeState, packing: &Packing) -> FreeRoom {
        estimate::free_room(node, packing)
    }

    fn asked_room(ask: &Ask, classes: &ExtendedResources, packing: &Packing) -> Option<AskedRoom> {
        if ask.wastes_least() { estimate::asked_room(ask, classes, packing) } else { None }
    }

    fn estimate(asked: &AskedRoom, free: &FreeRoom, packing: &Packing) -> CostEstimate {
        estimate::estimate(asked, free, packing)
    }

    fn points(cost: f64) -> f64 {
        cost / POINT
    }
}

/// The card that a pod is given first on this node; `None`: none is better than another.
pub(in crate::scheduling) fn first_card(ask: &Ask, node: &NodeState, packing: &Packing) -> Option<CardId> {
    let room = VacantNode::new(ask, node, packing);
    let (cards, after) = room.each_choice()?;
    let vacancy = room.vacancy(cards, after);
    let choices = vacancy.cards.choices(&vacancy.before.room).map(|([before, _], _)| before);
    let choices: SmallVec<[RoomCard; 8]> = choices.collect();
    let costs = vacancy.costs(packing);
    let least = costs.iter().map(|(_, cost)| *cost).min()?;
    let best = |state: &RoomCard| costs.iter().any(|(at, cost)| (&choices[*at], *cost) == (state, least));
    let cards = node.info.devices.cards.iter();
    let cards =
        cards.map(|card| (RoomCard::new(card.kind, packing.kinds(), node.usage.card(&card.id)), &card.id));
    let mut best = cards.filter(|(state, _)| best(state));
    let (state, first) = best.next()?;
    let card = match ask.devices.first()?.profile.tie {
        Tie::Highest => best.rfind(|(other, _)| *other == state).map_or(first, |(_, last)| last),
        Tie::Lowest => first,
    };
    Some(card.clone())
}

fn vacancy(placement: &Placement<'_>) -> Vacancy {
    let room = VacantNode::new(placement.ask, placement.node, placement.packing);
    let (cards, after) = room.each_choice().unwrap_or_else(|| room.all_cards(placement.allocations));
    room.vacancy(cards, after)
}

/// The room of the node as it stands.
fn room_of(node: &NodeState, packing: &Packing) -> Room {
    packing.room(&node.info, cpu_and_memory(&node.requested), |card| node.usage.card(card))
}

/// cpu in thousandths and memory in bytes of the node that no pod has requested.
fn left(node: &NodeState) -> [i64; 2] {
    let (all, requested) = (cpu_and_memory(&node.info.allocatable), cpu_and_memory(&node.requested));
    [all[0].saturating_sub(requested[0]), all[1].saturating_sub(requested[1])]
}

/// The cpu and memory that a room with so much has left once a pod has so much of it. It follows from the room, and not from what the node has beyond whole
/// steps: what a pod leaves of nodes with equal rooms is equal.
fn after([cpu, memory]: [u32; 2], taken: [i64; 2]) -> [u32; 2] {
    let (cpu, memory) = (i64::from(cpu), i64::from(memory) << 20);
    room::cpu_and_memory(cpu.saturating_sub(taken[0]), memory.saturating_sub(taken[1]))
}

/// What a pod leaves of a node, whichever cards it takes.
struct Leaves {
    /// How many cards the node has.
    cards: usize,
    /// How much is free of them before the pod, in thousandths of one.
    free: u32,
    /// cpu and memory after the pod, as rooms have it.
    left: [u32; 2],
    /// How much others can't have, as [`denied`] says.
    denied: u32,
}

impl Leaves {
    /// What is left where the pod takes so much of the node's cards, in thousandths of one, of this kind.
    fn after(&self, thousandths: u32, taken: Option<(KindId, u32)>) -> Remainder {
        let free = self.free.saturating_sub(thousandths);
        let denied = self.denied.max(taken.map_or(0, |(_, thousandths)| thousandths));
        Remainder { free, taken, denied, fixed: self.fixed(free) }
    }

    /// What it costs that so much stays free of the cards, whatever pods may come, in millionths of a card.
    fn fixed(&self, free: u32) -> i64 {
        let all = i64::try_from(self.cards).unwrap_or(i64::MAX) * 1000;
        let free_part = if all == 0 { 0 } else { FREE * i64::from(free) / all };
        free_part + TIE * i64::from(self.left[0]) / MUCH[0] + TIE * i64::from(free) / MUCH[1]
    }
}

/// A node on which a pod finds room.
struct VacantNode<'a> {
    ask: &'a Ask,
    node: &'a NodeState,
    packing: &'a Packing,
    /// Before the pod.
    room: Room,
    leaves: Leaves,
}

impl<'a> VacantNode<'a> {
    fn new(ask: &'a Ask, node: &'a NodeState, packing: &'a Packing) -> Self {
        let room = room_of(node, packing);
        let leaves = Leaves {
            cards: room.cards.len(),
            free: room.free(packing.kinds()),
            left: after([room.cpu, room.memory], cpu_and_memory(&ask.resources)),
            denied: denied_on(ask, node),
        };
        Self { ask, node, packing, room, leaves }
    }

    /// The cards between which there is a choice, and what each leaves; `None`: there is no choice.
    fn each_choice(&self) -> Option<(TakenCards, SmallVec<[Remainder; 1]>)> {
        let cards = self.any_card()?;
        let choices = cards.choices(&self.room);
        let after: SmallVec<[Remainder; 1]> =
            choices.map(|(taken, worth)| self.after(&[taken], Some((taken[0].kind, worth)))).collect();
        (!after.is_empty()).then_some((cards, after))
    }

    /// What the pod takes of each kind of card, where it asks for a share of one and no card is chosen by anything else.
    fn any_card(&self) -> Option<TakenCards> {
        let shape = takes_any_card(self.ask)?;
        let mut portions: SmallVec<[(KindId, Portion); 1]> = SmallVec::new();
        for alike in self.room.cards.chunk_by(|one, other| one.kind == other.kind) {
            let kind = alike.first()?.kind;
            portions.extend(shape.share.on(self.packing.kinds().get(kind)).map(|portion| (kind, portion)));
        }
        Some(TakenCards::Any(portions))
    }

    /// The cards that the pod would get, and what they leave.
    fn all_cards(&self, allocations: &[Allocation]) -> (TakenCards, SmallVec<[Remainder; 1]>) {
        let Self { ask, node, packing, .. } = *self;
        let own = Usage::of(allocations.iter().map(|one| (&*one.assignment, InitPhase::Ahead)));
        let mut cards: SmallVec<[[RoomCard; 2]; 1]> = SmallVec::new();
        let mut taken: Option<(KindId, u32)> = None;
        for card in node.info.devices.cards.iter().filter(|card| own.card(&card.id).slots > 0) {
            let used = node.usage.card(&card.id);
            let both = [used, used.and(own.card(&card.id))];
            let both = both.map(|used| RoomCard::new(card.kind, packing.kinds(), used));
            let [before, after] = both.map(|card| card.free(packing.kinds()));
            let (kind, sum) = taken.unwrap_or((card.kind, 0));
            taken = Some((kind, sum.saturating_add(before.saturating_sub(after))));
            cards.push(both);
        }
        let mut left = self.after(&cards, taken);
        if ask.devices.iter().any(|device| node.serves_by_claim(device)) {
            let cards = CardShape::of(&ask.devices).map_or(0, |shape| i64::from(shape.count));
            left.fixed = left.fixed.saturating_add(cards.saturating_mul(BY_CLAIM));
        }
        (TakenCards::These(cards.into_vec().into()), smallvec![left])
    }

    /// What is left where the pod takes something of these cards, each before and after: so much of this kind, in thousandths of a card.
    fn after(&self, cards: &[[RoomCard; 2]], taken: Option<(KindId, u32)>) -> Remainder {
        let kinds = self.packing.kinds();
        let less = |[before, after]: &[RoomCard; 2]| before.free(kinds).saturating_sub(after.free(kinds));
        self.leaves.after(cards.iter().map(less).sum(), taken)
    }

    fn vacancy(self, cards: TakenCards, after: SmallVec<[Remainder; 1]>) -> Vacancy {
        let Self { node, packing, room, leaves: Leaves { free, left, .. }, .. } = self;
        Vacancy::new((packing.valued(room), free, NodeSize::of(&node.info)), left, cards, after)
    }
}

/// What the pod asks of a card, where it asks for a share of one and no card is chosen by anything else.
fn takes_any_card(ask: &Ask) -> Option<CardShape> {
    let [device] = ask.devices.as_slice() else { return None };
    let choice = &device.request.choice;
    let free = choice.order.first() == Some(&CardPreference::LeastWaste)
        && device.request.selection.ids == IdFilter::default()
        && device.request.shuns.is_empty();
    CardShape::of(&ask.devices).filter(|shape| free && shape.count == 1)
}

fn denied_on(ask: &Ask, node: &NodeState) -> u32 {
    denied(cpu_and_memory(&ask.resources), whole(&node.info.allocatable), node.info.devices.cards.len())
}

/// The cpu and memory of a node without pods, as rooms have it.
fn whole(allocatable: &ResourceAmounts) -> [u32; 2] {
    let [cpu, memory] = cpu_and_memory(allocatable);
    room::cpu_and_memory(cpu, memory)
}

/// The part of this cpu or memory that a pod takes, whichever is larger, in thousandths of one of so many cards.
fn denied(taken: [i64; 2], [cpu, memory]: [u32; 2], cards: usize) -> u32 {
    let all = [i64::from(cpu), i64::from(memory) << 20];
    let thousandths = i64::try_from(cards).unwrap_or(i64::MAX).saturating_mul(1000);
    let part = |(taken, all): (i64, i64)| {
        let (taken, all) = (taken.max(0), all.max(1));
        // Numbers of 64 bits are divided in a tenth of the time.
        taken.checked_mul(thousandths).map_or_else(
            || i128::from(taken) * i128::from(thousandths) / i128::from(all),
            |product| (product / all).into(),
        )
    };
    let parts = taken.into_iter().zip(all).map(part);
    parts.max().and_then(|part| u32::try_from(part).ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::{
        device::{CardPolicy, NodePolicy, PodRequest, ProfileRequest},
        object::Quantity,
        scheduling::{
            NodeInfo, ResourceAmounts, Snapshot,
            decide::{Decision, class::Classes},
            fixtures,
            plugin::score::weights::ScoreWeights,
            world::quota::{Bound, QuotaInfo, QuotaKey},
        },
    };

    fn amounts(cpu: u32) -> ResourceAmounts {
        let quantities = [("cpu".to_owned(), Quantity::from(cpu.to_string().as_str()))];
        ResourceAmounts::read(quantities.iter().map(|(name, one)| (name, one))).unwrap()
    }

    /// A node with so many whole cpus and cards of 8,000 MiB.
    fn node(name: &str, cpu: u32, cards: u32) -> NodeInfo {
        NodeInfo { allocatable: amounts(cpu), ..fixtures::node(name, cards, 8_000) }
    }

    /// What a pod asks for that wants so many cpus and so much memory of one card; none: no card.
    fn ask(cpu: u32, memory: u64) -> Ask {
        let mut ask = fixtures::ask(1, memory.max(1), 0);
        let of_cards = |device: ProfileRequest| ProfileRequest {
            request: PodRequest {
                node_policy: NodePolicy::LeastWaste,
                choice: CardPolicy::LeastWaste.into(),
                ..device.request
            },
            ..device
        };
        ask.devices = ask.devices.into_iter().filter(|_| memory > 0).map(of_cards).collect();
        Ask { resources: Arc::new(amounts(cpu)), policy: NodePolicy::LeastWaste, ..ask }
    }

    fn decide(snapshot: &Snapshot, ask: Ask) -> Decision {
        let demand = fixtures::demand("pod", ask);
        let decided = Classes::default().decide(&demand, snapshot, |_| 0).unwrap();
        let outlook = crate::scheduling::Outlook::new(
            snapshot.world().clone(),
            std::collections::BTreeMap::new(),
            ScoreWeights::default(),
        );
        let told = outlook.place(&demand, || ControlFlow::Continue(())).unwrap().unwrap();
        assert_eq!(told.node.info.name, decided.node, "a dry run says the same");
        decided
    }

    fn card(decision: &Decision) -> String {
        decision.allocations[0].assignment.shares().next().unwrap().card.to_string()
    }

    fn hold(snapshot: &mut Snapshot, pod: &str, node: &str, card: &str, memory: u64) {
        let share = fixtures::share(card, memory, 0);
        let held = fixtures::allocation(fixtures::PROFILE, share, crate::device::Answer::Succeeded);
        snapshot.charge(pod.into(), fixtures::charge(node, vec![held]));
    }

    #[test]
    fn a_share_fills_a_card_that_is_in_use_and_leaves_whole_ones() {
        let mut snapshot = Snapshot::default();
        for name in ["a", "b"] {
            snapshot.set_node(node(name, 32, 2));
        }
        hold(&mut snapshot, "one", "b", "GPU-b-0", 4_000);
        let decision = decide(&snapshot, ask(1, 4_000));
        assert_eq!((&*decision.node, card(&decision)), ("b", "GPU-b-0".to_owned()));
        // What would leave too little of that card for anybody goes elsewhere on the node, if anywhere.
        let decision = decide(&snapshot, ask(1, 8_000));
        assert_eq!((&*decision.node, card(&decision)), ("b", "GPU-b-1".to_owned()));
    }

    #[test]
    fn a_pod_without_a_card_goes_where_no_card_needs_its_cpu() {
        let mut snapshot = Snapshot::default();
        snapshot.set_node(node("cards", 32, 4));
        snapshot.set_node(node("none", 32, 0));
        assert_eq!(&*decide(&snapshot, ask(30, 0)).node, "none");
        // All cards of this one are given away: what is left of its cpu is of no use to a card.
        snapshot.set_node(node("full", 48, 1));
        hold(&mut snapshot, "one", "full", "GPU-full-0", 8_000);
        snapshot.remove_node("none");
        assert_eq!(&*decide(&snapshot, ask(30, 0)).node, "full");
    }

    #[test]
    fn where_a_quota_has_no_room_for_the_best_card_another_is_given() {
        let mut snapshot = Snapshot::default();
        let small = fixtures::card("GPU-small", 0, 8_000);
        let large = fixtures::card("GPU-large", 1, 16_000);
        let offer = fixtures::offer(fixtures::PROFILE, vec![small, large]);
        snapshot.set_node(NodeInfo { allocatable: amounts(32), ..fixtures::node_offering("a", vec![offer]) });
        hold(&mut snapshot, "one", "a", "GPU-large", 8_000);
        let half = |quota: Option<u64>| {
            let mut snapshot = snapshot.clone();
            if let Some(hard) = quota {
                let key = QuotaKey { namespace: "default".into(), name: "quota".into() };
                let bound = Bound {
                    profile: fixtures::PROFILE.into(),
                    dimension: crate::device::Dimension::Memory,
                    key: "memory".into(),
                    hard,
                    unit: 1,
                };
                snapshot.set_quota(QuotaInfo { key, bounds: vec![bound] });
            }
            let mut ask = ask(1, 1);
            let share = ask.devices[0].request.containers[0].share.as_mut().unwrap();
            share.memory = crate::device::MemoryRequest::Part(crate::device::Percent::new(50));
            card(&decide(&snapshot, ask))
        };
        assert_eq!(half(None), "GPU-large");
        // Half of the large one are 8,000 MiB, beside the 8,000 that the namespace has.
        assert_eq!(half(Some(12_000)), "GPU-small");
    }
}
