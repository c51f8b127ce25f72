//! What the devices of a pod's claims take of the node's own resources (KEP-5517): whether the node has as much, and what the pod's status is to say.
//!
//! The devices are chosen before: it must not look for others that take less, as kube-scheduler does not.
//! Source: v1.37 `pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go`.

use std::{collections::BTreeSet, sync::Arc};

use smallvec::smallvec;

use super::{found::TakenByEach, rejection::ClaimRejection};
use crate::{
    dra::{AllocationError, DevicePools, NodeResourcesTaken},
    object::{UnreadableQuantity, pod::NodeAllocatableClaimStatus, resource_claim::AllocationResult},
    scheduling::{
        model::{
            node_resources::{requested, say_the_same, status_of},
            pod::{Ask, Demand},
            prebind_step::{ClaimChoice, NodeResourcesChoice},
            resources::ResourceAmounts,
        },
        plugin::contract::Reasons,
        world::node_state::NodeState,
    },
};

/// What the claims of one pod take of a node, as far as that is known whichever node it is.
#[derive(Debug)]
pub(super) struct ClaimedNodeResources {
    /// By claim, the entries by which the pod uses it.
    entries: Vec<(Arc<str>, Vec<Arc<str>>)>,
    /// What the claims take that hold devices already.
    held: Vec<(Arc<str>, NodeResourcesTaken)>,
    /// What the pod's status says so far.
    stated: Arc<[NodeAllocatableClaimStatus]>,
}

/// What claims take that are given these devices.
pub(super) fn taken_by_each(
    given: &[ClaimChoice],
    pools: &DevicePools,
) -> Result<TakenByEach, ClaimRejection> {
    if !pools.take_of_nodes() {
        return Ok(TakenByEach::default());
    }
    let taken = given.iter().map(|choice| match &choice.allocation {
        Some(allocation) => taken(allocation, pools),
        None => Ok(NodeResourcesTaken::default()),
    });
    taken.collect()
}

fn taken(allocation: &AllocationResult, pools: &DevicePools) -> Result<NodeResourcesTaken, ClaimRejection> {
    NodeResourcesTaken::of(allocation, pools).map_err(|error| ClaimRejection::Undecidable(Arc::new(error)))
}

/// The claim that serves extended resources has no devices that take of the node: the API has no place in the pod's status for what they take.
pub(super) fn refuse_extended(
    allocation: Option<&AllocationResult>,
    pools: &DevicePools,
) -> Result<(), ClaimRejection> {
    let taking = allocation.and_then(|allocation| NodeResourcesTaken::first_taking(allocation, pools));
    taking.map_or(Ok(()), |device| {
        let field = "nodeAllocatableResources, for extended resources,";
        let error = AllocationError::UnservedDevice { device: device.into(), field };
        Err(ClaimRejection::Undecidable(Arc::new(error)))
    })
}

impl ClaimedNodeResources {
    /// No claim is known yet.
    pub(super) fn of(demand: &Demand) -> Self {
        Self { entries: Vec::new(), held: Vec::new(), stated: demand.taken.clone() }
    }

    /// The pod uses this claim by an entry.
    pub(super) fn add_use(&mut self, claim: &Arc<str>, entry: &Arc<str>) {
        match self.entries.iter_mut().find(|(known, _)| known == claim) {
            Some((_, entries)) => entries.push(entry.clone()),
            None => self.entries.push((claim.clone(), vec![entry.clone()])),
        }
    }

    /// The claim holds these devices already.
    pub(super) fn add_held(
        &mut self,
        claim: &Arc<str>,
        allocation: &AllocationResult,
        pools: &DevicePools,
    ) -> Result<(), ClaimRejection> {
        let taken = taken(allocation, pools)?;
        if !taken.is_nothing() && self.held.iter().all(|(known, _)| known != claim) {
            self.held.push((claim.clone(), taken));
        }
        Ok(())
    }

