//! Berth's metrics of GPUs in parts of a card: how many are allocated, and how much of what is free is of no use for the pods that may come.
//!
//! Names, help and labels; what is of use is found elsewhere.

use std::{collections::BTreeMap, fmt, sync::Arc};

use prometheus_client::encoding::DescriptorEncoder;

use super::gauge;
use crate::cluster::report::gpus::{FITTED, Lack, models::FleetGpus};

/// Name, help and value of a gauge of the GPUs of a model.
type Column = (&'static str, &'static str, fn(&FleetGpus) -> f64);

const COLUMNS: [Column; 4] = [
    ("berth_gpus_capacity", "GPUs that work", |row| row.gpus.capacity),
    (
        "berth_gpus_allocated",
        "GPUs that are given away: of each card the larger part of its memory and compute",
        FleetGpus::allocated,
    ),
    ("berth_gpus_free", "GPUs that work and are not given away", FleetGpus::free),
    (
        "berth_gpus_fragmented",
        "GPUs that are free where a pod can't use them, as the mean over the pods that may come",
        FleetGpus::fragmented,
    ),
];

/// The GPUs of all nodes, by model.
pub(super) fn gpus(encoder: &mut DescriptorEncoder, rows: &BTreeMap<Arc<str>, FleetGpus>) -> fmt::Result {
    for (name, help, value) in COLUMNS {
        gauge(encoder, (name, help), rows.iter().map(|(model, row)| ([("model", &**model)], value(row))))?;
    }
    let names = (
        "berth_gpus_stranded",
        "GPUs that are free and could be given to none of the pods that may come, by what is lacking first",
    );
    let stranded = rows.iter().flat_map(|(model, row)| {
        let of = move |(lack, gpus): (Lack, f64)| ([("model", &**model), ("reason", lack.as_str())], gpus);
        Lack::ALL.into_iter().zip(row.stranded).map(of)
    });
    gauge(encoder, names, stranded)?;
    let names = (
        "berth_gpus_fitting_pods",
        "Pods that would fit if no others came, by the cards that each asks for; cpu and memory of nodes are not considered",
    );
    let fitting = rows.iter().flat_map(|(model, row)| {
        let of = move |((_, cards), pods): ((u32, &'static str), u64)| {
            ([("model", &**model), ("cards", cards)], pods)
        };
        FITTED.into_iter().zip(row.fitting).map(of)
    });
    gauge(encoder, names, fitting)
}
