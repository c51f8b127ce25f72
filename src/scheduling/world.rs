//! The cluster as the scheduler sees it: nodes with what is taken of them, and every other object that decides.
//!
//! [`World`] is what plugins, plans, dry runs and whoever looks from outside read. It is a value: only its owner replaces parts of it, and
//! a clone shares all of them, so that what was published does not change any more.

pub mod by_slot;
pub mod descriptions;
pub mod ledger;
mod node_names;
pub mod node_parts;
pub mod node_state;
pub mod nodes;
pub mod nominations;
pub mod object;
pub(in crate::scheduling) mod pod_lister;
pub mod quota;
pub mod quota_holder;
pub mod reservation;
pub mod resource_claims;
pub mod topology;
pub mod volume_reservations;
pub mod weighing_terms;

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::model::{
    footprint::Footprint, kind::Kind, name::NodeName, node::NodeInfo, plugin_arguments::PluginArguments,
    pod::Demand,
};
use super::packing::Packing;
use crate::device::Usage;
use node_state::NodeState;
use nodes::Nodes;
use nominations::Nominations;
use object::{Object, Objects};
use quota::Quotas;
use resource_claims::{Doubt, NodeClaims, ResourceClaims};
use volume_reservations::Reservations;

/// The cluster at one moment. A clone shares every part until that is replaced.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// Every node in its slot.
    pub(in crate::scheduling) nodes: Arc<Nodes>,
    /// Other objects, namespaces among them.
    pub(in crate::scheduling) objects: Arc<Objects>,
    /// What pods that are being placed have chosen for their claims of volumes: a fold over charges.
    pub(in crate::scheduling) reservations: Arc<Reservations>,
    /// Claims of devices, and what decides on them.
    pub(in crate::scheduling) resource_claims: Arc<ResourceClaims>,
    /// Whether claims of devices are still to be listed: any card may be held by them.
    pub(in crate::scheduling) awaits_claims: bool,
    /// Pods that wait for room on a node that is kept for them.
    pub(in crate::scheduling) nominations: Arc<Nominations>,
    /// The quotas of namespaces.
    pub(in crate::scheduling) quotas: Arc<Quotas>,
    /// The dialects' own resources: a node need not advertise them.
    pub(in crate::scheduling) device_resources: Arc<BTreeSet<String>>,
    /// What the settings say to single plugins.
    pub(in crate::scheduling) arguments: Arc<PluginArguments>,
    /// What rooms of nodes are worth to the pods that may come.
    pub(in crate::scheduling) packing: Arc<Packing>,
    /// The time up to which windows have been looked at.
    pub(in crate::scheduling) now: Timestamp,
    /// Grows with every change that decides what fits.
    pub(in crate::scheduling) generation: u64,
}

impl World {
    /// A node.
    pub fn node(&self, name: &str) -> Option<&Arc<NodeState>> {
        self.nodes.get(name)
    }

    /// Every node, in order of name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.nodes.by_name()
    }

    /// Other objects that plugins read, namespaces among them.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// What pods that are being placed have chosen for their claims of volumes: a fold over charges.
    pub fn reservations(&self) -> &Reservations {
        &self.reservations
    }

    /// Claims of devices, and what decides on them.
    pub fn resource_claims(&self) -> &ResourceClaims {
        &self.resource_claims
    }

    /// Pods that wait for room on a node that is kept for them.
    pub fn nominations(&self) -> &Nominations {
        &self.nominations
    }

    /// The quotas of namespaces.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// The dialects' own resources: a node need not advertise them.
    pub fn device_resources(&self) -> &BTreeSet<String> {
        &self.device_resources
    }

    /// What the settings say to single plugins.
    pub fn arguments(&self) -> &PluginArguments {
        &self.arguments
    }

    /// What rooms of nodes are worth to the pods that may come.
    pub fn packing(&self) -> &Packing {
        &self.packing
    }

    /// The time up to which windows have been looked at.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Grows with every change that decides what fits.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The same with another state of one of its nodes.
    #[must_use]
    pub(in crate::scheduling) fn with(&self, state: Arc<NodeState>) -> Self {
        let mut nodes = Nodes::clone(&self.nodes);
        nodes.put(state);
        Self { nodes: Arc::new(nodes), ..self.clone() }
    }

    /// Whether it is not known yet which cards claims hold.
    pub(in crate::scheduling) fn awaits_claims(&self) -> bool {
        self.awaits_claims
    }

    /// What claims hold of a node's cards with these pods on it, and whether more may be held; `None`: nothing.
    pub(in crate::scheduling) fn claims_on(
        &self,
        node: &NodeInfo,
        pods: &[Arc<Footprint>],
    ) -> Option<(NodeClaims<'_>, Doubt)> {
        if !node.devices.has_cards() {
            return None;
        }
        let known = self.resource_claims.on_node(&node.name);
        if self.awaits_claims && pods.iter().any(|pod| !pod.resource_claims.is_empty()) {
            return Some((known.unwrap_or(NodeClaims::NONE), Doubt::Every));
        }
        Some((known?, Doubt::Counted))
    }

    /// What is known to be in use of a node's cards, of which pods use so much, by claims too.
    pub(in crate::scheduling) fn known_use(&self, node: &NodeInfo, of_pods: Usage) -> Usage {
        let usage = node.devices.joined(of_pods.without_asked());
        match self.resource_claims.on_node(&node.name) {
            Some(claims) => claims.join(node, usage, Doubt::Skipped),
            None => usage,
        }
    }

    /// Whether plugins offer cards of the node, or drivers publish some: what claims hold there is nothing to others if neither does.
    pub(in crate::scheduling) fn offers_cards(&self, node: &NodeName) -> bool {
        self.node(node).is_some_and(|state| state.info.devices.has_cards())
    }

    /// Whether a node may serve extended resources of the pod by claim: what is found for it depends on claims of others.
    pub(in crate::scheduling) fn may_serve_by_claim(&self, demand: &Demand) -> bool {
        let asked = demand.footprint.extended.as_ref();
        asked
            .is_some_and(|asked| asked.may_be_served(self.resource_claims.extended(), &self.device_resources))
    }

    /// Whether a node that has changed may serve other extended resources by claim than before.
    pub(in crate::scheduling) fn may_serve_otherwise(&self, before: &NodeInfo, after: &NodeInfo) -> bool {
        let profiles = |node: &NodeInfo| {
            node.devices.offers.iter().map(|offer| offer.profile.clone()).collect::<BTreeSet<_>>()
        };
        let alike = before.allocatable == after.allocatable && profiles(before) == profiles(after);
        !self.resource_claims.extended().is_empty() && !alike
    }

    /// Whether a Reservation is for the pod, or the pod must use one: what is found for it holds for no other.
    pub(in crate::scheduling) fn has_reservation_for(&self, demand: &Demand) -> bool {
        let Some(pod) = &demand.footprint.reservation else { return false };
        let mut all = self.objects.of_kind(Kind::Reservation);
        pod.affinity.is_some()
            || all.any(|object| matches!(object, Object::Reservation(_, one) if one.is_for(demand)))
    }
}
