//! Nodes, as they come, change and go, and the state of each: a fold over everything that is known of the node.

use std::sync::Arc;

use super::{Check, Snapshot, charge::note_resources_freed, claims::frees_devices, in_use::InUse};
use crate::{
    device::Cuts,
    scheduling::{
        model::{change::Change, footprint::Footprint, name::NodeName, node::NodeInfo, tdm::ZoneState},
        packing::Packing,
        world::{
            ledger::Charge,
            node_state::{ClaimedOnNode, NodeAgents, NodeReserved, NodeState},
        },
    },
};

impl Snapshot {
    /// Takes in a node, new or changed, with the devices that it has been joined with.
    pub fn set_node(&mut self, mut info: NodeInfo) {
        let name = info.name.clone();
        let known = self.world.node(&name).map(|state| &state.info);
        let same = |known: &NodeInfo| {
            (&known.labels, &known.taints, &known.features) == (&info.labels, &info.taints, &info.features)
        };
        if known.is_none_or(|known| !same(known) || self.world.may_serve_otherwise(known, &info)) {
            self.changes.push(Change::Node);
        }
        if self.world.node(&name).is_some_and(|known| known.info.allocatable != info.allocatable) {
            note_resources_freed(self);
        }
        // What the slices of its cards hold counts in quotas too.
        let changed = self.ledger.set_cuts(&name, info.devices.cuts());
        Arc::make_mut(&mut self.world.quotas).refold(&changed, &mut self.ledger);
        let before = self.world.node(&name).map(|state| state.info.clone());
        let published = self.world.resource_claims.published_cards(&name);
        self.packing_mut().replace_node(before.as_deref(), Some(&mut info), published);
        let nodes = Arc::make_mut(&mut self.world.nodes);
        let slot = nodes.take_slot(&name);
        nodes.count_images(slot, &mut info);
        self.fold(slot, &name, Arc::new(info));
    }

    /// Takes in a node of which nothing has changed that decides what fits.
    pub(in crate::scheduling) fn refresh_node(&mut self, mut info: NodeInfo) {
        if let Some(known) = self.world.node(&info.name) {
            info.devices.cards = known.info.devices.cards.clone();
        }
        Arc::make_mut(&mut self.world.nodes).refresh(info);
    }

    /// Takes a node out; the charges on it stay, in case that it comes back.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(state) = self.world.node(name).cloned() {
            self.packing_mut().replace_node(Some(&state.info), None, Vec::new());
        }
        if let Some(name) = Arc::make_mut(&mut self.world.nodes).remove(name) {
            self.changes.push(Change::Node);
            self.world.generation += 1;
            let changed = self.ledger.set_cuts(&name, Cuts::default());
            Arc::make_mut(&mut self.world.quotas).refold(&changed, &mut self.ledger);
        }
        self.agents.forget(name);
    }

    /// What rooms are worth, to be changed by which pods may come.
    pub fn packing_mut(&mut self) -> &mut Packing {
        Arc::make_mut(&mut self.world.packing)
    }

    /// Folds a node's state anew, if it is not what the ledger says; whether it was.
    pub(in crate::scheduling) fn check(&mut self, name: &NodeName) -> Check {
        let Some(state) = self.world.node(name) else { return Check::Right };
        let charges = charges_on(self, name);
        let pods = pods_of(&charges);
        let InUse { usage, beside_claims, requested, reservations } =
            InUse::of(self, (&state.info, name), &pods, &charges);
        let of_cards = (&state.usage, &state.claimed.beside) == (&usage, &beside_claims);
        let others = (&state.requested, &state.reservations.all) == (&requested, &reservations);
        if of_cards && others && state.pods == pods {
            return Check::Right;
        }
        self.refold([name]);
        Check::Wrong
    }

    /// Folds the states of these nodes anew.
    pub(super) fn refold<'a>(&mut self, nodes: impl IntoIterator<Item = &'a NodeName>) {
        for name in nodes {
            if let Some(state) = self.world.node(name) {
                let (slot, info) = (state.slot, state.info.clone());
                self.fold(slot, name, info);
            }
        }
    }

    fn fold(&mut self, slot: usize, name: &NodeName, info: Arc<NodeInfo>) {
        self.world.generation += 1;
        let zone = self.zones.of_node(&info, self.world.now);
        let state = self.state_with(slot, name, (info, zone), &charges_on(self, name));
        let before = self.world.nodes.at(slot);
        if before.is_some_and(|before| frees_devices(self.world.resource_claims(), before, &state)) {
            self.changes.push(Change::DevicesFreed);
        }
        Arc::make_mut(&mut self.world.nodes).put(Arc::new(state));
        self.choose_kept_cards(name);
    }

    /// A node's state with these of the charges on it.
    pub(super) fn state_with(
        &self,
        slot: usize,
        name: &NodeName,
        (info, zone): (Arc<NodeInfo>, Option<ZoneState>),
        charges: &[&Charge],
    ) -> NodeState {
        let pods = pods_of(charges);
        let InUse { usage, beside_claims, requested, reservations } =
            InUse::of(self, (&info, name), &pods, charges);
        NodeState {
            anti_affinity: pods.iter().flat_map(|pod| pod.neighbours.anti_affinity.iter().cloned()).collect(),
            usage,
            claimed: ClaimedOnNode { beside: beside_claims, kept: None },
            info,
            requested,
            pods,
            reservations: NodeReserved { all: reservations, within: None },
            agents: NodeAgents { agent: self.agents.of(name), expired: self.agents.expired(name) },
            zone,
            classes: self.world.resource_claims.extended().clone(),
            generation: self.world.generation,
            slot,
        }
    }
}

/// The charges on a node, by uid of their pods.
fn charges_on<'a>(snapshot: &'a Snapshot, name: &NodeName) -> Vec<&'a Charge> {
    snapshot.ledger.on_node(name).map(|(_, charge)| charge).collect()
}

fn pods_of(charges: &[&Charge]) -> Vec<Arc<Footprint>> {
    charges.iter().map(|charge| charge.footprint.clone()).collect()
}

/// Counts the cards of a node anew: drivers may publish others.
pub(super) fn count_cards(snapshot: &mut Snapshot, name: &NodeName) {
    let Some(state) = snapshot.world.node(name) else { return };
    let (slot, before) = (state.slot, state.info.clone());
    let mut info = NodeInfo::clone(&before);
    let published = snapshot.world.resource_claims.published_cards(name);
    snapshot.packing_mut().replace_node(Some(&before), Some(&mut info), published);
    if info.devices.cards != before.devices.cards {
        snapshot.fold(slot, name, Arc::new(info));
    }
}
