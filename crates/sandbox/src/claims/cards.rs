//! Cards that are given twice: through a claim of a device, and through the record of a device plugin or of koordlet.
//!
//! It must not change anything.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{Device, DeviceRequestAllocationResult, ResourceClaim, ResourceSlice};
use kube::ResourceExt as _;
use serde_json::Value;

use super::allocation::results;
use crate::{agent::share::decode, quantity::nano};

/// Where HAMi's plugin finds what a pod was given.
const HAMI: &str = "hami.io/vgpu-devices-allocated";

/// Where koordlet does.
const KOORDINATOR: &str = "scheduling.koordinator.sh/device-allocated";

/// Billionths of a MiB.
const NANO_MIB: i128 = (1 << 20) * 1_000_000_000;

/// What is held of one card: memory in billionths of a byte, compute in billionths of a percent.
#[derive(Clone, Debug, Default)]
struct Held {
    memory: i128,
    cores: i128,
    whole: bool,
    holders: Vec<String>,
}

/// Cards of which pods and claims together hold more than there is, where both hold some.
pub(super) fn given_twice(pods: &[Pod], claims: &[ResourceClaim], slices: &[ResourceSlice]) -> Vec<String> {
    let mut faults = Vec::new();
    for slice in slices {
        let Some(node) = slice.spec.node_name.as_deref() else { continue };
        let by_pods = held_by_pods(pods, node);
        for device in slice.spec.devices.iter().flatten() {
            let Some(card) = hardware(device) else { continue };
            let Some(pods) = by_pods.get(card) else { continue };
            let claims = held_by_claims(claims, slice, device);
            if claims.holders.is_empty() || fits(device, pods, &claims) {
                continue;
            }
            let (pods, claims) = (pods.holders.join(", "), claims.holders.join(", "));
            faults.push(format!(
                "card {card} of node {node} is given twice: to pods {pods} and claims {claims}"
            ));
        }
    }
    faults
}

/// The card that a device is, or is a part of.
fn hardware(device: &Device) -> Option<&str> {
    let attributes = device.attributes.as_ref()?;
    ["parentUUID", "uuid"].iter().find_map(|name| attributes.get(*name)?.string.as_deref())
}

fn fits(device: &Device, pods: &Held, claims: &Held) -> bool {
    let capacity = device.capacity.iter().flatten().find(|(name, _)| *name == "memory");
    let memory = capacity.and_then(|(_, capacity)| nano(&capacity.value.0)).unwrap_or(0);
    !claims.whole && pods.memory + claims.memory <= memory && pods.cores + claims.cores <= 100_000_000_000
}

fn held_by_claims(claims: &[ResourceClaim], slice: &ResourceSlice, device: &Device) -> Held {
    let mut held = Held::default();
    let is_it = |result: &DeviceRequestAllocationResult| {
        let pool = (&result.driver, &result.pool) == (&slice.spec.driver, &slice.spec.pool.name);
        pool && result.device == device.name && result.admin_access != Some(true)
    };
    for claim in claims {
        for result in results(claim).into_iter().filter(is_it) {
            let consumed = result.consumed_capacity.unwrap_or_default();
            let amount = |name: &str| consumed.get(name).and_then(|amount| nano(&amount.0)).unwrap_or(0);
            held.memory += amount("memory");
            held.cores += amount("cores");
            held.whole |= result.share_id.is_none();
            held.holders.push(claim.name_any());
        }
    }
    held
}

/// What the live pods of a node hold of each card by their records.
fn held_by_pods(pods: &[Pod], node: &str) -> BTreeMap<String, Held> {
    let mut cards: BTreeMap<String, Held> = BTreeMap::new();
    for pod in pods {
        let there = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if !there || matches!(phase, Some("Succeeded" | "Failed")) {
            continue;
        }
        for (card, memory, cores) in hami(pod).into_iter().chain(koordinator(pod)) {
            let held = cards.entry(card).or_default();
            held.memory += memory;
            held.cores += cores;
            held.holders.push(pod.name_any());
        }
    }
    cards
}

fn hami(pod: &Pod) -> Vec<(String, i128, i128)> {
    let segments = pod.annotations().get(HAMI).and_then(|text| decode(text).ok()).unwrap_or_default();
    let held = segments.into_iter().flatten().map(|share| {
        let (memory, cores) = (i128::from(share.memory) * NANO_MIB, i128::from(share.cores) * 1_000_000_000);
        (share.card().to_owned(), memory, cores)
    });
    held.collect()
}

fn koordinator(pod: &Pod) -> Vec<(String, i128, i128)> {
    let text = pod.annotations().get(KOORDINATOR);
    let record: Value = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let held = record["gpu"].as_array().into_iter().flatten().filter_map(|gpu| {
        let amount = |name: &str| gpu["resources"][name].as_str().and_then(nano).unwrap_or(0);
        let card = gpu["id"].as_str()?.to_owned();
        Some((card, amount("koordinator.sh/gpu-memory"), amount("koordinator.sh/gpu-core")))
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::claims::driver::{Driver, Gpu};

    fn slices(driver: Driver) -> [ResourceSlice; 1] {
        let card = Gpu { uuid: "GPU-a".to_owned(), memory: 16_000 << 20, root: "pci0".to_owned() };
        [driver.slice("n1", &[card], 1)]
    }

    fn pod(annotations: &Value, phase: &str) -> [Pod; 1] {
        let metadata = json!({"name": "p", "annotations": annotations});
        let pod = json!({"metadata": metadata, "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": phase}});
        [serde_json::from_value(pod).unwrap()]
    }

    fn claim(device: &str, driver: Driver, share: Option<&str>) -> [ResourceClaim; 1] {
        let mut result = json!({"request": "gpu", "driver": driver.name(), "pool": "n1", "device": device});
        if let Some(memory) = share {
            result["shareID"] = json!("id");
            result["consumedCapacity"] = json!({"memory": memory, "cores": "50"});
        }
        let status = json!({"allocation": {"devices": {"results": [result]}}});
        let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {}}, "status": status});
        [serde_json::from_value(claim).unwrap()]
    }

    #[test]
    fn a_card_that_pods_and_claims_hold_is_noted_where_it_has_too_little() {
        let hami = json!({HAMI: "GPU-a,NVIDIA,8000,50:;"});
        let words = ["card GPU-a of node n1 is given twice: to pods p and claims c"];
        let exclusive = claim("gpu-0", Driver::Nvidia, None);
        assert_eq!(given_twice(&pod(&hami, "Running"), &exclusive, &slices(Driver::Nvidia)), words);
        assert_eq!(given_twice(&pod(&hami, "Succeeded"), &exclusive, &slices(Driver::Nvidia)), [""; 0]);
        for (memory, faults) in [("8000Mi", &[][..]), ("8001Mi", &words)] {
            let share = claim("hami-gpu-0", Driver::Hami, Some(memory));
            assert_eq!(given_twice(&pod(&hami, "Running"), &share, &slices(Driver::Hami)), faults);
        }
        let resources = json!({"koordinator.sh/gpu-memory": "1Gi", "koordinator.sh/gpu-core": "51"});
        let record = json!({"gpu": [{"minor": 0, "id": "GPU-a", "resources": resources}]});
        let share = claim("hami-gpu-0", Driver::Hami, Some("1Mi"));
        let pods = pod(&json!({KOORDINATOR: record.to_string()}), "Running");
        assert_eq!(given_twice(&pods, &share, &slices(Driver::Hami)), words);
    }
}
