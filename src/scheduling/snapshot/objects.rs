//! What the snapshot takes in beside nodes, charges and nominations: quotas, and other objects that plugins read.

use std::sync::Arc;

use super::{Check, Snapshot};
use crate::scheduling::{
    change::Change,
    object::{Kind, Object},
    quota::{QuotaInfo, QuotaKey},
    resource_claims::ResourceClaims,
};

impl Snapshot {
    /// Takes in an object that plugins read, new or changed.
    pub fn set_object(&mut self, object: Object) {
        let (kind, name) = (object.kind(), object.name());
        if Arc::make_mut(&mut self.objects).set(object) {
            self.changes.push(Change::Object(kind, name));
        }
    }

    /// Serves claims of devices from now on, as they stand here.
    pub fn set_resource_claims(&mut self, claims: ResourceClaims) {
        Arc::make_mut(&mut self.objects).set_resource_claims(claims);
    }

    /// Changes what is known of claims of devices, where they are served.
    pub fn change_resource_claims(&mut self, change: impl FnOnce(&mut ResourceClaims)) {
        Arc::make_mut(&mut self.objects).change_resource_claims(change);
    }

    /// Takes an object out.
    pub fn remove_object(&mut self, kind: Kind, name: &Arc<str>) {
        if Arc::make_mut(&mut self.objects).remove(kind, name) {
            self.changes.push(Change::Object(kind, name.clone()));
        }
    }

    /// Takes in that all objects of a kind are known.
    pub fn note_listed(&mut self, kind: Kind) {
        Arc::make_mut(&mut self.objects).note_listed(kind);
        self.changes.push(Change::Object(kind, Arc::default()));
    }

    /// Takes in that the API server does not serve this kind.
    pub fn note_unserved(&mut self, kind: Kind) {
        Arc::make_mut(&mut self.objects).note_unserved(kind);
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
