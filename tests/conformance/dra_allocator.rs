//! Which devices kube-scheduler's structured allocator gives claims, and where its defects had it fail.

use std::collections::BTreeMap;

use berth::{
    dra::{
        CompiledClasses, DevicePools, HeldDevices, TargetNode, WaitingClaim, allocate, device::DeviceId,
        held::DeviceInUse,
    },
    object::{DeviceClass, Labels, Quantity, ResourceClaim, ResourceSlice, resource_claim::AllocationResult},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::table::{Case, Table, Verdict};

const GATE: &str =
    "a feature gate is off: then the API server does not store the field, so Berth has no gates";

#[test]
fn dra_allocator() {
    let table = Table {
        file: "dra_allocator.json",
        differences: &[
            ("admin-access-disabled", GATE),
            ("binding-conditions-without-feature-gate", GATE),
            ("consumable-capacity-disabled-feature", GATE),
            ("consumable-capacity-disabled-feature-with-prioritized-list", GATE),
            ("list-attributes-disabled-match-constraint-with-lists", GATE),
            ("partitionable-devices-disabled-other-device-do-not-consume-counters", GATE),
            ("partitionable-devices-disabled-per-device-node-selection", GATE),
            ("prioritized-list-disabled", GATE),
            ("tainted-admin-access-disabled", GATE),
            ("tainted-all-devices-single-disabled", GATE),
            ("tainted-disabled", GATE),
            ("tainted-prioritized-list-disabled", GATE),
        ],
        not_served: &[],
    };
    table.check(judge);
}

#[test]
fn dra_allocator_regressions() {
    let table = Table { file: "dra_allocator_regressions.json", differences: &[], not_served: &[] };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let given = given(&case.input);
    if let Some(error) = case.expect["expect_error"].as_str() {
        return match given {
            Err(found) if found.contains(error) => Verdict::Equal,
            other => Verdict::Differs(format!("berth {other:?}, upstream an error with {error:?}")),
        };
    }
    let wanted: Vec<AllocationResult> = all(&case.expect["expect_allocations"]);
    Verdict::of(&given.map(comparable), &Ok(comparable(wanted)))
}

fn all<T: DeserializeOwned>(list: &Value) -> Vec<T> {
    list.as_array().into_iter().flatten().map(|one| serde_json::from_value(one.clone()).unwrap()).collect()
}

fn given(input: &Value) -> Result<Vec<AllocationResult>, String> {
    let (slices, classes): (Vec<ResourceSlice>, Vec<DeviceClass>) =
        (all(&input["slices"]), all(&input["classes"]));
    let classes = CompiledClasses::new(&classes);
    let claims: Vec<ResourceClaim> = all(&input["claims"]);
    let claims: Result<Vec<_>, _> = claims.iter().map(|claim| WaitingClaim::read(claim, &classes)).collect();
    let claims = claims.map_err(|error| error.to_string())?;
    let labels: Labels = serde_json::from_value(input["node"]["metadata"]["labels"].clone()).unwrap();
    let node = TargetNode::plain(input["node"]["metadata"]["name"].as_str().unwrap(), &labels);
    let claims: Vec<&WaitingClaim> = claims.iter().collect();
    let allocation = allocate(&claims, node, &DevicePools::new(&slices), &held(input));
    let allocation = allocation.map_err(|error| error.to_string())?;
    Ok(allocation.map(|allocation| allocation.results).unwrap_or_default())
}

fn held(input: &Value) -> HeldDevices {
    let mut by_id: BTreeMap<DeviceId, DeviceInUse> = BTreeMap::new();
    let id = |device: &Value| {
        DeviceId::new(
            device["driver"].as_str().unwrap(),
            device["pool"].as_str().unwrap(),
            device["device"].as_str().unwrap(),
        )
    };
    for device in input["allocated_devices"].as_array().into_iter().flatten() {
        by_id.entry(id(device)).or_default().whole = true;
    }
    for device in input["allocated_shared_devices"].as_array().into_iter().flatten() {
        by_id.entry(id(device)).or_default();
    }
    for device in input["allocated_capacity"].as_array().into_iter().flatten() {
        let consumed = device["consumedCapacity"].as_object().unwrap();
        let consumed = consumed
            .iter()
            .map(|(name, amount)| (name.clone(), Quantity::from(amount.as_str().unwrap()).amount().unwrap()));
        by_id.entry(id(device)).or_default().consumed.extend(consumed);
    }
    let mut held = HeldDevices::default();
    for (id, one) in by_id {
        held.insert(id, one);
    }
    held
}

/// The order of devices, the spelling of quantities and the ids of shares make no difference.
fn comparable(mut allocations: Vec<AllocationResult>) -> Vec<AllocationResult> {
    for allocation in &mut allocations {
        for result in &mut allocation.devices.results {
            result.share_id = result.share_id.take().map(|_| "a share".to_owned());
            for quantity in result.consumed_capacity.values_mut() {
                *quantity = quantity.amount().unwrap().binary();
            }
        }
        let key = |result: &berth::object::resource_claim::AllocatedDevice| {
            [&result.request, &result.driver, &result.pool, &result.device].map(Clone::clone)
        };
        allocation.devices.results.sort_by_key(key);
    }
    allocations
}
