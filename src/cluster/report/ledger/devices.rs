//! Devices by type on the ledger's page: what each node has, what of it is in use, and what each pod holds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::PodNames;
use crate::{
    device::{
        Amounts, DeviceAllocation, DeviceAllocations, DeviceType, Health, Inventory, Minor, NodeDevice,
    },
    scheduling::{
        Uid,
        world::{ledger::Charge, node_state::NodeState},
    },
};

/// By the name of a resource, how much of it: bytes of memory, percent of all else.
pub(super) type Resources = BTreeMap<String, u64>;

/// One device of a node and what of it is in use.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRow {
    /// `gpu`, `rdma` or `fpga`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its number among those of its type.
    pub minor: Minor,
    /// A GPU's uuid or a NIC's PCI address.
    pub id: String,
    /// In use.
    pub used: Resources,
    /// All of it.
    pub total: Resources,
    /// PCI addresses of its virtual functions that pods have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions_used: Vec<String>,
    /// Whether the node side reports it as healthy.
    pub healthy: bool,
    /// Pods that hold some of it, by name.
    pub pods: Vec<String>,
    /// How many more do, which are not shown by name.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub others: usize,
}

/// What one pod holds of one device.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub struct HeldDeviceRow {
    /// `gpu`, `rdma` or `fpga`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its number among those of its type.
    pub minor: Minor,
    /// How much.
    pub resources: Resources,
    /// PCI addresses of its virtual functions that the pod has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<String>,
}

/// A node's devices, by type and number; none where its plugins offer cards alone.
pub(super) fn rows(state: &NodeState, charges: &[(&Uid, &Charge)], names: PodNames<'_>) -> Vec<DeviceRow> {
    let inventories = state.info.devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
    let devices = inventories.map(Inventory::devices).flat_map(|devices| {
        DeviceType::ALL
            .into_iter()
            .flat_map(|kind| devices.of(kind).map(move |(minor, device)| (kind, minor, device)))
    });
    let row = |(kind, minor, device): (DeviceType, Minor, &NodeDevice)| {
        let used = state.usage.devices().get(kind, minor);
        DeviceRow {
            kind: kind.name(),
            minor,
            id: device.id.clone(),
            used: used.map(|used| resources(&used.amounts)).unwrap_or_default(),
            total: resources(&device.total),
            functions_used: used.map(|used| used.functions.iter().cloned().collect()).unwrap_or_default(),
            healthy: device.health == Health::Healthy,
            pods: holders(kind, minor, charges, names),
            others: 0,
        }
    };
    devices.map(row).collect()
}

/// What a pod holds of each device, by type and number.
pub(super) fn held(charge: &Charge) -> Vec<HeldDeviceRow> {
    given(charge).map(held_row).collect()
}

/// Devices that are held, by type and number.
pub(super) fn held_rows(devices: &DeviceAllocations) -> Vec<HeldDeviceRow> {
    each(devices).map(held_row).collect()
}

fn held_row((kind, device): (DeviceType, &DeviceAllocation)) -> HeldDeviceRow {
    HeldDeviceRow {
        kind: kind.name(),
        minor: device.minor,
        resources: resources(&device.amounts),
        functions: device.functions.iter().map(|function| function.bus.clone()).collect(),
    }
}

fn given(charge: &Charge) -> impl Iterator<Item = (DeviceType, &DeviceAllocation)> {
    charge.allocations.iter().flat_map(|allocation| each(&allocation.assignment.devices))
}

fn each(devices: &DeviceAllocations) -> impl Iterator<Item = (DeviceType, &DeviceAllocation)> {
    devices.iter().flat_map(|(&kind, devices)| devices.iter().map(move |device| (kind, device)))
}

fn holders(kind: DeviceType, minor: Minor, charges: &[(&Uid, &Charge)], names: PodNames<'_>) -> Vec<String> {
    let holds = |charge: &Charge| given(charge).any(|(of, device)| (of, device.minor) == (kind, minor));
    let holders = charges.iter().filter(|(_, charge)| holds(charge));
    let mut pods: Vec<String> = holders.filter_map(|(uid, _)| names(uid)).collect();
    pods.sort();
    pods
}

fn resources(amounts: &Amounts) -> Resources {
    amounts.iter().map(|(resource, amount)| (resource.name().to_owned(), amount)).collect()
}
