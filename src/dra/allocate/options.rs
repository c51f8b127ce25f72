//! Which devices would do for a request, whatever else is chosen.

use std::{collections::BTreeMap, sync::Arc};

use super::{CandidateDevice, selected::Selected, toll::GoOn};
use crate::dra::{
    AllocationError, WaitingClaim,
    claim::{Alternative, CountMode},
    device::{DerivedValues, PoolDevice},
    pool::{PoolState, VisiblePool},
};
use crate::object::Amount;

/// The devices for one alternative of a request.
#[derive(Clone, Debug)]
pub(super) struct DeviceOptions {
    /// Places among the candidates. Where all devices are asked for, these are all.
    pub(super) devices: Vec<usize>,
    /// The attributes that the alternative computes of each of them, where it computes some.
    pub(super) derived: BTreeMap<usize, Arc<DerivedValues>>,
    /// How many are needed.
    pub(super) count: usize,
    /// Whether exactly these are needed.
    pub(super) all: bool,
}

/// The devices that an attempt is about.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttemptDevices<'a> {
    pub(super) pools: &'a [VisiblePool<'a>],
    pub(super) candidates: &'a [CandidateDevice<'a>],
}

/// The options of each alternative of each request of a claim.
pub(super) fn of(
    claim: &WaitingClaim,
    scene: AttemptDevices<'_>,
    selected: &mut Selected,
    left_out: &mut Vec<AllocationError>,
    go_on: GoOn<'_>,
) -> Result<Vec<Vec<DeviceOptions>>, AllocationError> {
    let mut requests = Vec::with_capacity(claim.requests.len());
    for request in &claim.requests {
        let alternatives = request.alternatives.iter().map(|alternative| {
            selected.turn_to_next();
            match alternative.mode {
                CountMode::Exactly(count) => counted(alternative, (count, scene), selected, left_out, go_on),
                CountMode::All => all(claim, alternative, scene, selected, go_on),
            }
        });
        requests.push(alternatives.collect::<Result<_, _>>()?);
    }
    Ok(requests)
}

/// Every device that could be one of so many.
fn counted(
    alternative: &Alternative,
    (count, scene): (usize, AttemptDevices<'_>),
    selected: &mut Selected,
    left_out: &mut Vec<AllocationError>,
    go_on: GoOn<'_>,
) -> Result<DeviceOptions, AllocationError> {
    let (mut devices, mut derived) = (Vec::new(), BTreeMap::new());
    for (at, candidate) in scene.candidates.iter().enumerate() {
        let device = candidate.device;
        let admits = selected.admits(at, alternative, device, go_on);
        let admits =
            admits.map(|admits| admits && fits(alternative, candidate) && is_free(alternative, candidate));
        let values = match admits {
            Ok(true) => selected.derived(at, alternative, device, go_on).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        match values {
            Ok(Some(values)) => {
                devices.push(at);
                derived.extend(values.map(|values| (at, values)));
            }
            Ok(None) => {}
            Err(AllocationError::Interrupted) => return Err(AllocationError::Interrupted),
            Err(error) if left_out.contains(&error) => {}
            Err(error) => left_out.push(error),
        }
    }
    Ok(DeviceOptions { devices, derived, count, all: false })
}

/// All devices that the selectors admit and that have the capacity, in use or not.
fn all(
    claim: &WaitingClaim,
    alternative: &Alternative,
    scene: AttemptDevices<'_>,
    selected: &mut Selected,
    go_on: GoOn<'_>,
) -> Result<DeviceOptions, AllocationError> {
    let unsettled = scene.pools.iter().find_map(|pool| match &pool.state {
        PoolState::Usable => None,
        PoolState::Incomplete => Some((pool, "being updated".to_owned())),
        PoolState::Invalid(reason) => Some((pool, format!("invalid: {reason}"))),
    });
    if let Some((pool, state)) = unsettled {
        let (claim, request) = (claim.name.clone(), alternative.name.clone());
        return Err(AllocationError::UnsettledPool { claim, request, pool: pool.name(), state });
    }
    let (mut devices, mut derived) = (Vec::new(), BTreeMap::new());
    for (at, candidate) in scene.candidates.iter().enumerate() {
        let device = candidate.device;
        if selected.admits(at, alternative, device, go_on)? && fits(alternative, candidate) {
            devices.push(at);
            derived.extend(selected.derived(at, alternative, device, go_on)?.map(|values| (at, values)));
        }
    }
    Ok(DeviceOptions { count: devices.len(), devices, derived, all: true })
}

/// Whether the device has each capacity that is asked for, in amounts that its policies allow and that are left. A device that is
/// not shared is given as a whole, and must have as much all the same.
fn fits(alternative: &Alternative, candidate: &CandidateDevice<'_>) -> bool {
    fits_beside(alternative, candidate.device, |name| candidate.consumed(name))
}

/// As [`fits`], with how much others have taken of each capacity.
pub(super) fn fits_beside(
    alternative: &Alternative,
    device: &PoolDevice,
    consumed: impl Fn(&str) -> Amount,
) -> bool {
    let exists = alternative.capacity.keys().all(|name| device.capacity.contains_key(name));
    exists
        && device.capacity.iter().all(|(name, capacity)| {
            let taken = capacity.taken(alternative.capacity.get(name)).amount;
            !capacity.refuses(taken) && consumed(name).plus(taken) <= capacity.value.amount
        })
}

/// Whether the request may have the device: the node can use it, the request tolerates the taints, and nothing that has the device keeps it from others.
pub(super) fn is_free(alternative: &Alternative, candidate: &CandidateDevice<'_>) -> bool {
    let CandidateDevice { device, featureless, held, .. } = *candidate;
    let in_use = held.is_some_and(|held| held.whole || !device.shareable);
    !featureless && !device.taints.keep_away(&alternative.tolerations) && (alternative.is_admin() || !in_use)
}
