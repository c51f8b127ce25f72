//! What the nodes have of cards, and the pods that are made up by it: where few pods are there yet, it is supposed that nodes are cut as those
//! that come are.

use std::{collections::BTreeMap, sync::Arc};

use super::mix::POD;
use crate::{
    device::{CoreRequest, MemoryRequest, ModelFilter, Percent},
    scheduling::model::{
        card_kind::{CardKinds, CountedCard, KindId},
        node::NodeInfo,
        pod_shape::{CardShape, PodShape, ShareShape, cpu, memory},
        resources::ResourceAmounts,
    },
};

/// So many pods are made up. They count less, the more pods there are.
const MADE_UP: u32 = 20;

/// The nodes with as many cards of one kind: how many cards they have in all, and the most cpu (thousandths) and memory (MiB) of one.
#[derive(Clone, Debug, Default)]
struct NodeCut {
    cards: u64,
    sizes: BTreeMap<(u32, u32), u32>,
}

/// How large a node is when it is empty. cpu and memory are rounded up to six binary digits, so that nodes of one type count as one.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NodeSize {
    /// The kind of its first card.
    pub kind: KindId,
    /// How many cards it has.
    pub cards: u32,
    /// cpu, in thousandths.
    pub cpu: u32,
    /// Memory, in MiB.
    pub memory: u32,
}

impl NodeSize {
    /// The size of a node; `None`: it has no cards.
    pub fn of(node: &NodeInfo) -> Option<Self> {
        let (kind, cards, (cpu, memory)) = cut(node)?;
        let cards = u32::try_from(cards).unwrap_or(u32::MAX);
        Some(Self { kind, cards, cpu: rounded_up(cpu), memory: rounded_up(memory) })
    }
}

/// The number rounded up to six binary digits.
fn rounded_up(number: u32) -> u32 {
    let step = 1_u32 << number.checked_ilog2().unwrap_or(0).saturating_sub(5);
    number.checked_next_multiple_of(step).unwrap_or(u32::MAX)
}

/// The cards of all nodes.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// How many cards there are of each kind.
    cards: BTreeMap<KindId, u64>,
    nodes: BTreeMap<(KindId, usize), NodeCut>,
    /// How many cards the nodes of each size have.
    sizes: BTreeMap<NodeSize, u64>,
}

impl Fleet {
    /// How many cards there are of each kind.
    pub(super) fn cards(&self) -> &BTreeMap<KindId, u64> {
        &self.cards
    }

    /// How many cards the nodes of each size have.
    pub(super) fn sizes(&self) -> &BTreeMap<NodeSize, u64> {
        &self.sizes
    }

    /// Takes in a node.
    pub(super) fn add(&mut self, node: &NodeInfo) {
        let Some((kind, count, size)) = cut(node) else { return };
        if let Some(size) = NodeSize::of(node) {
            *self.sizes.entry(size).or_default() += count as u64;
        }
        for card in &*node.devices.cards {
            *self.cards.entry(card.kind).or_default() += 1;
        }
        let alike = self.nodes.entry((kind, count)).or_default();
        alike.cards += count as u64;
        *alike.sizes.entry(size).or_default() += 1;
    }

    /// Takes a node out.
    pub(super) fn remove(&mut self, node: &NodeInfo) {
        let Some((kind, count, size)) = cut(node) else { return };
        if let Some(cards) = NodeSize::of(node).and_then(|size| self.sizes.get_mut(&size)) {
            *cards -= count as u64;
        }
        self.sizes.retain(|_, cards| *cards > 0);
        for CountedCard { kind, .. } in &*node.devices.cards {
            if let Some(cards) = self.cards.get_mut(kind) {
                *cards -= 1;
            }
        }
        self.cards.retain(|_, cards| *cards > 0);
        if let Some(alike) = self.nodes.get_mut(&(kind, count)) {
            alike.cards -= count as u64;
            if let Some(nodes) = alike.sizes.get_mut(&size) {
                *nodes -= 1;
            }
            alike.sizes.retain(|_, nodes| *nodes > 0);
            if alike.sizes.is_empty() {
                self.nodes.remove(&(kind, count));
            }
        }
    }

    /// The pods that are made up, each with its weight: of nodes that are alike three in five ask for one card, three in ten for half of one and one in
    /// ten for all, each with half of its part of cpu and memory. Weights are rounded to powers of 2, so that few follow where one node comes or goes.
    pub(super) fn made_up(&self, kinds: &CardKinds) -> BTreeMap<Arc<PodShape>, u32> {
        let all: u64 = self.cards.values().sum();
        let mut pods = BTreeMap::new();
        for ((kind, count), alike) in &self.nodes {
            let Some(((cpu, memory), _)) = alike.sizes.last_key_value() else { continue };
            let Some(profile) = kinds.get(*kind).profiles.first() else { continue };
            let mut one = |cards: usize, percent: u32, tenths: u64| {
                let share = ShareShape {
                    profile: profile.clone(),
                    memory: MemoryRequest::Part(Percent::new(percent)),
                    cores: CoreRequest::NONE,
                    alone: percent == 100,
                    models: ModelFilter::default(),
                    modes: None,
                    typed: false,
                    devices: BTreeMap::new(),
                };
                let cards_asked = u32::try_from(cards).unwrap_or(u32::MAX);
                let part = |all: u32| {
                    let all = u64::from(all) * u64::from(cards_asked) * u64::from(percent);
                    u32::try_from(all / (200 * *count as u64).max(1)).unwrap_or(u32::MAX)
                };
                let cards = CardShape { count: cards_asked, share };
                let pod = PodShape { cpu: part(*cpu), memory: part(*memory), cards };
                let weight = u64::from(MADE_UP * POD) * alike.cards * tenths / (10 * all.max(1));
                let weight =
                    u32::try_from(weight).unwrap_or(u32::MAX).checked_ilog2().map_or(0, |log| 1 << log);
                if weight > 0 {
                    *pods.entry(Arc::new(pod)).or_insert(0) += weight;
                }
            };
            one(1, 100, 6);
            one(1, 50, 3);
            if *count > 1 {
                one(*count, 100, 1);
            }
        }
        pods
    }
}

/// How a node is cut: its first card's kind, how many cards it has, its cpu and memory; `None`: it has no cards.
fn cut(node: &NodeInfo) -> Option<(KindId, usize, (u32, u32))> {
    let cards = &node.devices.cards;
    let first = cards.first()?;
    Some((first.kind, cards.len(), size(&node.allocatable)))
}

fn size(resources: &ResourceAmounts) -> (u32, u32) {
    (cpu(resources), memory(resources))
}
