//! Berth's metrics of devices by type: GPUs, NICs and FPGAs of nodes with Koordinator's node side, by Prometheus' conventions.
//!
//! What is left of Reservations counts as given away, as it does in decisions.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::{Holdings, gauge};
use crate::{
    device::{Amounts, DeviceType, Health, Inventory, Minor, NodeDevice, NodeDevices, Proportion, Unit},
    scheduling::world::node_state::NodeState,
};

/// One device of a node.
struct ScrapedDevice<'a> {
    node: &'a str,
    kind: DeviceType,
    index: String,
    device: &'a NodeDevice,
    /// Bytes of its memory, where it publishes such.
    memory: Option<AllocatedPart>,
    /// Percent of it: of a GPU its compute.
    share: Option<AllocatedPart>,
    /// Its virtual functions.
    functions: AllocatedPart,
}

/// How much there is of something, and how much of it is given away.
#[derive(Clone, Copy)]
struct AllocatedPart {
    total: u64,
    allocated: u64,
}

/// Name, help and value of a gauge; `None`: the device has no such thing.
type Column = (&'static str, &'static str, for<'a> fn(&ScrapedDevice<'a>) -> Option<f64>);

const COLUMNS: [Column; 7] = [
    (
        "berth_device_allocated_ratio",
        "Part of a device that is given away or reserved, in compute for GPUs; 1 is one whole device",
        |row| row.share.map(|share| number(share.allocated) / 100.0),
    ),
    (
        "berth_device_capacity_ratio",
        "Part of a device that can be given away, in compute for GPUs; 1 is one whole device",
        |row| row.share.map(|share| number(share.total) / 100.0),
    ),
    ("berth_device_healthy", "1 while koordlet reports that a device works, else 0", |row| {
        Some(f64::from(u8::from(row.device.health == Health::Healthy)))
    }),
    ("berth_device_memory_allocated_bytes", "Memory of a device that is given away or reserved", |row| {
        row.memory.map(|memory| number(memory.allocated))
    }),
    ("berth_device_memory_bytes", "Memory of a device that can be given away", |row| {
        row.memory.map(|memory| number(memory.total))
    }),
    ("berth_device_virtual_functions", "Virtual functions of a device", |row| {
        (row.functions.total > 0).then(|| number(row.functions.total))
    }),
    (
        "berth_device_virtual_functions_allocated",
        "Virtual functions of a device that are given away or reserved",
        |row| (row.functions.total > 0).then(|| number(row.functions.allocated)),
    ),
];

/// How many series there are of a device at most.
pub(super) const OF_A_DEVICE: usize = COLUMNS.len();

/// What there is and what is given away of each device, and its health.
pub(super) fn devices(encoder: &mut DescriptorEncoder, holdings: &Holdings) -> fmt::Result {
    let rows = rows(holdings);
    for (name, help, value) in COLUMNS {
        let rows = rows.iter().filter_map(|row| {
            let labels = [
                ("node", row.node),
                ("type", row.kind.name()),
                ("index", &row.index),
                ("device", &row.device.id),
            ];
            Some((labels, value(row)?))
        });
        gauge(encoder, (name, help), rows)?;
    }
    Ok(())
}

fn rows(holdings: &Holdings) -> Vec<ScrapedDevice<'_>> {
    let mut rows = Vec::new();
    for state in holdings.world.nodes() {
        let inventories = state.info.devices.offers.iter().filter_map(|offer| offer.inventory.as_deref());
        for devices in inventories.map(Inventory::devices) {
            for kind in DeviceType::ALL {
                rows.extend(
                    devices.of(kind).map(|(minor, device)| row(state, devices, (kind, minor, device))),
                );
            }
        }
    }
    rows
}

fn row<'a>(
    state: &'a NodeState,
    devices: &NodeDevices,
    (kind, minor, device): (DeviceType, Minor, &'a NodeDevice),
) -> ScrapedDevice<'a> {
    let used = state.usage.devices().get(kind, minor);
    let amounts = used.map(|used| used.amounts.clone()).unwrap_or_default();
    let functions = device.functions.iter().map(|group| group.functions.len()).sum();
    let functions = AllocatedPart {
        total: count(functions),
        allocated: used.map_or(0, |used| count(used.functions.len())),
    };
    let memory = devices.card.as_ref().and_then(|card| memory(&card.memory, device, &amounts));
    let share = share(devices, kind, device, &amounts);
    ScrapedDevice { node: &state.info.name, kind, index: minor.to_string(), device, memory, share, functions }
}

/// Memory in bytes. Another scheduler may have written it in percent alone.
fn memory(memory: &Proportion, device: &NodeDevice, used: &Amounts) -> Option<AllocatedPart> {
    let total = device.total.get(&memory.amount)?;
    let mut used = used.clone();
    memory.complete(&mut used, &device.total);
    Some(AllocatedPart { total, allocated: used.get(&memory.amount).unwrap_or(0) })
}

/// Of a GPU its compute, of another device the first dimension that is a percentage.
fn share(
    devices: &NodeDevices,
    kind: DeviceType,
    device: &NodeDevice,
    used: &Amounts,
) -> Option<AllocatedPart> {
    let cores = devices.card.as_ref().filter(|_| kind == DeviceType::Gpu).map(|card| &card.cores);
    let cores = cores.filter(|cores| device.total.get(cores).is_some());
    let mut percentages = device.total.iter().filter(|(dimension, _)| dimension.unit() == Unit::Percent);
    let dimension = cores.or_else(|| percentages.next().map(|(dimension, _)| dimension))?;
    Some(AllocatedPart { total: device.total.get(dimension)?, allocated: used.get(dimension).unwrap_or(0) })
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// A gauge is a floating point number: exact up to 2^53.
#[expect(clippy::cast_precision_loss, reason = "what a device has is far below 2^53")]
fn number(amount: u64) -> f64 {
    amount as f64
}
