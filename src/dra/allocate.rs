//! Chooses devices of one node for the claims of a pod.
//!
//! The search is complete: where devices can be given, some are. It takes requests in their order and devices in the order of pools.
//! Prioritized lists get, from the first request on, the earliest alternatives that can be had together; among the solutions with these
//! the best score wins (`score`). It is bounded by [`MOST_STEPS`]; upstream takes the first solution.

mod asked;
mod attempt;
mod likeness;
mod options;
mod result;
mod score;
mod search;
mod selected;
mod shortfall;
mod solution;
#[cfg(test)]
mod tests;
mod toll;

use super::{
    AllocationError, DevicePools, HeldDevices, TargetNode, WaitingClaim,
    device::PoolDevice,
    error::MOST_RESULTS,
    held::DeviceInUse,
    pool::{PoolState, VisiblePool},
};
use crate::object::{Amount, resource_claim::AllocationResult};

use std::ops::ControlFlow;

pub use asked::{AskedDevices, KnownKind, Taken, asked};
pub use likeness::describe;
use options::{AttemptDevices, DeviceOptions};
use search::AllocationSearch;
pub use selected::Selected;
pub use shortfall::{RequestShortfall, shortfall};
pub use toll::{GoOn, Toll};

/// How many devices the search may try before it gives up.
pub const MOST_STEPS: u64 = 200_000;

/// How many more it may try for a better score once it has found devices.
pub const MOST_STEPS_FOR_SCORE: u64 = 2_000;

/// What claims are given on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimAllocations {
    /// One for each claim, in their order.
    pub results: Vec<AllocationResult>,
    /// For each claim and each of its requests, which alternative was taken, from 0.
    pub alternatives: Vec<Vec<usize>>,
    /// Devices that were left out since a selector has no value for them.
    pub left_out: Vec<AllocationError>,
}

/// A device that could be given.
#[derive(Clone, Copy, Debug)]
struct CandidateDevice<'a> {
    device: &'a PoolDevice,
    /// The place of its pool.
    pool: usize,
    /// Whether the node's kubelet lacks a feature that the device needs.
    featureless: bool,
    /// What is in use of it; `None`: nothing.
    held: Option<&'a DeviceInUse>,
    /// Whether a claim holds something of it: then it has taken its counters.
    is_claimed: bool,
    /// How many more shares of it can be given; `None`: as many as its capacities allow.
    shares_left: Option<u32>,
}

impl CandidateDevice<'_> {
    /// How much others than the attempt have taken of a capacity.
    fn consumed(&self, capacity: &str) -> Amount {
        self.held.and_then(|held| held.consumed.get(capacity)).copied().unwrap_or_default()
    }
}

/// Devices for all of the claims; `None`: the node has none that would do. Claims that are allocated already must not be among them:
/// what they hold is part of `held`.
///
/// A selector without a value for a device leaves out that device; it is an error where nothing else is found, and where a request
/// asks for all devices. Upstream ends the attempt with an error in every case.
pub fn allocate(
    claims: &[&WaitingClaim],
    node: TargetNode<'_>,
    inventory: &DevicePools,
    held: &HeldDevices,
) -> Result<Option<ClaimAllocations>, AllocationError> {
    let mut go_on = |_: Toll| ControlFlow::Continue(());
    allocate_again(claims, node, (inventory, held), &mut Selected::default(), &mut go_on)
}

/// As [`allocate`], with what an earlier attempt for claims that ask for the same by the same classes has found out about the node's
/// devices. `go_on` is asked before what may take long; when it says no, devices that the earlier attempt has found are given if they still can
/// be, and otherwise the attempt ends with [`AllocationError::Interrupted`].
pub fn allocate_again(
    claims: &[&WaitingClaim],
    node: TargetNode<'_>,
    (inventory, held): (&DevicePools, &HeldDevices),
    selected: &mut Selected,
    go_on: GoOn<'_>,
) -> Result<Option<ClaimAllocations>, AllocationError> {
    selected.start_over();
    let pools = inventory.pools(node);
    let candidates = candidates(&pools, node, held);
    let scene = AttemptDevices { pools: &pools, candidates: &candidates };
    let mut left_out = Vec::new();
    let mut options = Vec::with_capacity(claims.len());
    for claim in claims {
        options.push(options::of(claim, scene, selected, &mut left_out, go_on)?);
    }
    for (claim, options) in claims.iter().zip(&options) {
        bounded(claim, options)?;
    }
    let mut search = AllocationSearch::new(claims, &options, &candidates, &pools, held);
    let found = match search.run(go_on) {
        Err(AllocationError::Interrupted) => {
            let again = selected.earlier().and_then(|earlier| search.repeat(earlier));
            Some(again.ok_or(AllocationError::Interrupted)?)
        }
        found => found?,
    };
    match found {
        Some(solution) => {
            selected.keep(&solution, &candidates);
            let results = result::of(claims, &solution, &candidates, node);
            Ok(Some(ClaimAllocations { results, alternatives: solution.alternatives, left_out }))
        }
        None => search
            .refusal()
            .or_else(|| left_out.into_iter().next())
            .or_else(|| invalid(&pools))
            .map_or(Ok(None), Err),
    }
}

/// The devices of pools that can be used, in the order in which they are tried, and what is in use of them.
fn candidates<'a>(
    pools: &[VisiblePool<'a>],
    node: TargetNode<'_>,
    held: &'a HeldDevices,
) -> Vec<CandidateDevice<'a>> {
    let mut candidates = Vec::with_capacity(pools.iter().map(|pool| pool.devices.len()).sum());
    for (at, pool) in pools.iter().enumerate().filter(|(_, pool)| pool.state == PoolState::Usable) {
        // One search among all devices that are in use, and not one for each device.
        let in_use: Vec<_> = held.of_pool(pool.id).collect();
        candidates.extend(pool.devices.iter().map(|device| {
            let found = in_use.binary_search_by(|(id, _)| id.device.cmp(&device.id.device));
            CandidateDevice {
                device,
                pool: at,
                featureless: !device.nodes.skips.is_empty() && !node.skips_operations(),
                held: found.ok().map(|place| in_use[place].1),
                is_claimed: found.is_ok() && !held.is_unclaimed(&device.id),
                shares_left: held.shares_left(&device.id),
            }
        }));
    }
    candidates
}

/// Refuses a claim that can't be served with as many devices as a claim may have.
fn bounded(claim: &WaitingClaim, options: &[Vec<DeviceOptions>]) -> Result<(), AllocationError> {
    let fewest = |alternatives: &Vec<DeviceOptions>| {
        alternatives.iter().map(|options| options.count).min().unwrap_or(0)
    };
    let count = options.iter().map(fewest).fold(0, usize::saturating_add);
    if count > MOST_RESULTS {
        return Err(AllocationError::TooManyDevices { claim: claim.name.clone(), count });
    }
    Ok(())
}

fn invalid(pools: &[VisiblePool<'_>]) -> Option<AllocationError> {
    pools.iter().find_map(|pool| match &pool.state {
        PoolState::Invalid(reason) => {
            Some(AllocationError::InvalidPools(format!("{}: {reason}", pool.name())))
        }
        _ => None,
    })
}
