//! What claims of devices hold, as the snapshot has it, and of which nodes' cards.

use std::{collections::BTreeSet, sync::Arc};

use super::Snapshot;
use crate::{
    device::{CardId, Usage},
    object::resource_claim::AllocationResult,
    scheduling::{
        model::{
            change::Change,
            claim_use::DeviceClaims,
            footprint::Footprint,
            kind::Kind,
            name::{NodeName, Uid},
            node::NodeInfo,
            pod::Demand,
        },
        world::{
            ledger::Charge,
            node_state::NodeState,
            object::Object,
            resource_claims::{Doubt, Freed, NodeClaims, ResourceClaims},
        },
    },
};

/// The kinds without which it is not known which cards claims hold.
const DECIDING: &[Kind] = &[Kind::ResourceClaim, Kind::ResourceSlice];

impl Snapshot {
    /// The same, of a cluster whose claims of devices are still to be listed; or, where they are not served, whose cards count as held by none.
    #[must_use]
    pub fn awaiting(mut self, claims: DeviceClaims) -> Self {
        match claims {
            DeviceClaims::Served => self.claims_awaited = true,
            DeviceClaims::Off => Arc::make_mut(&mut self.objects).leave_out(Kind::DEVICE_CLAIMS),
        }
        self
    }

    /// Whether it is not known yet which cards claims hold.
    pub(in crate::scheduling) fn awaits_claims(&self) -> bool {
        self.claims_awaited
    }

    /// Takes in that a kind is listed: once it is known what claims hold, no card of their pods' nodes is in doubt for that any more.
    pub(super) fn note_claims_listed(&mut self) {
        if !self.claims_awaited || !self.objects.are_listed(DECIDING) {
            return;
        }
        self.claims_awaited = false;
        let doubted = self.nodes().filter(|state| has_claims(&state.pods));
        let doubted: Vec<NodeName> = doubted.map(|state| state.info.name.clone()).collect();
        self.note_moved(doubted);
    }

    /// What claims hold of a node's cards with these pods on it, and whether more may be held; `None`: nothing.
    pub(super) fn claims_on(
        &self,
        node: &NodeInfo,
        pods: &[Arc<Footprint>],
    ) -> Option<(NodeClaims<'_>, Doubt)> {
        if node.offers.is_empty() {
            return None;
        }
        let known = self.resource_claims.on_node(&node.name);
        if self.claims_awaited && has_claims(pods) {
            return Some((known.unwrap_or(NodeClaims::NONE), Doubt::Every));
        }
        Some((known?, Doubt::Counted))
    }

    /// What is known to be in use of a node's cards by these of its pods and by claims.
    pub(in crate::scheduling) fn known_use(
        &self,
        info: &NodeInfo,
        counts: impl Fn(&Uid, &Charge) -> bool,
    ) -> Usage {
        let usage = info.joined(self.ledger.usage_by(&info.name, counts).without_asked());
        match self.resource_claims.on_node(&info.name) {
            Some(claims) => claims.join(info, usage, Doubt::Skipped),
            None => usage,
        }
    }

    /// Takes in an object that decides on claims of devices; `None`: it is gone. Returns the nodes that serve other extended resources now.
    pub(super) fn see_resource(
        &mut self,
        kind: Kind,
        name: &Arc<str>,
        object: Option<Object>,
    ) -> Vec<NodeName> {
        let classes = self.resource_claims.extended().clone();
        self.change_claims(|claims| {
            match (kind, object) {
                (_, Some(Object::ResourceClaim(claim))) => return claims.see(name, Some(claim)),
                (Kind::ResourceClaim, _) => return claims.see(name, None),
                (_, Some(Object::ResourceSlice(slice))) => claims.set_slice(slice),
                (Kind::ResourceSlice, _) => claims.remove_slice(name),
                (_, Some(Object::DeviceClass(class))) => claims.set_class(&class),
                _ => claims.remove_class(name),
            }
            Freed::Nothing
        });
        if kind == Kind::DeviceClass && classes != *self.resource_claims.extended() {
            // For which extended resources classes stand is part of every node's state.
            let nodes: Vec<NodeName> = self.by_name.keys().cloned().collect();
            self.refold_all(&nodes);
            return nodes;
        }
        Vec::new()
    }

    /// Whether a node may serve extended resources of the pod by claim: what is found for it depends on claims of others.
    pub(in crate::scheduling) fn may_serve_by_claim(&self, demand: &Demand) -> bool {
        let asked = demand.footprint.extended.as_ref();
        asked
            .is_some_and(|asked| asked.may_be_served(self.resource_claims.extended(), &self.device_resources))
    }

