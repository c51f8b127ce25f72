//! GPUs in the groups that their links are partitioned into.
//!
//! Source: koordinator `allocator_gpu.go` (`allocateByPartition`, `selectPartitionByBinPack`).

use std::{cmp::Reverse, collections::BTreeSet};

use super::{Shortfall, topology, view::View};
use crate::device::{Minor, Partition, PartitionChoice, PartitionPolicy, PartitionTable};

/// What it is worth that a partition of this size stays free.
const WORTH: [(u32, i64); 3] = [(8, 10_000), (4, 100), (2, 1)];

/// Whether the pod is given partitions alone.
pub(super) fn is_required(view: &View<'_>) -> bool {
    view.request.partition.is_some() || view.node.partition_policy == PartitionPolicy::Honor
}

/// The partitions that will do, in the order in which they should be used: the best score first, and of one score those that leave the most
/// larger partitions free.
pub(super) fn feasible<'a>(view: &View<'a>) -> Result<Vec<&'a Partition>, Shortfall> {
    let table = view.node.partitions.as_ref().ok_or(Shortfall::NoPartitionTable)?;
    let count = u32::try_from(view.count).map_err(|_| Shortfall::PartitionSize)?;
    let groups = table.of(count).ok_or(Shortfall::PartitionSize)?;
    let restricted = view.request.partition.is_some_and(|spec| spec.choice == PartitionChoice::Restricted);
    let mut feasible = Vec::new();
    for group in groups.take(if restricted { 1 } else { usize::MAX }) {
        let mut of_score: Vec<_> = group.iter().filter(|partition| is_free(view, partition)).collect();
        of_score.sort_by_key(|partition| Reverse(left_free(table, &view.used, partition, count)));
        feasible.extend(of_score);
    }
    if feasible.is_empty() { Err(Shortfall::Partitions) } else { Ok(feasible) }
}

/// Whether the pod can be given the whole partition, its links carry enough, and it is within the required part of the machine, for which
/// upstream does not look here.
fn is_free(view: &View<'_>, partition: &Partition) -> bool {
    let wanted = view.request.partition.and_then(|spec| spec.ring_bandwidth);
    let carries = wanted.is_none_or(|wanted| partition.ring_bandwidth.is_some_and(|has| has >= wanted));
    let free = |minor: &Minor| !view.used.contains(minor) && view.fits(*minor);
    let fits = partition.minors.len() == view.count && partition.minors.iter().all(free);
    carries && fits && topology::holds(view, &partition.minors)
}

/// What the partitions are worth that stay free beside this one.
fn left_free(table: &PartitionTable, used: &BTreeSet<Minor>, taken: &Partition, count: u32) -> i64 {
    let is_free = |partition: &&Partition| {
        partition.minors.iter().all(|minor| !used.contains(minor) && !taken.minors.contains(minor))
    };
    let of_size = |&(size, worth): &(u32, i64)| -> i64 {
        let best = table.of(size).and_then(|mut groups| groups.next()).unwrap_or_default();
        best.iter()
            .filter(is_free)
            .fold(0, |sum, partition| sum.saturating_add(partition.score.saturating_mul(worth)))
    };
    WORTH.iter().filter(|(size, _)| *size >= count).map(of_size).fold(0, i64::saturating_add)
}
