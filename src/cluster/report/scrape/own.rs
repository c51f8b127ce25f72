//! Berth's own metrics of cards, pods, namespaces and quotas: bytes and ratios, by Prometheus' conventions.
//!
//! Names, help and labels; what a row is worth is found elsewhere.

use std::{borrow::Cow, collections::BTreeMap, fmt, sync::Arc};

use prometheus_client::{encoding::DescriptorEncoder, metrics::MetricType};

use super::{
    bytes, gauge,
    rows::{CardRow, HeldCardRow},
    totals::{CardSums, HeldSums, amounts},
};
use crate::scheduling::{
    model::measure::Waiting,
    world::quota::{BoundStanding, Quotas},
};

/// Name, help and value of a gauge of cards.
type CardColumn = (&'static str, &'static str, for<'a> fn(&CardRow<'a>) -> f64);

/// How many series there are of a card.
pub(super) const OF_A_CARD: usize = CARDS.len();

/// How many series there are of a card that a pod holds a share of.
pub(super) const OF_A_POD: usize = PODS.len();

const CARDS: [CardColumn; 7] = [
    ("berth_card_memory_bytes", "Memory of a card that can be given away", |row| {
        bytes(row.offered.card.memory)
    }),
    ("berth_card_memory_allocated_bytes", "Memory of a card that is given away", |row| {
        bytes(row.offered.used.memory)
    }),
    (
        "berth_card_cores_ratio",
        "Compute of a card that can be given away; 1 is one whole card, more where its device plugin scales it",
        |row| row.offered.ratio(row.offered.cores),
    ),
    (
        "berth_card_cores_allocated_ratio",
        "Compute of a card that is given away; 1 is one whole card",
        |row| row.offered.ratio(row.offered.used.cores),
    ),
    ("berth_card_slots", "Containers that can share a card", |row| f64::from(row.offered.card.slots)),
    ("berth_card_slots_allocated", "Containers that share a card", |row| f64::from(row.offered.used.slots)),
    ("berth_card_healthy", "1 while its device plugin reports that a card works, else 0", |row| {
        f64::from(u8::from(row.offered.is_healthy()))
    }),
];

/// Names and help of the gauges of what a pod holds of a card, in the order of its [`amounts`].
const PODS: [(&str, &str); 3] = [
    ("berth_pod_memory_allocated_bytes", "Memory of a card that a pod holds"),
    ("berth_pod_cores_allocated_ratio", "Compute of a card that a pod holds; 1 is one whole card"),
    ("berth_pod_slots_allocated", "Shares of a card that a pod holds"),
];

/// Name, help and value of a gauge of the cards of one model on a node.
type NodeColumn = (&'static str, &'static str, fn(&CardSums) -> f64);

const NODES: [NodeColumn; 8] = [
    ("berth_node_cards", "Cards of a model on a node", |sums| sums.cards),
    (
        "berth_node_cards_healthy",
        "Cards of a model on a node that work, by their device plugin's report",
        |sums| sums.healthy,
    ),
    ("berth_node_cards_memory_bytes", "Memory of a node's cards that can be given away", |sums| sums.memory),
    ("berth_node_cards_memory_allocated_bytes", "Memory of a node's cards that is given away", |sums| {
        sums.memory_allocated
    }),
    (
        "berth_node_cards_cores_ratio",
        "Compute of a node's cards that can be given away; 1 is one whole card",
        |sums| sums.cores,
    ),
    (
        "berth_node_cards_cores_allocated_ratio",
        "Compute of a node's cards that is given away; 1 is one whole card",
        |sums| sums.cores_allocated,
    ),
    ("berth_node_cards_slots", "Containers that can share a node's cards", |sums| sums.slots),
    ("berth_node_cards_slots_allocated", "Containers that share a node's cards", |sums| sums.slots_allocated),
];

const NAMESPACES: [(&str, &str); 3] = [
    (
        "berth_namespace_memory_allocated_bytes",
        "Memory of cards of a model that the pods of a namespace hold",
    ),
    (
        "berth_namespace_cores_allocated_ratio",
        "Compute of cards of a model that the pods of a namespace hold; 1 is one whole card",
    ),
    ("berth_namespace_slots_allocated", "Shares of cards of a model that the pods of a namespace hold"),
];

