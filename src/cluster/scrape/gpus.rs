//! Berth's metrics of GPUs in parts of a card: how many are allocated, and how much of what is free is of no use for the pods that may come.
//!
//! Names, help and labels; what is of use is found elsewhere.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use prometheus_client::encoding::DescriptorEncoder;

use super::{
    gauge,
    rows::{NodeRow, model},
};
use crate::{
    cluster::gpus::{AskedPod, FITTED, FittedPods, Lack, ModelGpus, TypicalPods, fitting},
    scheduling::model::pod_shape::PodShape,
};

/// Name, help and value of a gauge of the GPUs of a model.
type Column = (&'static str, &'static str, fn(&GpuRow) -> f64);

const COLUMNS: [Column; 4] = [
    ("berth_gpus_capacity", "GPUs that work", |row| row.gpus.capacity),
    (
        "berth_gpus_allocated",
        "GPUs that are given away: of each card the larger part of its memory and compute",
        |row| row.gpus.allocated.max(0.0),
    ),
    ("berth_gpus_free", "GPUs that work and are not given away", |row| {
        (row.gpus.capacity - row.gpus.allocated).max(0.0)
    }),
    (
        "berth_gpus_fragmented",
        "GPUs that are free where a pod can't use them, as the mean over the pods that may come",
        |row| row.gpus.fragmented.max(0.0),
    ),
];

/// All GPUs of one model, in parts of a card.
#[derive(Debug, Default)]
struct GpuRow {
    gpus: ModelGpus,
    /// What no pod that may come could use, by what is lacking first: in the order of [`Lack::ALL`].
    stranded: [f64; Lack::ALL.len()],
    fitting: FittedPods,
}

/// The GPUs of all nodes, by model.
pub(super) fn gpus(
    encoder: &mut DescriptorEncoder,
    nodes: &[NodeRow<'_>],
    shapes: &[(Arc<PodShape>, u32)],
) -> fmt::Result {
    let rows = rows(nodes, shapes);
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

fn rows<'a>(nodes: &'a [NodeRow<'a>], shapes: &[(Arc<PodShape>, u32)]) -> BTreeMap<Cow<'a, str>, GpuRow> {
    let mut shapes: Vec<_> = shapes.iter().collect();
    // Of equals the order must follow from the shapes.
    shapes.sort();
    let asked = |(shape, weight): &(Arc<PodShape>, u32)| (AskedPod::from(&**shape), u64::from(*weight));
    let mut typical = TypicalPods::of(shapes.into_iter().map(asked).collect());
    let mut rows: BTreeMap<Cow<'_, str>, GpuRow> = BTreeMap::new();
    for NodeRow { state, cards } in nodes {
        for card in cards.cards.iter().filter(|card| !card.is_healthy()) {
            rows.entry(model(&card.card.model)).or_default();
        }
        let found = typical.on(state, cards);
        for (name, gpus) in found.by_model() {
            let sum = &mut rows.entry(model(name)).or_default().gpus;
            sum.capacity += gpus.capacity;
            sum.allocated += gpus.allocated;
            sum.fragmented += gpus.fragmented;
        }
        for (name, lack, gpus) in found.stranded() {
            rows.entry(model(name)).or_default().stranded[lack as usize] += gpus;
        }
        for (name, pods) in fitting(cards) {
            let sums = &mut rows.entry(model(name)).or_default().fitting;
            sums.iter_mut().zip(pods).for_each(|(sum, pods)| *sum += pods);
        }
    }
    rows
}
