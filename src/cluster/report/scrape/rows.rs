//! The cards and the pods that hold some, as rows for metrics: text and numbers, found once for all of them.
//!
//! Names of metrics stand elsewhere.

use std::{borrow::Cow, collections::BTreeMap};

use super::Holdings;
use crate::{
    cluster::report::cards::{HeldCard, NodeCards, OfferedCard, held_on},
    excerpt::{FIELD, excerpt},
    scheduling::world::{ledger::Charge, node_state::NodeState},
};

/// A node with its cards.
pub(super) struct NodeRow<'a> {
    pub(super) state: &'a NodeState,
    pub(super) cards: NodeCards<'a>,
}

/// One card of a node.
pub(super) struct CardRow<'a> {
    pub(super) node: &'a str,
    pub(super) index: String,
    pub(super) model: Cow<'a, str>,
    pub(super) offered: &'a OfferedCard<'a>,
}

/// What one pod holds of one card.
pub(super) struct HeldCardRow<'a> {
    pub(super) namespace: &'a str,
    pub(super) pod: &'a str,
    pub(super) node: &'a str,
    pub(super) model: Cow<'a, str>,
    pub(super) held: HeldCard<'a>,
}

/// Each node that has cards.
pub(super) fn nodes(holdings: &Holdings) -> Vec<NodeRow<'_>> {
    let nodes = holdings
        .world
        .nodes()
        .map(|node| NodeRow { state: node, cards: NodeCards::of(node, &holdings.dialects) });
    nodes.filter(|node| !node.cards.cards.is_empty()).collect()
}

/// Each card, with the cards of each node.
pub(super) fn cards<'a>(nodes: &BTreeMap<&'a str, &'a NodeCards<'a>>) -> Vec<CardRow<'a>> {
    let rows = nodes.iter().flat_map(|(node, cards)| cards.cards.iter().map(|card| card_row(node, card)));
    rows.collect()
}

/// What each pod holds of each card, with the cards of each node.
pub(super) fn pods<'a>(
    holdings: &'a Holdings,
    nodes: &BTreeMap<&'a str, &'a NodeCards<'a>>,
) -> Vec<HeldCardRow<'a>> {
    let charges = holdings.charges.of_shares();
    charges.flat_map(|charge| pod_rows(charge, nodes.get(&*charge.node).copied())).collect()
}

fn card_row<'a>(node: &'a str, offered: &'a OfferedCard<'a>) -> CardRow<'a> {
    CardRow { node, index: offered.card.index.to_string(), model: model(&offered.card.model), offered }
}

/// A node's annotation says what model a card is: as much of it as a label should hold.
pub(super) fn model(text: &str) -> Cow<'_, str> {
    excerpt(text, FIELD)
}

fn pod_rows<'a>(
    charge: &'a Charge,
    cards: Option<&'a NodeCards<'a>>,
) -> impl Iterator<Item = HeldCardRow<'a>> {
    held_on(cards, &charge.allocations, charge.init).into_iter().map(|held| HeldCardRow {
        namespace: &charge.pod.namespace,
        pod: &charge.pod.name,
        node: &charge.node,
        model: model(held.model()),
        held,
    })
}
