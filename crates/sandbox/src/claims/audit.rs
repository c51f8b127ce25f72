//! What kubelet, drivers and the controller find on claims and pods that no scheduler may leave there.
//!
//! It must not change anything.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{
    Device, DeviceClass, DeviceRequestAllocationResult, ResourceClaim, ResourceClaimConsumerReference,
    ResourceSlice,
};
use kube::ResourceExt as _;

use super::allocation::{FINALIZER, results};
use crate::quantity::nano;

/// Pods that were bound although one of their claims can't be used on their node: kubelet does not start them. Claims must have been read
/// after the pods.
pub(super) fn pods(pods: &[Pod], claims: &[ResourceClaim], slices: &[ResourceSlice]) -> Vec<String> {
    let mut faults = Vec::new();
    for pod in pods {
        let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) else { continue };
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        if matches!(phase, Some("Succeeded" | "Failed")) || pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        for name in names(pod) {
            let own =
                |claim: &&ResourceClaim| claim.namespace() == pod.namespace() && claim.name_any() == name;
            let fault = match claims.iter().find(own) {
                Some(claim) => unusable(claim, pod, node, slices),
                None => Some("is not there".to_owned()),
            };
            faults.extend(fault.map(|fault| format!("pod {}: claim {name} {fault}", pod.name_any())));
        }
    }
    faults
}

fn names(pod: &Pod) -> Vec<String> {
    let entries = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten());
    let statuses: Vec<_> =
        pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten()).collect();
    let name = |entry: &k8s_openapi::api::core::v1::PodResourceClaim| {
        let made = statuses.iter().find(|status| status.name == entry.name);
        entry.resource_claim_name.clone().or_else(|| made?.resource_claim_name.clone())
    };
    let extended = pod.status.iter().filter_map(|status| status.extended_resource_claim_status.as_ref());
    entries.filter_map(name).chain(extended.map(|status| status.resource_claim_name.clone())).collect()
}

/// Whether a user of a claim is a PodGroup of Kubernetes.
pub(super) fn is_group(user: &ResourceClaimConsumerReference) -> bool {
    (user.api_group.as_deref(), user.resource.as_str()) == (Some("scheduling.k8s.io"), "podgroups")
}

/// Why kubelet does not start the pod with the claim.
fn unusable(claim: &ResourceClaim, pod: &Pod, node: &str, slices: &[ResourceSlice]) -> Option<String> {
    let status = claim.status.clone().unwrap_or_default();
    let mut users = status.reserved_for.iter().flatten();
    let group = pod.spec.as_ref().and_then(|spec| spec.scheduling_group.as_ref()?.pod_group_name.as_ref());
    // Kubelet knows its PodGroup by name only (k8s.io/dynamic-resource-allocation v0.37 `resourceclaim/resourceclaim.go`, `IsReservedForPod`).
    let is_user = |user: &ResourceClaimConsumerReference| {
        Some(&user.uid) == pod.metadata.uid.as_ref() || (is_group(user) && Some(&user.name) == group)
    };
    if !users.any(is_user) {
        return Some("is not reserved for it".to_owned());
    }
    if status.allocation.is_none() {
        return Some("has no devices".to_owned());
    }
    results(claim).iter().find_map(|result| {
        let slice = slices.iter().find(|slice| is_published(slice, result));
        let other = slice.and_then(|slice| slice.spec.node_name.as_deref()).filter(|of| *of != node)?;
        Some(format!("has device {} of node {other}", result.device))
    })
}

