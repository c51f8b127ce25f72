//! The metrics of HAMi's scheduler, from the same rows: what a dashboard made for it reads.
//!
//! Names and labels stand in the dialect. `hami_node_gpu_mig_instance_info` is left out: it tells ids that a device plugin gives its
//! instances, which Berth does not keep.

use std::{collections::BTreeMap, fmt};

use prometheus_client::encoding::DescriptorEncoder;

use super::{
    Holdings, bytes, gauge,
    rows::{CardRow, HeldCardRow},
};
use crate::{
    device::{CoreUnit, Cores, Dimension, usage},
    dialect::{
        Dialect,
        hami::metrics::{
            BUILD, BUILD_INFO, CARD, CORES, GPU_CORE_ALLOCATED, GPU_CORE_LIMIT, GPU_MEMORY_ALLOCATED,
            GPU_MEMORY_LIMIT, GPU_SHARED_COUNT, HELD, LIMIT, MEMORY_LIMIT, NODE_GPU_MEMORY_ALLOCATED,
            NODE_GPU_OVERVIEW, Named, QUOTA, QUOTA_LIMIT, QUOTA_USED, VGPU_CORE_ALLOCATED,
            VGPU_MEMORY_ALLOCATED, ZONE,
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

/// Percent of a card; compute units are made percent, rounded up, as HAMi does for AMD (`normalizeAMDCoreMetrics`).
fn percent(row: &CardRow<'_>, cores: Cores) -> f64 {
    match row.offered.unit {
        CoreUnit::Percent => f64::from(cores.get()),
        CoreUnit::Units => (row.offered.ratio(cores) * 100.0).ceil(),
    }
}

/// What there is and what is given away of each card.
pub(super) fn cards(encoder: &mut DescriptorEncoder, cards: &[CardRow<'_>]) -> fmt::Result {
    let columns: [Column; 4] = [
        (GPU_MEMORY_LIMIT, |row| bytes(row.offered.card.memory)),
        (GPU_CORE_LIMIT, |row| percent(row, row.offered.cores)),
        (GPU_SHARED_COUNT, |row| f64::from(row.offered.used.slots)),
        (GPU_CORE_ALLOCATED, |row| percent(row, row.offered.used.cores)),
    ];
    for (named, value) in columns {
        gauge(encoder, named, cards.iter().map(|row| (labels_of(row), value(row))))?;
    }
    let allocated = |row: &CardRow<'_>| bytes(row.offered.used.memory);
    let cores: Vec<String> = cards.iter().map(|row| row.offered.cores.get().to_string()).collect();
    let memory: Vec<String> = cards.iter().map(|row| row.offered.card.memory.get().to_string()).collect();
    let rows = cards.iter().zip(&cores).map(|(row, cores)| {
        let [zone, node, uuid, index, kind] = labels_of(row);
        ([zone, node, uuid, index, kind, (CORES, cores)], allocated(row))
    });
    gauge(encoder, GPU_MEMORY_ALLOCATED, rows)?;
    let rows = cards.iter().zip(&cores).zip(&memory).map(|((row, cores), memory)| {
        let [zone, node, uuid, index, kind] = labels_of(row);
        ([zone, node, uuid, index, kind, (CORES, cores), (MEMORY_LIMIT, memory)], allocated(row))
    });
    gauge(encoder, NODE_GPU_OVERVIEW, rows)?;
    let sized = cards.iter().filter(|row| row.offered.card.memory.get() > 0);
    let rows = sized.map(|row| (labels_of(row), allocated(row) / bytes(row.offered.card.memory)));
    gauge(encoder, NODE_GPU_MEMORY_ALLOCATED, rows)
}

/// What each pod holds of each card.
pub(super) fn pods<'a>(encoder: &mut DescriptorEncoder, pods: &'a [HeldCardRow<'a>]) -> fmt::Result {
    let [namespace, node, pod, container, uuid] = HELD;
    let labels = |row: &'a HeldCardRow<'a>| {
        [
            ZONE,
            (namespace, row.namespace),
            (node, row.node),
            (pod, row.pod),
            (container, "0"),
            (uuid, row.held.id.as_str()),
        ]
    };
    let cores = |row: &HeldCardRow<'_>| match row.held.card.map(|card| card.unit) {
        Some(CoreUnit::Units) => (row.held.ratio() * 100.0).ceil(),
        Some(CoreUnit::Percent) | None => f64::from(row.held.used.cores.get()),
    };
    gauge(encoder, VGPU_MEMORY_ALLOCATED, pods.iter().map(|row| (labels(row), bytes(row.held.used.memory))))?;
    gauge(encoder, VGPU_CORE_ALLOCATED, pods.iter().map(|row| (labels(row), cores(row))))
}

/// What is used and what is allowed of a resource in a namespace.
#[derive(Default)]
struct ResourceStanding {
    used: u64,
    limit: Option<u64>,
}

/// Quotas by namespace and resource. HAMi counts memory and compute, also where no quota bounds them.
pub(super) fn quotas(encoder: &mut DescriptorEncoder, holdings: &Holdings) -> fmt::Result {
    used(encoder, holdings, QUOTA_USED, QUOTA, LIMIT)?;
    let standings = standings(holdings);
    let [namespace, name] = QUOTA;
    let rows = standings.iter().filter_map(|((in_namespace, resource), standing)| {
        Some(([ZONE, (namespace, *in_namespace), (name, *resource)], standing.limit?))
    });
    gauge(encoder, QUOTA_LIMIT, rows)
}

/// What is used of each quota, under this name and with these labels; the last one is the bound.
pub(super) fn used(
    encoder: &mut DescriptorEncoder,
    holdings: &Holdings,
    named: Named,
    [namespace, name]: [&'static str; 2],
    bound: &'static str,
) -> fmt::Result {
    let standings = standings(holdings);
    let limits: Vec<String> =
        standings.values().map(|standing| standing.limit.unwrap_or(0).to_string()).collect();
    let rows = standings.iter().zip(&limits).map(|(((in_namespace, resource), standing), limit)| {
        ([ZONE, (namespace, *in_namespace), (name, *resource), (bound, limit.as_str())], standing.used)
    });
    gauge(encoder, named, rows)
}

fn standings(holdings: &Holdings) -> BTreeMap<(&str, &str), ResourceStanding> {
    let mut standings: BTreeMap<(&str, &str), ResourceStanding> = BTreeMap::new();
    for charge in holdings.charges.of_shares() {
        for allocation in charge.allocations.iter() {
            let Some(dialect) = holdings.dialects.named(&allocation.profile) else { continue };
            let held = usage::total(&allocation.assignment, charge.init);
            for (resource, dimension) in counted(&**dialect) {
                let standing = standings.entry((&charge.pod.namespace, resource)).or_default();
                standing.used = standing.used.saturating_add(dimension.of(held));
            }
        }
    }
    for bound in holdings.world.quotas().standings() {
        let Some(dialect) = holdings.dialects.named(bound.profile) else { continue };
        let same = |(resource, dimension): &(&str, Dimension)| {
            *dimension == bound.dimension && bound.key.strip_prefix("limits.") == Some(*resource)
        };
        let Some((resource, _)) = counted(&**dialect).into_iter().find(same) else { continue };
        let standing = standings.entry((bound.namespace, resource)).or_default();
        standing.limit = Some(standing.limit.map_or(bound.limit, |limit| limit.min(bound.limit)));
    }
    standings
}

/// The resources of memory and compute.
fn counted(dialect: &dyn Dialect) -> Vec<(&str, Dimension)> {
    let counted = dialect.counted().into_iter().map(|counted| (counted.resource, counted.dimension));
    counted.filter(|(_, dimension)| *dimension != Dimension::Cards).collect()
}

/// Which build runs; it is no build of HAMi's, so what only Go has is empty.
pub(super) fn build(encoder: &mut DescriptorEncoder) -> fmt::Result {
    let [version, revision, date, go, compiler, platform] = BUILD;
    let built_for = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let labels = [
        (version, concat!("berth-", env!("CARGO_PKG_VERSION"))),
        (revision, ""),
        (date, ""),
        (go, ""),
        (compiler, "rustc"),
        (platform, &*built_for),
    ];
    gauge(encoder, BUILD_INFO, std::iter::once((labels, 1_u64)))
}