    /// Fails on a node that has less than the pod takes with these devices for its other claims.
    pub(super) fn test<'t>(
        &'t self,
        (ask, node): (&Ask, &NodeState),
        given: impl Iterator<Item = (&'t str, &'t NodeResourcesTaken)>,
    ) -> Result<(), Reasons<ClaimRejection>> {
        self.taken_on((ask, node), given).map(drop)
    }

    /// What the pod's status is to say once the pod is placed on the node with these devices for its other claims; `None`: what it says already.
    pub(super) fn choose<'t>(
        &'t self,
        (ask, node): (&Ask, &NodeState),
        given: impl Iterator<Item = (&'t str, &'t NodeResourcesTaken)>,
    ) -> Result<Option<NodeResourcesChoice>, Reasons<ClaimRejection>> {
        let (statuses, requested) = self.taken_on((ask, node), given)?;
        let first = statuses.first().or_else(|| self.stated.first());
        let changed = first.filter(|_| !say_the_same(&statuses, &self.stated));
        let claim = changed.map(|status| status.resource_claim_name.as_str().into());
        Ok(claim.map(|claim| NodeResourcesChoice { claim, statuses: statuses.into(), requested }))
    }

    fn taken_on<'t>(
        &'t self,
        (ask, node): (&Ask, &NodeState),
        given: impl Iterator<Item = (&'t str, &'t NodeResourcesTaken)>,
    ) -> Result<(Vec<NodeAllocatableClaimStatus>, Arc<ResourceAmounts>), Reasons<ClaimRejection>> {
        let held = self.held.iter().map(|(claim, taken)| (&**claim, taken));
        let statuses = held.chain(given).filter_map(|(claim, taken)| self.status(claim, taken, ask));
        let mut statuses: Vec<_> = statuses.collect();
        if statuses.is_empty() {
            return Ok((statuses, ask.resources.clone()));
        }
        statuses.sort_by(|one, other| one.resource_claim_name.cmp(&other.resource_claim_name));
        let unreadable = |error: (String, UnreadableQuantity)| {
            let claim = statuses.first().map(|status| status.resource_claim_name.as_str().into());
            let (resource, error) = error;
            let reason = format!("{resource}: {error}").into();
            smallvec![ClaimRejection::UnreadableAmount { claim: claim.unwrap_or_default(), reason }]
        };
        let requested = requested(ask, &statuses).map_err(unreadable)?;
        let exceeded = ask.constraints.declared.as_ref().map(|declared| declared.exceeded(&statuses));
        if let Some((resource, bound)) = exceeded.transpose().map_err(unreadable)?.flatten() {
            return Err(smallvec![ClaimRejection::BeyondWholePod {
                resource: resource.as_str().into(),
                bound
            }]);
        }
        let short = short(node, &requested, &statuses);
        if short.is_empty() { Ok((statuses, requested)) } else { Err(short) }
    }

    fn status(
        &self,
        claim: &str,
        taken: &NodeResourcesTaken,
        ask: &Ask,
    ) -> Option<NodeAllocatableClaimStatus> {
        let entries = self.entries.iter().find(|(known, _)| **known == *claim);
        let entries: Vec<&str> =
            entries.into_iter().flat_map(|(_, entries)| entries).map(|entry| &**entry).collect();
        let containers = ask.constraints.declared.iter().flat_map(|declared| declared.users(&entries));
        status_of(claim, taken, containers)
    }
}

/// Each resource that claims take, and of which the node has less than the pod requests with them.
fn short(
    node: &NodeState,
    requested: &ResourceAmounts,
    statuses: &[NodeAllocatableClaimStatus],
) -> Reasons<ClaimRejection> {
    let mapped = statuses.iter().flat_map(|status| &status.mapping).map(|mapped| mapped.name.as_str());
    let besides = statuses.iter().flat_map(|status| &status.overhead).map(|besides| besides.name.as_str());
    let names: BTreeSet<&str> = mapped.chain(besides).collect();
    let insufficient = names.into_iter().filter_map(|name| {
        let (requested, capacity) = (requested.get(name), node.info.allocatable.get(name));
        let free = capacity.saturating_sub(node.requested.get(name));
        (requested > 0 && requested > free).then(|| ClaimRejection::Insufficient {
            resource: name.into(),
            requested,
            free,
            capacity,
        })
    });
    insufficient.collect()
}
