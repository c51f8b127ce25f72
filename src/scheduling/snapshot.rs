//! The cluster as it stands: nodes, and what is in use of them by the ledger.
//!
//! A node's state is an immutable value that is replaced when anything on the node changes; its generation tells whether it has.

mod agents;
mod before;
mod charge;
mod claims;
mod nominees;
mod objects;
mod reserved;
mod zones;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::model::{
    change::Change,
    images::Images,
    kind::Kind,
    name::{NodeName, Uid},
    node::NodeInfo,
    tdm::{RevocableZones, ZoneState},
};
use super::world::node_state::{Agent, NodeState};
use super::world::{
    ledger::{Charge, Ledger},
    nominations::Nominations,
    object::Objects,
    quota::Quotas,
    reservation::Reservation,
    resource_claims::ResourceClaims,
    surroundings::Surroundings,
    volume_reservations::Reservations,
};
use crate::device::{Cuts, ProfileName};
use reserved::InUse;

pub(in crate::scheduling) use before::Before;

/// Whether something is as it should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum Check {
    /// It is.
    Right,
    /// It was not, and has been put right.
    Wrong,
}

/// The cluster as it stands.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    slots: Vec<Option<Arc<NodeState>>>,
    /// By slot, the generation of the node's state, 0 where there is none: what has changed is found without a look at each node.
    generations: Vec<u64>,
    by_name: BTreeMap<NodeName, usize>,
    ledger: Ledger,
    quotas: Quotas,
    /// On how many nodes each image is.
    images: Arc<Images>,
    /// Other objects that plugins read.
    objects: Arc<Objects>,
    /// What pods that are being placed have chosen for their claims: a fold over charges.
    reservations: Arc<Reservations>,
    /// Claims of devices, and what decides on them.
    resource_claims: Arc<ResourceClaims>,
    /// Whether claims are still to be listed: any card may be held by them.
    claims_awaited: bool,
    /// By node and name, Koordinator's Reservations that hold something there.
    reserved: BTreeMap<NodeName, BTreeMap<Arc<str>, Arc<Reservation>>>,
    /// The slots of nodes with pods that have required anti-affinity.
    repelling: BTreeSet<usize>,
    /// Pods that wait for room on a node that is kept for them.
    nominations: Arc<Nominations>,
    /// The slots of nodes with pods whose terms move the scores of nodes for other pods.
    weighing: BTreeSet<usize>,
    /// The slots of nodes with pods that use claims.
    claiming: BTreeSet<usize>,
    /// What has changed since it was last asked.
    changes: Vec<Change>,
    silent: BTreeSet<NodeName>,
    /// By node, the plugins that have given no sign for too long.
    expired: BTreeMap<NodeName, BTreeSet<ProfileName>>,
    /// The revocable zones of the settings.
    zones: Arc<RevocableZones>,
    /// How the zones of nodes stand, by name.
    zone_states: BTreeMap<Arc<str>, ZoneState>,
    /// The time up to which windows have been looked at.
    now: Timestamp,
    generation: u64,
    /// The dialects' own resources: a node need not advertise them.
    device_resources: Arc<BTreeSet<String>>,
}

impl Snapshot {
    /// An empty cluster, whose nodes need not advertise these resources, which are the dialects' own.
    pub fn new(device_resources: BTreeSet<String>) -> Self {
        Self { device_resources: Arc::new(device_resources), ..Self::default() }
    }

    /// Adds to a node what its Device offers, in place of what a Device offered before.
    pub fn join_devices(&self, node: &mut NodeInfo) {
        self.objects.join_devices(node);
    }

    /// Takes in a node, new or changed, with the devices that it has been joined with.
    pub fn set_node(&mut self, mut info: NodeInfo) {
        let name = info.name.clone();
        let slot = self.by_name.get(&name).copied().unwrap_or_else(|| self.free_slot());
        self.by_name.insert(name.clone(), slot);
        let known = self.slots[slot].as_ref().map(|state| &state.info);
        let same = |known: &NodeInfo| (&known.labels, &known.taints) == (&info.labels, &info.taints);
        if known.is_none_or(|known| !same(known) || self.may_serve_otherwise(known, &info)) {
            self.changes.push(Change::Node);
        }
        self.set_cuts(&name, info.cuts());
        self.take_in_images(slot, &mut info);
        self.fold(slot, &name, Arc::new(info));
    }

    /// Takes in a node of which nothing has changed that decides what fits.
    pub(in crate::scheduling) fn refresh_node(&mut self, mut info: NodeInfo) {
        let Some(&slot) = self.by_name.get(&info.name) else { return };
        self.take_in_images(slot, &mut info);
        if let Some(state) = self.slots[slot].as_mut() {
            Arc::make_mut(state).info = Arc::new(info);
        }
    }

    /// Takes in which images the node in this slot has from now on. They decide nothing but scores that are found anew for each
    /// decision, so no generation moves.
    fn take_in_images(&mut self, slot: usize, info: &mut NodeInfo) {
        let before = self.slots[slot].as_ref().map(|state| state.info.images.clone()).unwrap_or_default();
        info.images = if before == info.images {
            before
        } else {
            Arc::make_mut(&mut self.images).replace(&before, &info.images)
        };
    }

    /// Takes a node out; the charges on it stay, in case that it comes back.
    pub fn remove_node(&mut self, name: &str) {
        if let Some((name, slot)) = self.by_name.remove_entry(name) {
            self.generations[slot] = 0;
            let images = self.slots[slot].take().map(|state| state.info.images.clone()).unwrap_or_default();
            Arc::make_mut(&mut self.images).remove(&images);
            self.repelling.remove(&slot);
            self.weighing.remove(&slot);
            self.claiming.remove(&slot);
            self.changes.push(Change::Node);
            self.generation += 1;
            self.set_cuts(&name, Cuts::default());
        }
        self.expired.remove(name);
    }