/// Extended resources of bound pods that nothing provides on their node: neither a device plugin nor a request of the claim that the pod's
/// status names. Kubelet starts such a pod without its devices.
pub(super) fn unmapped(
    pods: &[Pod],
    (nodes, classes): (&[Node], &[DeviceClass]),
    claims: &[ResourceClaim],
) -> Vec<String> {
    let mut faults = Vec::new();
    for pod in pods {
        let spec = pod.spec.as_ref();
        let on = spec.and_then(|spec| spec.node_name.as_deref());
        let Some(node) = nodes.iter().find(|node| Some(&*node.name_any()) == on) else { continue };
        let containers = spec
            .into_iter()
            .flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
        for container in containers {
            let requests =
                container.resources.iter().flat_map(|resources| resources.requests.iter().flatten());
            for (resource, _) in
                requests.filter(|(_, amount)| nano(&amount.0).is_some_and(|amount| amount > 0))
            {
                if stands_for(classes, resource)
                    && !is_provided(node, resource)
                    && !is_mapped(pod, (&container.name, resource), claims)
                {
                    let name = pod.name_any();
                    faults.push(format!(
                        "pod {name}: {resource} of container {} has no request of a claim",
                        container.name
                    ));
                }
            }
        }
    }
    faults
}

fn stands_for(classes: &[DeviceClass], resource: &str) -> bool {
    let mut specs = classes.iter().filter_map(|class| class.spec.as_ref());
    specs.any(|spec| spec.extended_resource_name.as_deref() == Some(resource))
}

fn is_provided(node: &Node, resource: &str) -> bool {
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let registered = node.annotations().contains_key("hami.io/node-nvidia-register");
    let amount = allocatable.and_then(|amounts| nano(&amounts.get(resource)?.0));
    registered || amount.is_some_and(|amount| amount > 0)
}

fn is_mapped(pod: &Pod, (container, resource): (&str, &str), claims: &[ResourceClaim]) -> bool {
    let status = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
    let Some(status) = status else { return false };
    let named = |claim: &&ResourceClaim| {
        claim.namespace() == pod.namespace() && claim.name_any() == status.resource_claim_name
    };
    let given: Vec<String> = claims
        .iter()
        .find(named)
        .map(results)
        .unwrap_or_default()
        .into_iter()
        .map(|result| result.request)
        .collect();
    let mut mappings = status.request_mappings.iter();
    mappings.any(|mapping| {
        (&*mapping.container_name, &*mapping.resource_name) == (container, resource)
            && given.contains(&mapping.request_name)
    })
}

/// Devices that more claims hold than may, and claims with devices that could be removed at any time.
pub(super) fn devices(claims: &[ResourceClaim], slices: &[ResourceSlice]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut holders: BTreeMap<(String, String, String), Vec<(String, DeviceRequestAllocationResult)>> =
        BTreeMap::new();
    for claim in claims.iter().filter(|claim| !results(claim).is_empty()) {
        let name = claim.name_any();
        if !claim.finalizers().iter().any(|finalizer| finalizer == FINALIZER) {
            faults.push(format!("claim {name} has devices and no finalizer"));
        }
        for result in results(claim).into_iter().filter(|result| result.admin_access != Some(true)) {
            let id = (result.driver.clone(), result.pool.clone(), result.device.clone());
            holders.entry(id).or_default().push((name.clone(), result));
        }
    }
    for ((_, pool, device), held) in &holders {
        let shared = held.iter().all(|(_, result)| result.share_id.is_some());
        let names: Vec<&str> = held.iter().map(|(name, _)| name.as_str()).collect();
        if held.len() > 1 && !shared {
            faults.push(format!("device {pool}/{device} is held by claims {}", names.join(", ")));
        }
        if let Some(capacity) = exceeded(held, slices) {
            faults.push(format!(
                "claims {} hold more {capacity} of {pool}/{device} than it has",
                names.join(", ")
            ));
        }
    }
    let given: BTreeSet<_> = holders.keys().map(|(driver, pool, device)| [driver, pool, device]).collect();
    faults.extend(counters(&given, slices));
    faults
}

