//! The allocation of each claim, as the API has it (kubernetes `dynamic-resource-allocation/structured`).

mod config;
mod share_id;

use std::collections::BTreeMap;

use super::{CandidateDevice, solution::Solution};
use crate::{
    dra::{TargetNode, WaitingClaim, device::PoolDevice, node::NodeSelection},
    object::{
        NodeSelector, NodeSelectorTerm, Requirement,
        resource_claim::{AllocatedDevice, AllocationResult, DeviceAllocationResult},
    },
};

/// The allocations of the claims, in their order.
pub(super) fn of(
    claims: &[&WaitingClaim],
    solution: &Solution,
    candidates: &[CandidateDevice<'_>],
    node: TargetNode<'_>,
) -> Vec<AllocationResult> {
    let of = |(at, claim): (usize, &&WaitingClaim)| {
        let choices = &solution.choices[at];
        let results = choices.iter().enumerate().map(|(number, choice)| {
            let alternative = &claim.requests[choice.request].alternatives[choice.alternative];
            let device = candidates[choice.candidate].device;
            let consumed = device.capacity.iter().map(|(name, capacity)| {
                (name.clone(), capacity.taken(alternative.capacity.get(name)).quantity)
            });
            AllocatedDevice {
                request: alternative.full_name.clone(),
                driver: device.id.driver.to_string(),
                pool: device.id.pool.to_string(),
                device: device.id.device.to_string(),
                admin_access: alternative.admin_access.filter(|admin| *admin),
                tolerations: alternative.tolerations.clone(),
                binding_conditions: device.binding.conditions.clone(),
                binding_failure_conditions: device.binding.failure_conditions.clone(),
                share_id: device.shareable.then(|| share_id::of(claim, number, &device.id)),
                consumed_capacity: if device.shareable { consumed.collect() } else { BTreeMap::new() },
                skip_node_operations: device.nodes.skips.clone(),
            }
        });
        let devices: Vec<&PoolDevice> =
            choices.iter().map(|choice| candidates[choice.candidate].device).collect();
        AllocationResult {
            devices: DeviceAllocationResult {
                results: results.collect(),
                config: config::of(claim, &solution.alternatives[at]),
            },
            node_selector: node_selector(&devices, node),
        }
    };
    claims.iter().enumerate().map(of).collect()
}

/// The nodes from which all of the devices can be used: this one where a device is of one node, else what each device demands of a
/// node; `None`: every node.
fn node_selector(devices: &[&PoolDevice], node: TargetNode<'_>) -> Option<NodeSelector> {
    let local = |device: &&PoolDevice| {
        device.binding.to_node || matches!(device.nodes.selection, NodeSelection::Name(_))
    };
    if devices.iter().any(local) {
        let name = Requirement {
            key: "metadata.name".to_owned(),
            operator: "In".to_owned(),
            values: vec![node.name.to_owned()],
        };
        let term = NodeSelectorTerm { match_fields: vec![name], ..NodeSelectorTerm::default() };
        return Some(NodeSelector { node_selector_terms: vec![term] });
    }
    let mut merged = NodeSelectorTerm::default();
    for device in devices {
        if let NodeSelection::Selector(selector) = &device.nodes.selection {
            for term in &selector.node_selector_terms {
                add(&mut merged.match_fields, &term.match_fields);
                add(&mut merged.match_expressions, &term.match_expressions);
            }
        }
    }
    let demands = !(merged.match_fields.is_empty() && merged.match_expressions.is_empty());
    demands.then(|| NodeSelector { node_selector_terms: vec![merged] })
}

/// Adds requirements that are not there yet; the order of values makes no difference.
fn add(known: &mut Vec<Requirement>, more: &[Requirement]) {
    let sorted = |requirement: &Requirement| {
        let mut requirement = requirement.clone();
        requirement.values.sort();
        requirement
    };
    for requirement in more {
        if !known.iter().any(|other| sorted(other) == sorted(requirement)) {
            known.push(requirement.clone());
        }
    }
}
