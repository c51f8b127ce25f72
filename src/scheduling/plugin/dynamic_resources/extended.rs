//! The claim that serves extended resources of a pod: which one a node needs, and whether one that exists already will do.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go`. Upstream deletes a claim that an earlier
//! attempt has left; here it is taken up where it is what the node needs.

use std::{collections::BTreeSet, sync::Arc};

use super::{NodesLookedAt, rejection::ClaimRejection};
use crate::{
    dra::WaitingClaim,
    object::{Metadata, ResourceClaim, resource_claim::AllocationResult},
    scheduling::{
        model::{
            claim_use::FINALIZER,
            extended_resources::{
                ExtendedChoice, ExtendedClaim, ExtendedRequests, Served, StatedClaim, asks_for_same,
            },
            pod::Demand,
        },
        world::{World, node_state::NodeState, resource_claims::ResourceClaims},
    },
};

/// The claim that serves one set of a pod's extended resources.
#[derive(Debug)]
struct Variant {
    /// The resources, and the class of each.
    served: Vec<(String, String)>,
    claim: Arc<ExtendedClaim>,
    /// As the allocator reads it.
    read: Result<WaitingClaim, ClaimRejection>,
}

/// Extended resources of one pod, some of which nodes serve by claim.
#[derive(Debug)]
pub(super) struct PodExtended<'a> {
    requests: Arc<ExtendedRequests>,
    /// Resources of the dialects' own.
    own: &'a BTreeSet<String>,
    /// One for each set of resources that some node serves by claim.
    variants: Vec<Variant>,
    /// The claim that has the name of the pod's.
    existing: Option<&'a ResourceClaim>,
    pod: Arc<str>,
    /// What the pod's status says.
    status: Option<StatedClaim>,
}

impl<'a> PodExtended<'a> {
    /// `None`: no node serves any of the pod's resources by claim, and none was made for it before.
    pub(super) fn prepare(demand: &Demand, world: &'a World, nodes: NodesLookedAt<'_>) -> Option<Self> {
        let requests = demand.footprint.extended.clone()?;
        let known = world.resource_claims();
        let namespace = &*demand.footprint.namespace;
        let mut extended = Self {
            own: world.device_resources(),
            variants: Vec::new(),
            existing: known.claim(namespace, &requests.claim).map(|claim| &**claim),
            pod: demand.uid.clone(),
            status: demand.served.clone(),
            requests,
        };
        if extended.requests.may_be_served(known.extended(), extended.own) {
            match nodes {
                NodesLookedAt::All => {
                    for node in world.nodes.by_slot() {
                        extended.vary(node, namespace, known);
                    }
                }
                NodesLookedAt::One(Some(node)) => extended.vary(node, namespace, known),
                NodesLookedAt::One(None) => {}
            }
        }
        let is_needed =
            !extended.variants.is_empty() || extended.existing.is_some() || extended.status.is_some();
        is_needed.then_some(extended)
    }

    /// Takes in what the node serves by claim.
    fn vary(&mut self, node: &NodeState, namespace: &str, known: &ResourceClaims) {
        let served = self.requests.served_on(node, self.own);
        if served.is_empty() || self.variant(&served).is_some() {
            return;
        }
        let claim = Arc::new(self.requests.claim_for(&served));
        let named = Metadata {
            namespace: namespace.to_owned(),
            name: self.requests.claim.to_string(),
            ..Metadata::default()
        };
        let new = ResourceClaim { metadata: named, spec: claim.spec.clone(), ..ResourceClaim::default() };
        let read = known.read_new(&new).map_err(|error| ClaimRejection::Undecidable(Arc::new(error)));
        let served = served.into_iter().map(|(resource, class)| (resource.to_owned(), class.to_owned()));
        let variant = Variant { served: served.collect(), claim, read };
        self.variants.push(variant);
    }

