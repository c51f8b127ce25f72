//! How the GPUs of a node may be given together: the table that a Device carries, or the one of NVIDIA's Hopper cards.
//!
//! Source: koordinator `apis/extension/device_share.go` (`GPUPartitionTable`), `pkg/scheduler/plugins/deviceshare/allocator_gpu_helper.go`.
//! Upstream tries the worst score first, against its own documentation; here the best comes first.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{dimension::whole, names};
use crate::{
    device::{Minor, Partition, PartitionPolicy, PartitionTable},
    dialect::{Problem, Unreadable},
    object::{Metadata, Quantity},
};

/// Models that have the table of Hopper cards.
const HOPPER: [&str; 3] = ["H100", "H800", "H20"];
/// The vendor of those cards; a node that names no vendor is taken to have them too.
const NVIDIA: &str = "nvidia";
const HONOR: &str = "Honor";

/// One partition, as it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenPartition {
    minors: Vec<Minor>,
    ring_bus_bandwidth: Option<Quantity>,
    #[serde(default)]
    allocation_score: i64,
}

/// The table in the annotation of a Device; `None`: it has none.
pub fn annotated(device: &Metadata) -> Result<Option<PartitionTable>, Unreadable> {
    let Some(text) = device.annotation(names::PARTITIONS).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let unreadable =
        |reason: String| Unreadable::annotation(Problem::Registration, names::PARTITIONS, reason);
    let table: BTreeMap<u32, Vec<WrittenPartition>> =
        serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let mut partitions = Vec::new();
    for (count, wires) in table {
        let read: Result<_, _> = wires.into_iter().map(partition).collect();
        partitions.push((count, read.map_err(unreadable)?));
    }
    Ok(Some(PartitionTable::new(partitions)))
}

fn partition(wire: WrittenPartition) -> Result<Partition, String> {
    let ring_bandwidth = wire.ring_bus_bandwidth.as_ref().map(whole).transpose()?;
    Ok(Partition { minors: wire.minors.into_iter().collect(), ring_bandwidth, score: wire.allocation_score })
}

/// The table of a node whose Device has none, by the vendor and the model of its GPUs.
pub fn built_in(vendor: Option<&str>, model: Option<&str>) -> Option<PartitionTable> {
    let nvidia = vendor.is_none_or(|vendor| vendor.is_empty() || vendor == NVIDIA);
    let hopper = model.is_some_and(|model| HOPPER.contains(&model));
    (nvidia && hopper).then(|| PartitionTable::new([1, 2, 4, 8].map(|count| (count, aligned(count)))))
}

/// Eight cards in partitions of this size.
fn aligned(count: u32) -> Vec<Partition> {
    let starts = (0..8).step_by(count as usize);
    let partition =
        |start| Partition { minors: (start..start + count).collect(), ring_bandwidth: None, score: 1 };
    starts.map(partition).collect()
}

/// What the label of a Node or a Device says.
pub fn policy(of: &Metadata) -> PartitionPolicy {
    match of.label(names::PARTITION_POLICY) {
        Some(HONOR) => PartitionPolicy::Honor,
        _ => PartitionPolicy::Prefer,
    }
}