    /// Takes in how a node's cards are cut: what its slices hold counts in quotas too.
    fn set_cuts(&mut self, name: &NodeName, cuts: Cuts) {
        for namespace in self.ledger.set_cuts(name, cuts) {
            self.quotas.refold(&namespace, &self.ledger);
        }
    }

    /// Folds a node's state anew, if it is not what the ledger says; whether it was.
    pub(in crate::scheduling) fn check(&mut self, name: &NodeName) -> Check {
        let Some(state) = self.node(name) else { return Check::Right };
        let pods = self.ledger.pods(name);
        let InUse { usage, beside_claims, requested, reservations } =
            self.in_use((&state.info, name), &pods, |_, _| true);
        let of_cards = (&state.usage, &state.beside_claims) == (&usage, &beside_claims);
        let others = (&state.requested, &state.reservations) == (&requested, &reservations);
        if of_cards && others && state.pods == pods {
            return Check::Right;
        }
        self.refold(name);
        Check::Wrong
    }

    /// A node.
    pub fn node(&self, name: &str) -> Option<&Arc<NodeState>> {
        self.slots[*self.by_name.get(name)?].as_ref()
    }

    /// Every node, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.by_name.values().filter_map(|&slot| self.slots[slot].as_ref())
    }

    /// Grows with every change that decides what fits.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Every node by its slot, which it keeps while it exists.
    pub(in crate::scheduling) fn slots(&self) -> &[Option<Arc<NodeState>>] {
        &self.slots
    }

    /// By slot, the generation of each node's state; 0: there is no node.
    pub(in crate::scheduling) fn generations(&self) -> &[u64] {
        &self.generations
    }

    /// The slot of a node.
    pub(in crate::scheduling) fn slot(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// What plugins read that look at more than one node.
    pub fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            slots: &self.slots,
            generations: &self.generations,
            repelling: &self.repelling,
            weighing: &self.weighing,
            claiming: &self.claiming,
            images: &self.images,
            objects: &self.objects,
            reservations: &self.reservations,
            resource_claims: &self.resource_claims,
            nominations: &self.nominations,
            quotas: &self.quotas,
            device_resources: &self.device_resources,
            now: self.now,
        }
    }

    /// The dialects' own resources: a node need not advertise them.
    pub fn device_resources(&self) -> &Arc<BTreeSet<String>> {
        &self.device_resources
    }

    /// On how many nodes each image is.
    pub fn images(&self) -> &Arc<Images> {
        &self.images
    }

    /// Pods that wait for room on a node that is kept for them.
    pub fn nominations(&self) -> &Arc<Nominations> {
        &self.nominations
    }

    /// Claims of devices, and what decides on them.
    pub fn resource_claims(&self) -> &Arc<ResourceClaims> {
        &self.resource_claims
    }

    /// What pods that are being placed have chosen for their claims.
    pub fn reservations(&self) -> &Arc<Reservations> {
        &self.reservations
    }

    fn fold_reservations(&mut self) {
        self.reservations = Arc::new(self.ledger.reservations());
        self.changes.push(Change::Object(Kind::PersistentVolume, Arc::default()));
    }

    /// Other objects that plugins read.
    pub fn objects(&self) -> &Arc<Objects> {
        &self.objects
    }

    /// What has changed since this was last asked.
    pub(in crate::scheduling) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// Who holds what.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The quotas of namespaces.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    fn refold(&mut self, name: &NodeName) {
        let Some(&slot) = self.by_name.get(name) else {
            return;
        };
        let Some(info) = self.slots[slot].as_ref().map(|state| state.info.clone()) else {
            return;
        };
        self.fold(slot, name, info);
    }

    fn fold(&mut self, slot: usize, name: &NodeName, info: Arc<NodeInfo>) {
        self.generation += 1;
        let zone = self.zone_of(&info);
        let state = self.state_with(slot, name, (info, zone), |_, _| true);
        self.note_freed_devices(slot, &state);
        self.put(slot, Arc::new(state));
        self.choose_kept_cards(name);
    }

    /// A node's state with these of its pods.
    fn state_with(
        &self,
        slot: usize,
        name: &NodeName,
        (info, zone): (Arc<NodeInfo>, Option<ZoneState>),
        counts: impl Fn(&Uid, &Charge) -> bool,
    ) -> NodeState {
        let pods = self.ledger.pods_by(name, &counts);
        let InUse { usage, beside_claims, requested, reservations } =
            self.in_use((&info, name), &pods, counts);
        NodeState {
            anti_affinity: pods.iter().flat_map(|pod| pod.anti_affinity.iter().cloned()).collect(),
            usage,
            beside_claims,
            info,
            requested,
            pods,
            reservations,
            within: None,
            agent: if self.silent.contains(name) { Agent::Silent } else { Agent::Answering },
            expired: self.expired.get(name).cloned().unwrap_or_default(),
            zone,
            classes: self.resource_claims.extended().clone(),
            generation: self.generation,
            slot,
        }
    }

    fn put(&mut self, slot: usize, state: Arc<NodeState>) {
        let kinds = [
            (&mut self.repelling, state.repels()),
            (&mut self.weighing, state.weighs()),
            (&mut self.claiming, state.claims()),
        ];
        for (slots, holds) in kinds {
            if holds {
                slots.insert(slot);
            } else {
                slots.remove(&slot);
            }
        }
        self.generations[slot] = state.generation;
        self.slots[slot] = Some(state);
    }

    fn free_slot(&mut self) -> usize {
        if let Some(free) = self.slots.iter().position(Option::is_none) {
            return free;
        }
        self.slots.push(None);
        self.generations.push(0);
        self.slots.len() - 1
    }
}