    fn variant(&self, served: &[Served<'_>]) -> Option<&Variant> {
        let is_it = |variant: &&Variant| {
            let known = variant.served.iter().map(|(resource, class)| (resource.as_str(), class.as_str()));
            known.eq(served.iter().copied())
        };
        self.variants.iter().find(is_it)
    }

    /// The claim that the node needs; `None`: none.
    fn on(&self, node: &NodeState) -> Option<&Variant> {
        self.variant(&self.requests.served_on(node, self.own))
    }

    /// A text that is equal for pods for which the allocator finds the same; `None`: there is nothing to find.
    pub(super) fn asked(&self) -> Option<Arc<str>> {
        let is_open = self.held().is_none() && !self.variants.is_empty();
        is_open.then(|| format!("extended resources {}", self.requests.text()).into())
    }

    /// What the allocator has to find for it on the node; `None`: nothing.
    pub(super) fn sought(&self, node: &NodeState) -> Result<Option<&WaitingClaim>, ClaimRejection> {
        match self.on(node).filter(|_| self.held().is_none()) {
            Some(variant) => variant.read.as_ref().map(Some).map_err(Clone::clone),
            None => Ok(None),
        }
    }

    /// The devices of a claim that was made before.
    fn held(&self) -> Option<&'a AllocationResult> {
        self.existing?.status.allocation.as_ref()
    }

    fn is_own(&self, claim: &ResourceClaim) -> bool {
        claim.metadata.controller.as_ref().is_some_and(|owner| owner.uid() == &*self.pod)
    }

    /// Fails on a node that needs a claim where there is one already that is not what it needs, and on one that needs none where the pod's status
    /// names one for good.
    pub(super) fn test(&self, node: &NodeState) -> Result<(), ClaimRejection> {
        let Some(variant) = self.on(node) else {
            let lasting = self.status.as_ref().filter(|stated| stated.lasts);
            return lasting.map_or(Ok(()), |stated| {
                Err(ClaimRejection::Stated(stated.status.resource_claim_name.as_str().into()))
            });
        };
        let Some(existing) = self.existing else { return Ok(()) };
        let name = || Arc::from(existing.metadata.name.as_str());
        if !self.is_own(existing) {
            return Err(ClaimRejection::NotOwned { claim: name(), group: None });
        }
        if existing.metadata.deletion_timestamp.is_some() {
            return Err(ClaimRejection::Terminating(name()));
        }
        let is_usable = self.held().is_none_or(|held| node.target().can_use(held));
        if is_usable && asks_for_same(&existing.spec, &variant.claim.spec) {
            return Ok(());
        }
        Err(ClaimRejection::Stale)
    }

    /// What has to be written before the pod is bound to the node, where these devices were found for it; `None`: nothing.
    pub(super) fn choose(&self, node: &NodeState, found: Option<AllocationResult>) -> Option<ExtendedChoice> {
        let claim = self.requests.claim.clone();
        let Some(variant) = self.on(node) else {
            let left = self.existing.is_some_and(|claim| self.is_own(claim) && is_to_go(claim));
            return (left || self.status.is_some()).then_some(ExtendedChoice { claim, made: None });
        };
        let devices = found.or_else(|| self.held().cloned())?;
        let reserved = |existing: &ResourceClaim| {
            existing.status.allocation.is_some()
                && existing.status.reserved_for.iter().any(|user| *user.uid == *self.pod)
        };
        let stated = self.status.as_ref().map(|stated| &*stated.status);
        if stated == Some(&variant.claim.status(&claim)) && self.existing.is_some_and(reserved) {
            return None;
        }
        Some(ExtendedChoice { claim, made: Some((variant.claim.clone(), Arc::new(devices))) })
    }
}

/// Whether something is left to be written before the claim goes.
fn is_to_go(claim: &ResourceClaim) -> bool {
    let protected = claim.metadata.finalizers.iter().any(|finalizer| finalizer == FINALIZER);
    protected || claim.metadata.deletion_timestamp.is_none()
}
