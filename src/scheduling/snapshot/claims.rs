//! What claims of devices hold, as the snapshot has it, and of which nodes' cards.

use std::{collections::BTreeSet, sync::Arc};

use super::{Snapshot, nominees::keep_devices_anew};
use crate::{
    device::{CardId, Usage},
    object::resource_claim::AllocationResult,
    scheduling::{
        model::{change::Change, claim_use::DeviceClaims, footprint::Footprint, kind::Kind, name::NodeName},
        world::{
            node_state::NodeState,
            object::Object,
            resource_claims::{Freed, ResourceClaims},
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
            DeviceClaims::Served => self.world.awaits_claims = true,
            DeviceClaims::Off => Arc::make_mut(&mut self.world.objects).leave_out(Kind::DEVICE_CLAIMS),
        }
        self
    }

    /// Takes in that a kind is listed: once it is known what claims hold, no card of their pods' nodes is in doubt for that any more.
    pub(super) fn note_claims_listed(&mut self) {
        if !self.world.awaits_claims || !self.world.objects.are_listed(DECIDING) {
            return;
        }
        self.world.awaits_claims = false;
        let doubted = self.world.nodes().filter(|state| has_claims(&state.pods));
        let doubted: Vec<NodeName> = doubted.map(|state| state.info.name.clone()).collect();
        self.note_moved(doubted);
    }

    /// Folds anew what pods that are placed have of these claims. Returns the nodes of whose cards claims hold more or less for it:
    /// they are to be folded anew.
    pub(super) fn fold_claims(&mut self, claims: impl IntoIterator<Item = Arc<str>>) -> BTreeSet<NodeName> {
        let names: BTreeSet<Arc<str>> = claims.into_iter().collect();
        for name in &names {
            let charge = self.ledger.claim_charge(name);
            if Arc::make_mut(&mut self.world.resource_claims).charge(name, charge) == Freed::Some {
                self.changes.push(Change::DevicesFreed);
            }
        }
        if names.is_empty() {
            return BTreeSet::new();
        }
        let moved = Arc::make_mut(&mut self.world.resource_claims).take_moved();
        let moved: BTreeSet<NodeName> =
            moved.into_iter().filter(|node| self.world.offers_cards(node)).collect();
        keep_devices_anew(self);
        self.changes.extend(moved.iter().cloned().map(Change::CardsClaimed));
        moved
    }

    /// Takes in what a write that may still arrive gives a claim of devices; `None`: none may any more.
    pub(in crate::scheduling) fn linger(
        &mut self,
        claim: &Arc<str>,
        allocation: Option<Arc<AllocationResult>>,
    ) {
        self.change_claims(|claims| claims.linger(claim, allocation));
    }

    pub(super) fn change_claims(&mut self, change: impl FnOnce(&mut ResourceClaims) -> Freed) {
        let claims = Arc::make_mut(&mut self.world.resource_claims);
        let freed = change(claims);
        let moved = claims.take_moved();
        if freed == Freed::Some {
            self.changes.push(Change::DevicesFreed);
        }
        self.note_moved(moved);
        keep_devices_anew(self);
    }

    fn note_moved(&mut self, nodes: impl IntoIterator<Item = NodeName>) {
        for node in nodes.into_iter().filter(|node| self.world.offers_cards(node)).collect::<Vec<_>>() {
            self.refold([&node]);
            self.changes.push(Change::CardsClaimed(node));
        }
    }
}

/// Takes in an object that decides on claims of devices; `None`: it is gone.
pub(super) fn take_in(
    claims: &mut ResourceClaims,
    kind: Kind,
    name: &Arc<str>,
    object: Option<Object>,
) -> Freed {
    match (kind, object) {
        (_, Some(Object::ResourceClaim(claim))) => return claims.see(name, Some(claim)),
        (Kind::ResourceClaim, _) => return claims.see(name, None),
        (_, Some(Object::ResourceSlice(slice))) => claims.set_slice(name, Some(slice)),
        (Kind::ResourceSlice, _) => claims.set_slice(name, None),
        (_, Some(Object::DeviceTaintRule(version, rule))) => claims.set_taint_rule(version, name, Some(rule)),
        (Kind::DeviceTaintRule(version), _) => claims.set_taint_rule(version, name, None),
        (_, Some(Object::DeviceClass(class))) => claims.set_class(&class),
        _ => claims.remove_class(name),
    }
    Freed::Nothing
}

/// Whether devices may be free once a node is in another state than before: where less of its cards is in use, and devices are these cards.
pub(super) fn frees_devices(claims: &ResourceClaims, before: &NodeState, now: &NodeState) -> bool {
    if before.usage.is_nothing() {
        return false;
    }
    let hardware = claims.inventory().hardware_of(&now.info.name);
    let mut cards = hardware.filter_map(|(_, device)| device.hardware.as_ref()).map(CardId::from).peekable();
    if cards.peek().is_none() {
        return false;
    }
    let (was, is) = (&before.info, &now.info);
    let other_cards = !Arc::ptr_eq(was, is)
        && (&was.devices.offers, &was.devices.aliases) != (&is.devices.offers, &is.devices.aliases);
    let read = !before.usage.unread().is_subset(now.usage.unread());
    other_cards || read || cards.any(|card| frees(&card, &before.usage, &now.usage))
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
