//! What the snapshot takes in beside nodes, charges and nominations: quotas, and other objects that plugins read.

use std::sync::Arc;

use super::{Check, Snapshot};
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
        if !Arc::make_mut(&mut self.objects).set(object.clone()) {
            return Vec::new();
        }
        let nodes = self.take_in(kind, &name, Some(object));
        self.changes.push(Change::Object(kind, name));
        nodes
    }

    /// Takes an object out. Returns the nodes of which it held something.
    pub fn remove_object(&mut self, kind: Kind, name: &Arc<str>) -> Vec<NodeName> {
        if !Arc::make_mut(&mut self.objects).remove(kind, name) {
            return Vec::new();
        }
        self.changes.push(Change::Object(kind, name.clone()));
        self.take_in(kind, name, None)
    }

    /// Folds anew what depends on an object; `None`: it is gone. Returns the nodes of which it holds something, or did before.
    fn take_in(&mut self, kind: Kind, name: &Arc<str>, object: Option<Object>) -> Vec<NodeName> {
        match kind {
            Kind::Reservation => return self.set_reservation(name, object.as_ref()),
            Kind::ResourceClaim | Kind::ResourceSlice | Kind::DeviceClass => {
                return self.see_resource(kind, name, object);
            }
            _ => {}
        }
        Vec::new()
    }

    /// Takes in that all objects of a kind are known.
    pub fn note_listed(&mut self, kind: Kind) {
        Arc::make_mut(&mut self.objects).note_listed(kind);
        self.note_claims_listed();
        self.changes.push(Change::Object(kind, Arc::default()));
    }

    /// Takes in that the API server does not serve this kind.
    pub fn note_unserved(&mut self, kind: Kind) {
        Arc::make_mut(&mut self.objects).note_unserved(kind);
        self.note_claims_listed();
        self.changes.push(Change::Object(kind, Arc::default()));
    }

    /// Takes in a quota, new or changed.
    pub fn set_quota(&mut self, quota: QuotaInfo) {
        self.quotas.set(quota, &self.ledger);
    }

    /// Takes a quota out.
    pub fn remove_quota(&mut self, key: &QuotaKey) {
        self.quotas.remove(key);
    }

    /// Folds anew what the pods of a namespace hold, if it is not what the ledger says; whether it was.
    pub(in crate::scheduling) fn check_quota(&mut self, namespace: &Arc<str>) -> Check {
        let before = self.quotas.version();
        self.quotas.refold(namespace, &self.ledger);
        if self.quotas.version() == before { Check::Right } else { Check::Wrong }
    }
}
