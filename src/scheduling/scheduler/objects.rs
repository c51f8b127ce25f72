//! Taking in the objects that plugins read beside pods, nodes and quotas.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::Scheduler;
use crate::{
    dra::device::DeviceId,
    scheduling::{
        model::{
            kind::Kind,
            name::{NodeName, full_name},
            node::NodeInfo,
        },
        prebind::PrebindInput,
        snapshot::Snapshot,
        world::{
            object::Object,
            resource_claims::double_allocation::{claims_with, double_allocations},
        },
    },
};

impl Scheduler {
    /// Takes in a list of a kind: what is not in it is gone.
    pub(super) fn resync_objects(&mut self, kind: Kind, objects: Vec<Object>, now: Timestamp) {
        let live: BTreeSet<Arc<str>> = objects.iter().map(Object::name).collect();
        let known = self.binding.cycle.snapshot.objects().of_kind(kind).map(Object::name);
        let gone: Vec<Arc<str>> = known.filter(|name| !live.contains(name)).collect();
        for name in gone {
            self.take_object(kind, &name, now);
        }
        for object in objects {
            self.put_object(object, now);
        }
        self.binding.cycle.wake_gangs(kind, None);
        let first = !self.binding.cycle.snapshot.objects().are_listed(&[kind]);
        self.binding.cycle.snapshot.note_listed(kind);
        if first && kind == Kind::PodDisruptionBudget {
            self.binding.cycle.end_wait_for_budgets();
        }
        self.binding.cycle.end_wait_for_lists();
    }

    /// Takes in an object.
    pub(super) fn put_object(&mut self, object: Object, now: Timestamp) {
        if matches!(object, Object::Unread(..)) {
            return;
        }
        let nodes = match &object {
            Object::Device(node, offer) => {
                self.audits.changed_devices.insert(offer.profile.clone());
                vec![node.clone()]
            }
            Object::ShareTemplates(..) => nodes_with_devices(self.snapshot()),
            _ => Vec::new(),
        };
        if let Object::Reservation(_, reservation) = &object {
            self.audits.changed_devices.insert(reservation.allocation.profile.clone());
        }
        let claim = match &object {
            Object::ResourceClaim(claim) => Some(claim.clone()),
            _ => None,
        };
        let claimed = claim.as_ref().map(|claim| full_name(&claim.metadata.namespace, &claim.metadata.name));
        let (kind, claimed) = (object.kind(), claimed.unwrap_or_default());
        let before = nodes_of_double_allocations(self.snapshot(), kind, &claimed);
        for node in self.binding.cycle.snapshot.set_object(object) {
            self.binding.wake(&node);
            self.binding.flows.touch(&node);
        }
        touch_double_allocations(self, kind, &claimed, &before);
        if let Some(claim) = claim {
            self.binding.cycle.pods.note_claim(&claimed);
            self.binding.advance_prebind(PrebindInput::ClaimSeen(&claim));
        }
        self.join_anew(&nodes, now);
    }

    /// Joins to these nodes what objects say of them now.
    fn join_anew(&mut self, nodes: &[NodeName], now: Timestamp) {
        for node in nodes {
            if let Some(node) =
                self.binding.cycle.snapshot.node(node).map(|known| NodeInfo::clone(&known.info))
            {
                self.take_in_node(node, now);
            }
        }
    }

    /// Takes in that an object is gone.
    pub(super) fn take_object(&mut self, kind: Kind, name: &Arc<str>, now: Timestamp) {
        let offered = (kind == Kind::Device)
            .then(|| self.binding.cycle.snapshot.objects().devices(name).cloned())
            .flatten();
        let before = nodes_of_double_allocations(self.snapshot(), kind, name);
        for node in self.binding.cycle.snapshot.remove_object(kind, name) {
            self.binding.wake(&node);
            self.binding.flows.touch(&node);
        }
        if kind == Kind::ResourceClaim {
            self.binding.cycle.pods.note_claim(name);
        }
        touch_double_allocations(self, kind, name, &before);
        if kind == Kind::ShareTemplates {
            self.join_anew(&nodes_with_devices(self.snapshot()), now);
        }
        let Some(offered) = offered else { return };
        self.audits.changed_devices.insert(offered.profile.clone());
        if let Some(mut node) =
            self.binding.cycle.snapshot.node(name).map(|known| NodeInfo::clone(&known.info))
        {
            node.drop_devices(&offered.profile);
            self.take_in_node(node, now);
        }
    }
}

/// The nodes that have a Device.
fn nodes_with_devices(snapshot: &Snapshot) -> Vec<NodeName> {
    snapshot.objects().of_kind(Kind::Device).map(Object::name).collect()
}

/// Has the nodes looked at on which an object has made or ended a double allocation; `before` it was taken in, it was about these nodes.
fn touch_double_allocations(scheduler: &mut Scheduler, kind: Kind, name: &str, before: &BTreeSet<NodeName>) {
    let now = nodes_of_double_allocations(scheduler.snapshot(), kind, name);
    before.union(&now).for_each(|node| scheduler.binding.flows.touch(node));
}

/// The nodes of pods that have a device which several claims were given, as far as the object of this kind and name can make or end that: a claim by its
/// full name, and whatever is published of devices.
fn nodes_of_double_allocations(snapshot: &Snapshot, kind: Kind, name: &str) -> BTreeSet<NodeName> {
    let claims = snapshot.resource_claims();
    let devices = match kind {
        Kind::ResourceClaim => double_allocations(name, claims),
        Kind::ResourceSlice => claims.held().given_twice().into_iter().cloned().collect(),
        _ => BTreeSet::new(),
    };
    devices.iter().flat_map(|device| nodes_with(snapshot, device)).collect()
}

/// The nodes of pods whose claims have this device, or have too much together with it.
fn nodes_with(snapshot: &Snapshot, device: &DeviceId) -> BTreeSet<NodeName> {
    let (claims, ledger) = (snapshot.resource_claims(), snapshot.ledger());
    let given = claims_with(device, claims);
    let users = given.iter().flat_map(|claim| ledger.users_of_claim(claim));
    users.filter_map(|uid| Some(ledger.get(uid)?.node.clone())).collect()
}
