//! Which nodes are alike to claims: their devices are equal in all that an allocation follows from, and what is held of them is too.
//!
//! Claims to which the same attributes of devices matter see the same nodes as alike, whatever they ask for.

use std::collections::{BTreeSet, HashMap};

use crate::scheduling::{
    model::steps::{Allowance, DESCRIBE_DEVICE, JUDGE},
    world::{World, descriptions::Descriptions, node_parts::PartId, resource_claims::describe_devices},
};

/// The nodes as claims see them, by the attributes that matter to these.
#[derive(Debug, Default)]
pub(super) struct DeviceLikenesses {
    by_attributes: HashMap<BTreeSet<String>, DescribedNodes>,
    asked: u64,
}

/// The nodes as claims see them to which the same attributes matter.
#[derive(Debug, Default)]
pub(super) struct DescribedNodes {
    /// By slot, the node's generation when it was described; 0: there was no node.
    generations: Vec<u64>,
    by_slot: Vec<DescribedNode>,
    /// Up to which version changes of claims and devices have been taken in.
    version: u64,
    /// The slots of nodes that are still to be described.
    left: BTreeSet<usize>,
    descriptions: Descriptions,
    /// When they were asked for last.
    asked_at: u64,
}

/// What is known of one node.
#[derive(Clone, Copy, Debug, Default)]
struct DescribedNode {
    /// The stamp of its devices when it was described.
    stamp: u64,
    /// `None`: it is like no other.
    number: Option<PartId>,
}

/// What a node is like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Likeness {
    /// Equal for nodes that are alike.
    pub(super) number: PartId,
    /// The node's generation.
    pub(super) generation: u64,
    /// The stamp of its devices.
    pub(super) stamp: u64,
}

/// Nodes are described by so many sets of attributes at a time: few clusters have claims that read more.
const REMEMBERED: usize = 8;

impl DeviceLikenesses {
    /// The nodes as claims see them to which these attributes matter: as many of those that have changed are described anew as `allowance` has steps
    /// for.
    pub(super) fn of(
        &mut self,
        attributes: &BTreeSet<String>,
        world: &World,
        allowance: &mut Allowance,
    ) -> &DescribedNodes {
        if self.by_attributes.len() >= REMEMBERED && !self.by_attributes.contains_key(attributes) {
            let oldest = self.by_attributes.iter().min_by_key(|(_, nodes)| nodes.asked_at);
            if let Some(oldest) = oldest.map(|(attributes, _)| attributes.clone()) {
                self.by_attributes.remove(&oldest);
            }
        }
        self.asked += 1;
        let nodes = self.by_attributes.entry(attributes.clone()).or_default();
        nodes.asked_at = self.asked;
        nodes.refresh(attributes, world, allowance);
        nodes
    }
}

impl DescribedNodes {
    /// What the node in this slot is like; `None`: it is like no other, or not described yet.
    pub(super) fn likeness(&self, slot: usize, world: &World) -> Option<Likeness> {
        let DescribedNode { stamp, number } = *self.by_slot.get(slot)?;
        let generation = self.generations[slot];
        let is_of_now = world.nodes.generations().get(slot) == Some(&generation);
        let number = number.filter(|_| is_of_now && (self.left.is_empty() || !self.left.contains(&slot)))?;
        Some(Likeness { number, generation, stamp })
    }

    /// Whether every node is described.
    pub(super) fn are_complete(&self) -> bool {
        self.left.is_empty()
    }

    fn refresh(&mut self, attributes: &BTreeSet<String>, world: &World, allowance: &mut Allowance) {
        if self.descriptions.are_used_up() {
            *self = Self { asked_at: self.asked_at, ..Self::default() };
        }
        self.generations.resize(world.nodes.slots().len(), 0);
        self.by_slot.resize(world.nodes.slots().len(), DescribedNode::default());
        self.left.extend(super::changed(world, &self.generations, &mut self.version));
        while let Some(slot) = self.left.pop_first() {
            let (described, devices) = self.describe(slot, attributes, world);
            self.by_slot[slot] = described;
            self.generations[slot] = world.nodes.generations()[slot];
            let devices = u64::try_from(devices).unwrap_or(u64::MAX);
            if allowance.pay(JUDGE.saturating_add(DESCRIBE_DEVICE.saturating_mul(devices))).is_break() {
                break;
            }
        }
        let numbers = || self.by_slot.iter().filter_map(|node| node.number);
        self.descriptions.forget_all_but(numbers);
    }

    /// The node in this slot as it is now, and how many devices it has.
    fn describe(
        &mut self,
        slot: usize,
        attributes: &BTreeSet<String>,
        world: &World,
    ) -> (DescribedNode, usize) {
        let Some(state) = world.nodes.at(slot) else { return (DescribedNode::default(), 0) };
        let claims = world.resource_claims();
        let of_node = self
            .descriptions
            .number_where(|description| describe_devices(claims, state, attributes, description));
        let (number, devices) = of_node.unzip();
        (DescribedNode { stamp: claims.stamp(&state.info.name), number }, devices.unwrap_or(0))
    }
}
