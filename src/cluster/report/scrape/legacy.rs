//! The metrics of HAMi's scheduler under the names of its flag `--legacy-metrics`, from the same rows.
//!
//! Names and labels stand in the dialect. `nodeGPUMigInstance` is left out for the reason of `hami_node_gpu_mig_instance_info`.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::{
    Holdings, bytes, gauge, hami,
    rows::{CardRow, HeldCardRow},
};
use crate::{
    device::Cores,
    dialect::hami::metrics::{
        LIMIT, Named, ZONE,
        legacy::{
            CARD, CORES, GPU_CORE_ALLOCATED, GPU_CORE_LIMIT, GPU_MEMORY_ALLOCATED, GPU_MEMORY_LIMIT,
            GPU_SHARED_COUNT, HELD, MEMORY_LIMIT, NODE_GPU_MEMORY_ALLOCATED, NODE_GPU_OVERVIEW, QUOTA,
            QUOTA_USED, VGPU_CORE_ALLOCATED, VGPU_MEMORY_ALLOCATED,
        },
    },
};

type Label<'a> = (&'a str, &'a str);

/// Name, help and value of a gauge of cards.
type Column = (Named, for<'a> fn(&CardRow<'a>) -> f64);

/// How many series there are of a card.
pub(super) const OF_A_CARD: usize = 7;

/// How many series there are of a card that a pod holds a share of.
pub(super) const OF_A_POD: usize = 2;

fn labels_of<'a>(row: &'a CardRow<'a>) -> [Label<'a>; 5] {
    let [node, uuid, index, kind] = CARD;
    let card = row.offered.card.id.as_str();
    [ZONE, (node, row.node), (uuid, card), (index, &row.index), (kind, &row.model)]
}

fn units(cores: Cores) -> f64 {
    f64::from(cores.get())
}

/// What there is and what is given away of each card.
pub(super) fn cards(encoder: &mut DescriptorEncoder, cards: &[CardRow<'_>]) -> fmt::Result {
    let columns: [Column; 4] = [
        (GPU_MEMORY_LIMIT, |row| bytes(row.offered.card.memory)),
        (GPU_CORE_LIMIT, |row| units(row.offered.cores)),
        (GPU_SHARED_COUNT, |row| f64::from(row.offered.used.slots)),
        (GPU_CORE_ALLOCATED, |row| units(row.offered.used.cores)),
    ];
    for (named, value) in columns {
        gauge(encoder, named, cards.iter().map(|row| (labels_of(row), value(row))))?;
    }
    let allocated = |row: &CardRow<'_>| bytes(row.offered.used.memory);
    let sizes: Vec<[String; 2]> = cards
        .iter()
        .map(|row| [row.offered.cores.get().to_string(), row.offered.card.memory.get().to_string()])
        .collect();
    let rows = cards.iter().zip(&sizes).map(|(row, [cores, _])| {
        let [zone, node, uuid, index, kind] = labels_of(row);
        ([zone, node, uuid, index, kind, (CORES, cores.as_str())], allocated(row))
    });
    gauge(encoder, GPU_MEMORY_ALLOCATED, rows)?;
    let rows = cards.iter().zip(&sizes).map(|(row, [cores, memory])| {
        let [zone, node, uuid, index, kind] = labels_of(row);
        let size = [(CORES, cores.as_str()), (MEMORY_LIMIT, memory.as_str())];
        ([zone, node, uuid, index, kind, size[0], size[1]], allocated(row))
    });
    gauge(encoder, NODE_GPU_OVERVIEW, rows)?;
    let with_memory = cards.iter().filter(|row| row.offered.card.memory.get() > 0);
    let rows = with_memory.map(|row| {
        let [zone, node, uuid, index, _] = labels_of(row);
        ([zone, node, uuid, index], allocated(row) / bytes(row.offered.card.memory))
    });
    gauge(encoder, NODE_GPU_MEMORY_ALLOCATED, rows)
}

/// What each pod holds of each card.
pub(super) fn pods<'a>(encoder: &mut DescriptorEncoder, pods: &'a [HeldCardRow<'a>]) -> fmt::Result {
    let labels = |row: &'a HeldCardRow<'a>| {
        let values = [row.namespace, row.node, row.pod, "0", row.held.id.as_str()];
        let [namespace, node, pod, container, uuid] = std::array::from_fn(|at| (HELD[at], values[at]));
        [ZONE, namespace, node, pod, container, uuid]
    };
    gauge(encoder, VGPU_MEMORY_ALLOCATED, pods.iter().map(|row| (labels(row), bytes(row.held.used.memory))))?;
    gauge(encoder, VGPU_CORE_ALLOCATED, pods.iter().map(|row| (labels(row), units(row.held.used.cores))))
}

/// What is used of each quota.
pub(super) fn quotas(encoder: &mut DescriptorEncoder, holdings: &Holdings) -> fmt::Result {
    hami::used(encoder, holdings, QUOTA_USED, QUOTA, LIMIT)
}
