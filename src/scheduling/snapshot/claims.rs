//! What claims of devices hold, as the snapshot has it.

use std::{collections::BTreeSet, sync::Arc};

use super::Snapshot;
use crate::{
    object::resource_claim::AllocationResult,
    scheduling::{
        change::Change,
        node::{NodeInfo, NodeName},
        object::{Kind, Object},
        pod::Demand,
        resource_claims::{Freed, ResourceClaims},
    },
};

impl Snapshot {
    /// Takes in an object that decides on claims of devices; `None`: it is gone. Returns the nodes that serve other extended resources now.
    pub(super) fn see_resource(
        &mut self,
        kind: Kind,
        name: &Arc<str>,
        object: Option<Object>,
    ) -> Vec<NodeName> {
        let claims = Arc::make_mut(&mut self.resource_claims);
        let freed = match (kind, object) {
            (_, Some(Object::ResourceClaim(claim))) => claims.see(name, Some(claim)),
            (Kind::ResourceClaim, _) => claims.see(name, None),
            (_, Some(Object::ResourceSlice(slice))) => {
                claims.set_slice(slice);
                Freed::Nothing
            }
            (Kind::ResourceSlice, _) => {
                claims.remove_slice(name);
                Freed::Nothing
            }
            (_, Some(Object::DeviceClass(class))) => {
                return self.change_classes(|claims| claims.set_class(&class));
            }
            _ => return self.change_classes(|claims| claims.remove_class(name)),
        };
        if freed == Freed::Some {
            self.changes.push(Change::DevicesFreed);
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

    /// Takes in a class. For which extended resources classes stand is part of every node's state.
    fn change_classes(&mut self, change: impl FnOnce(&mut ResourceClaims)) -> Vec<NodeName> {
        let before = self.resource_claims.extended().clone();
        change(Arc::make_mut(&mut self.resource_claims));
        if before == *self.resource_claims.extended() {
            return Vec::new();
        }
        let nodes: Vec<NodeName> = self.by_name.keys().cloned().collect();
        for node in &nodes {
            self.refold(node);
        }
        nodes
    }

    /// Folds anew what pods that are placed have of these claims.
    pub(super) fn fold_claims(&mut self, claims: impl IntoIterator<Item = Arc<str>>) {
        let names: BTreeSet<Arc<str>> = claims.into_iter().collect();
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
