//! What claims of devices hold, as the snapshot has it.

use std::{collections::BTreeSet, sync::Arc};

use super::Snapshot;
use crate::{
    object::resource_claim::AllocationResult,
    scheduling::{
        change::Change,
        footprint::Footprint,
        object::{Kind, Object},
        resource_claims::Freed,
    },
};

impl Snapshot {
    /// Takes in an object that decides on claims of devices; `None`: it is gone.
    pub(super) fn see_resource(&mut self, kind: Kind, name: &Arc<str>, object: Option<Object>) {
        let claims = Arc::make_mut(&mut self.resource_claims);
        let freed = match (kind, object) {
            (_, Some(Object::ResourceClaim(claim))) => claims.see(name, Some(claim)),
            (Kind::ResourceClaim, _) => claims.see(name, None),
            (_, Some(Object::ResourceSlice(slice))) => return claims.set_slice(slice),
            (Kind::ResourceSlice, _) => return claims.remove_slice(name),
            (_, Some(Object::DeviceClass(class))) => return claims.set_class(&class),
            _ => return claims.remove_class(name),
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
}