/// Total and allocated memory, compute and slots of each card, and its health.
pub(super) fn cards(encoder: &mut DescriptorEncoder, cards: &[CardRow<'_>]) -> fmt::Result {
    for (name, help, value) in CARDS {
        let rows = cards.iter().map(|row| {
            let card = row.offered.card.id.as_str();
            let labels = [("node", row.node), ("card", card), ("index", &row.index), ("model", &row.model)];
            (labels, value(row))
        });
        gauge(encoder, (name, help), rows)?;
    }
    Ok(())
}

/// What each pod holds of each card.
pub(super) fn pods(encoder: &mut DescriptorEncoder, pods: &[HeldCardRow<'_>]) -> fmt::Result {
    for (at, names) in PODS.into_iter().enumerate() {
        let rows = pods.iter().map(|row| {
            let labels = [
                ("namespace", row.namespace),
                ("pod", row.pod),
                ("node", row.node),
                ("card", row.held.id.as_str()),
                ("model", &row.model),
            ];
            (labels, amounts(&row.held)[at])
        });
        gauge(encoder, names, rows)?;
    }
    Ok(())
}

/// What the cards of each node come to, by model.
pub(super) fn nodes(
    encoder: &mut DescriptorEncoder,
    nodes: &[(&str, Cow<'_, str>, CardSums)],
) -> fmt::Result {
    for (name, help, value) in NODES {
        let rows = nodes.iter().map(|(node, model, sums)| ([("node", *node), ("model", model)], value(sums)));
        gauge(encoder, (name, help), rows)?;
    }
    Ok(())
}

/// What the pods of each namespace hold of each model of card.
pub(super) fn namespaces(
    encoder: &mut DescriptorEncoder,
    namespaces: &BTreeMap<&str, BTreeMap<Arc<str>, HeldSums>>,
) -> fmt::Result {
    for (at, names) in NAMESPACES.into_iter().enumerate() {
        let rows = namespaces.iter().flat_map(|(namespace, models)| {
            models
                .iter()
                .map(move |(model, sums)| ([("namespace", *namespace), ("model", &**model)], sums[at]))
        });
        gauge(encoder, names, rows)?;
    }
    Ok(())
}

/// How many series are left out of this page because there would be too many.
pub(super) fn left_out(encoder: &mut DescriptorEncoder, left_out: [(&'static str, usize); 2]) -> fmt::Result {
    let names = (
        "berth_scrape_left_out_series",
        "Series of single cards, devices and pods that this page leaves out because it would have more than metrics.seriesLimit of them",
    );
    gauge(encoder, names, left_out.into_iter().map(|(of, series)| ([("of", of)], count(series))))
}

/// What each ResourceQuota allows of shares, and what is used of it, in the units of its own resources.
pub(super) fn quotas(encoder: &mut DescriptorEncoder, quotas: &Quotas) -> fmt::Result {
    let names =
        ("berth_resource_quota_limit", "What a ResourceQuota allows of shares, in the units of its resource");
    gauge(encoder, names, quotas.standings().map(|one| (labels_of(one), one.limit)))?;
    let names = (
        "berth_resource_quota_used",
        "What the pods of a ResourceQuota's namespace hold, in the units of its resource, pods that are being bound included",
    );
    gauge(encoder, names, quotas.standings().map(|one| (labels_of(one), one.used)))
}

fn labels_of(standing: BoundStanding<'_>) -> [(&'static str, &str); 3] {
    let BoundStanding { namespace, quota, key, .. } = standing;
    [("namespace", namespace), ("resource_quota", quota), ("resource", key)]
}

/// Why pods wait, and since when.
pub(super) fn waiting(encoder: &mut DescriptorEncoder, waiting: &Waiting) -> fmt::Result {
    let names = (
        "berth_scheduler_unschedulable_pods",
        "Pods that wait, by the plugin and the reason for which nodes were refused; a pod counts once for each of its reasons",
    );
    let rows = waiting
        .reasons
        .iter()
        .map(|((plugin, reason), pods)| ([("plugin", *plugin), ("reason", reason)], count(*pods)));
    gauge(encoder, names, rows)?;
    let names = (
        "berth_scheduler_oldest_unschedulable_pod_timestamp_seconds",
        "When the oldest of the pods was created that wait for this plugin and reason, in seconds since 1970",
    );
    let rows = waiting
        .oldest
        .iter()
        .map(|((plugin, reason), created)| ([("plugin", *plugin), ("reason", reason)], created.as_second()));
    gauge(encoder, names, rows)?;
    let help = "Pods among those that would not fit even if all others ended: what they ask for is not there, not served or can't be read";
    let name = "berth_scheduler_unplaceable_pods";
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&count(waiting.unplaceable))
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