/// The counters of pools from which these devices, each with its driver and pool, take more than there is.
fn counters(given: &BTreeSet<[&String; 3]>, slices: &[ResourceSlice]) -> Vec<String> {
    let mut taken: BTreeMap<[&String; 4], i128> = BTreeMap::new();
    for ResourceSlice { spec, .. } in slices {
        let is_given = |device: &&Device| given.contains(&[&spec.driver, &spec.pool.name, &device.name]);
        for device in spec.devices.iter().flatten().filter(is_given) {
            for of in device.consumes_counters.iter().flatten() {
                for (name, counter) in &of.counters {
                    let key = [&spec.driver, &spec.pool.name, &of.counter_set, name];
                    *taken.entry(key).or_default() += nano(&counter.value.0).unwrap_or_default();
                }
            }
        }
    }
    let there = slices.iter().flat_map(|ResourceSlice { spec, .. }| {
        let sets = spec.shared_counters.iter().flatten();
        let named =
            sets.flat_map(|set| set.counters.iter().map(|(name, counter)| (&set.name, name, counter)));
        named.map(|(set, name, counter)| ([&spec.driver, &spec.pool.name, set, name], counter))
    });
    let over = there.filter(|(key, counter)| {
        nano(&counter.value.0).is_none_or(|there| taken.get(key).is_some_and(|taken| *taken > there))
    });
    over.map(|([_, pool, set, name], _)| format!("more {name} of {pool}/{set} is taken than it counts"))
        .collect()
}

/// A capacity of a device of which more is held than there is.
fn exceeded(held: &[(String, DeviceRequestAllocationResult)], slices: &[ResourceSlice]) -> Option<String> {
    let (_, first) = held.first()?;
    let slice = slices.iter().find(|slice| is_published(slice, first))?;
    let device = slice.spec.devices.iter().flatten().find(|device| device.name == first.device)?;
    let capacity = device.capacity.iter().flatten();
    let over = |(name, capacity): &(&String, &k8s_openapi::api::resource::v1::DeviceCapacity)| {
        let consumed = held.iter().filter_map(|(_, result)| result.consumed_capacity.as_ref()?.get(*name));
        let sum: i128 = consumed.filter_map(|amount| nano(&amount.0)).sum();
        nano(&capacity.value.0).is_none_or(|there| sum > there)
    };
    capacity.into_iter().find(over).map(|(name, _)| name.clone())
}

fn is_published(slice: &ResourceSlice, result: &DeviceRequestAllocationResult) -> bool {
    let spec = &slice.spec;
    let named = spec.devices.iter().flatten().any(|device| device.name == result.device);
    named && (&spec.driver, &spec.pool.name) == (&result.driver, &result.pool)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn given(name: &str, device: &str) -> ResourceClaim {
        let result = json!({"request": "gpu", "driver": "d", "pool": "n1", "device": device});
        let claim = json!({"metadata": {"name": name, "finalizers": [FINALIZER]}, "spec": {},
            "status": {"allocation": {"devices": {"results": [result]}}}});
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn parts_of_a_card_take_no_more_than_it_counts() {
        let part = |name: &str, memory: &str| {
            let takes = json!([{"counterSet": "card", "counters": {"memory": {"value": memory}}}]);
            json!({"name": name, "consumesCounters": takes})
        };
        let card = json!([{"name": "card", "counters": {"memory": {"value": "80Gi"}}}]);
        let slice = |field: &str, of| -> ResourceSlice {
            let pool = json!({"name": "n1", "generation": 1, "resourceSliceCount": 2});
            serde_json::from_value(json!({"metadata": {}, "spec": {"driver": "d", "pool": pool, field: of}}))
                .unwrap()
        };
        let parts = json!([part("whole", "80Gi"), part("half-0", "40Gi"), part("half-1", "40Gi")]);
        let slices = [slice("sharedCounters", card), slice("devices", parts)];
        let claims = ["half-0", "half-1", "whole"].map(|device| given(device, device));
        assert_eq!(devices(&claims[..2], &slices), Vec::<String>::new());
        assert_eq!(devices(&claims[1..], &slices), ["more memory of n1/card is taken than it counts"]);
        let twice = [given("one", "half-0"), given("two", "half-0")];
        assert_eq!(devices(&twice, &slices), ["device n1/half-0 is held by claims one, two"]);
    }
}