    /// Whether a node that has changed may serve other extended resources by claim than before.
    pub(super) fn may_serve_otherwise(&self, before: &NodeInfo, after: &NodeInfo) -> bool {
        let profiles =
            |node: &NodeInfo| node.offers.iter().map(|offer| offer.profile.clone()).collect::<BTreeSet<_>>();
        let alike = before.allocatable == after.allocatable && profiles(before) == profiles(after);
        !self.resource_claims.extended().is_empty() && !alike
    }

    /// Folds anew what pods that are placed have of these claims. Returns the nodes of whose cards claims hold more or less for it:
    /// they are to be folded anew.
    pub(super) fn fold_claims(&mut self, claims: impl IntoIterator<Item = Arc<str>>) -> BTreeSet<NodeName> {
        let names: BTreeSet<Arc<str>> = claims.into_iter().collect();
        for name in &names {
            let charge = self.ledger.claim_charge(name);
            if Arc::make_mut(&mut self.resource_claims).charge(name, charge) == Freed::Some {
                self.changes.push(Change::DevicesFreed);
            }
        }
        if names.is_empty() {
            return BTreeSet::new();
        }
        let moved = Arc::make_mut(&mut self.resource_claims).take_moved();
        let moved: BTreeSet<NodeName> = moved.into_iter().filter(|node| self.offers_cards(node)).collect();
        self.changes.extend(moved.iter().cloned().map(Change::CardsClaimed));
        moved
    }

    /// Whether plugins offer cards of the node: what claims hold there is nothing to others if none does.
    fn offers_cards(&self, node: &NodeName) -> bool {
        self.node(node).is_some_and(|state| !state.info.offers.is_empty())
    }

    /// Takes in what a write that may still arrive gives a claim of devices; `None`: none may any more.
    pub(in crate::scheduling) fn linger(
        &mut self,
        claim: &Arc<str>,
        allocation: Option<Arc<AllocationResult>>,
    ) {
        self.change_claims(|claims| claims.linger(claim, allocation));
    }

    fn change_claims(&mut self, change: impl FnOnce(&mut ResourceClaims) -> Freed) {
        let claims = Arc::make_mut(&mut self.resource_claims);
        let freed = change(claims);
        let moved = claims.take_moved();
        if freed == Freed::Some {
            self.changes.push(Change::DevicesFreed);
        }
        self.note_moved(moved);
    }

    /// Folds these nodes anew.
    pub(super) fn refold_all<'a>(&mut self, nodes: impl IntoIterator<Item = &'a NodeName>) {
        for node in nodes {
            self.refold(node);
        }
    }

    fn note_moved(&mut self, nodes: impl IntoIterator<Item = NodeName>) {
        for node in nodes.into_iter().filter(|node| self.offers_cards(node)).collect::<Vec<_>>() {
            self.refold(&node);
            self.changes.push(Change::CardsClaimed(node));
        }
    }

    /// Takes in that the node of a slot is to be in this state: where less of its cards is in use, devices that are these cards may be free.
    pub(super) fn note_freed_devices(&mut self, slot: usize, now: &NodeState) {
        let Some(before) = &self.slots[slot] else { return };
        if before.usage.is_nothing() {
            return;
        }
        let hardware = self.resource_claims.inventory().hardware_of(&now.info.name);
        let mut cards =
            hardware.filter_map(|(_, device)| device.hardware.as_ref()).map(CardId::from).peekable();
        if cards.peek().is_none() {
            return;
        }
        let (was, is) = (&before.info, &now.info);
        let other_cards = !Arc::ptr_eq(was, is) && (&was.offers, &was.aliases) != (&is.offers, &is.aliases);
        let read = !before.usage.unread().is_subset(now.usage.unread());
        if other_cards || read || cards.any(|card| frees(&card, &before.usage, &now.usage)) {
            self.changes.push(Change::DevicesFreed);
        }
    }
}

fn has_claims(pods: &[Arc<Footprint>]) -> bool {
    pods.iter().any(|pod| !pod.resource_claims.is_empty())
}

/// Whether less is in use of the card than before.
fn frees(card: &CardId, before: &Usage, now: &Usage) -> bool {
    let (was, is) = (before.card(card), now.card(card));
    let gone = before.users(card).is_some() && now.users(card).is_none();
    gone || was.slots > is.slots || was.memory > is.memory || was.cores > is.cores
}
