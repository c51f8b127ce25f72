//! What the snapshot takes in beside nodes, charges and nominations: quotas, and other objects that plugins read.

use std::sync::Arc;

use super::{Check, Snapshot, claims::take_in, node::count_cards};
use crate::scheduling::{
    model::{change::Change, kind::Kind, name::NodeName},
    world::{
        object::Object,
        quota::{QuotaInfo, QuotaKey},
    },
};

impl Snapshot {
    /// Takes in an object that plugins read, new or changed. Returns the nodes of which it holds something, or did before.
    pub fn set_object(&mut self, object: Object) -> Vec<NodeName> {
        let (kind, name) = (object.kind(), object.name());
        if !Arc::make_mut(&mut self.world.objects).set(object.clone()) {
            return Vec::new();
        }
        let nodes = self.take_in(kind, &name, Some(object));
        self.changes.push(Change::Object(kind, name));
        nodes
    }

    /// Takes an object out. Returns the nodes of which it held something.
    pub fn remove_object(&mut self, kind: Kind, name: &Arc<str>) -> Vec<NodeName> {
        if !Arc::make_mut(&mut self.world.objects).remove(kind, name) {
            return Vec::new();
        }
        self.changes.push(Change::Object(kind, name.clone()));
        self.take_in(kind, name, None)
    }

    /// Folds anew what depends on an object; `None`: it is gone. Returns the nodes of which it holds something, or did before, or that serve
    /// other extended resources now.
    fn take_in(&mut self, kind: Kind, name: &Arc<str>, object: Option<Object>) -> Vec<NodeName> {
        let classes = self.world.resource_claims.extended().clone();
        let nodes: Vec<NodeName> = match kind {
            Kind::Reservation => {
                let reservation = match &object {
                    Some(Object::Reservation(_, reservation)) => Some(reservation),
                    _ => None,
                };
                self.reserved.set(name, reservation)
            }
            Kind::ResourceClaim | Kind::ResourceSlice | Kind::DeviceClass | Kind::DeviceTaintRule(_) => {
                self.change_claims(|claims| take_in(claims, kind, name, object));
                for node in Arc::make_mut(&mut self.world.resource_claims).take_republished() {
                    count_cards(self, &node);
                }
                // For which extended resources classes stand is part of every node's state.
                let others = kind == Kind::DeviceClass && classes != *self.world.resource_claims.extended();
                if others { self.world.nodes.names().cloned().collect() } else { Vec::new() }
            }
            _ => return Vec::new(),
        };
        self.refold(&nodes);
        nodes
    }

    /// Takes in that all objects of a kind are known.
    pub fn note_listed(&mut self, kind: Kind) {
        Arc::make_mut(&mut self.world.objects).note_listed(kind);
        self.note_claims_listed();
        self.changes.push(Change::Object(kind, Arc::default()));
    }

    /// Takes in that the API server does not serve this kind.
    pub fn note_unserved(&mut self, kind: Kind) {
        Arc::make_mut(&mut self.world.objects).note_unserved(kind);
        self.note_claims_listed();
        self.changes.push(Change::Object(kind, Arc::default()));
    }

    /// Takes in a quota, new or changed.
    pub fn set_quota(&mut self, quota: QuotaInfo) {
        Arc::make_mut(&mut self.world.quotas).set(quota, &mut self.ledger);
    }

    /// Takes a quota out.
    pub fn remove_quota(&mut self, key: &QuotaKey) {
        Arc::make_mut(&mut self.world.quotas).remove(key);
    }

    /// Folds anew what the pods of a namespace hold, if it is not what the ledger says; whether it was.
    pub(in crate::scheduling) fn check_quota(&mut self, namespace: &Arc<str>) -> Check {
        let before = self.world.quotas.version();
        Arc::make_mut(&mut self.world.quotas).refold([namespace], &mut self.ledger);
        if self.world.quotas.version() == before { Check::Right } else { Check::Wrong }
    }
}
