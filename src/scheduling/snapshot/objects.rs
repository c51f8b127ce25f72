//! What the snapshot takes in beside nodes, charges and nominations: quotas, and other objects that plugins read.

use std::{collections::BTreeSet, sync::Arc};

use super::{Check, Snapshot};
use crate::object::resource_claim::AllocationResult;
use crate::scheduling::{
    change::Change,
    footprint::Footprint,
    object::{Kind, Object},
    quota::{QuotaInfo, QuotaKey},
    resource_claims::Freed,
};

impl Snapshot {
    /// Takes in an object that plugins read, new or changed.
    pub fn set_object(&mut self, object: Object) {
        let (kind, name) = (object.kind(), object.name());
        if Arc::make_mut(&mut self.objects).set(object.clone()) {
            self.see_resource(kind, &name, Some(object));
            self.changes.push(Change::Object(kind, name));
        }
    }

    /// Takes an object out.
    pub fn remove_object(&mut self, kind: Kind, name: &Arc<str>) {
        if Arc::make_mut(&mut self.objects).remove(kind, name) {
            self.see_resource(kind, name, None);
            self.changes.push(Change::Object(kind, name.clone()));
        }
    }

    /// Takes in an object that decides on claims of devices; `None`: it is gone.
    fn see_resource(&mut self, kind: Kind, name: &Arc<str>, object: Option<Object>) {
        if !Kind::DEVICE_CLAIMS.contains(&kind) {
            return;
        }
        let claims = Arc::make_mut(&mut self.resource_claims);
        let freed = match (kind, object) {
            (_, Some(Object::ResourceClaim(claim))) => claims.see(name, Some(claim)),
            (_, Some(Object::ResourceSlice(slice))) => claims.set_slice(slice),
            (_, Some(Object::DeviceClass(class))) => claims.set_class(&class),
            (Kind::ResourceClaim, _) => claims.see(name, None),
            (Kind::ResourceSlice, _) => claims.remove_slice(name),
            _ => claims.remove_class(name),
        };
        if freed == Freed::Some {
            self.changes.push(Change::DevicesFreed);
        }
    }

    /// Folds anew what pods that are placed have of the claims that these pods use.
    pub(super) fn fold_claims<'a>(&mut self, pods: impl IntoIterator<Item = &'a Arc<Footprint>>) {
        let names: BTreeSet<Arc<str>> = pods.into_iter().flat_map(|pod| pod.claims_of_devices()).collect();
        for name in names {
            let charge = self.ledger.claim_charge(&name);
            if Arc::make_mut(&mut self.resource_claims).charge(&name, charge) == Freed::Some {
                self.changes.push(Change::DevicesFreed);
            }
        }
    }

    /// Takes in what a write that may still arrive gives a claim of devices; `None`: none may any more.
    pub(in crate::scheduling) fn linger(
        &mut self,
        claim: &Arc<str>,
        allocation: Option<Arc<AllocationResult>>,
    ) {
        if Arc::make_mut(&mut self.resource_claims).linger(claim, allocation) == Freed::Some {
            self.changes.push(Change::DevicesFreed);
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
