//! The cards and the pods that hold some, as rows for metrics: text and numbers, found once for all of them.
//!
//! Names of metrics stand elsewhere.

use std::{borrow::Cow, collections::BTreeMap};

use super::Holdings;
use crate::{
    cluster::report::cards::{HeldCard, NodeCards, OfferedCard, held_on},
    excerpt::{FIELD, excerpt},
    scheduling::{
        PodKey,
        world::{ledger::Charge, node_state::NodeState},
    },
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
    pub(super) model: String,
    pub(super) held: HeldCard<'a>,
}

/// Every row.
pub(super) struct Rows<'a> {
    pub(super) cards: Vec<CardRow<'a>>,
    pub(super) pods: Vec<HeldCardRow<'a>>,
}

/// Each node that has cards.
pub(super) fn nodes(holdings: &Holdings) -> Vec<NodeRow<'_>> {
    let nodes = holdings
        .nodes
        .iter()
        .map(|node| NodeRow { state: node, cards: NodeCards::of(node, &holdings.dialects) });
    nodes.filter(|node| !node.cards.cards.is_empty()).collect()
}

impl<'a> Rows<'a> {
    /// The rows of these holdings, with the cards of each node.
    pub(super) fn of(holdings: &'a Holdings, nodes: &BTreeMap<&'a str, &'a NodeCards<'a>>) -> Self {
        let cards =
            nodes.iter().flat_map(|(node, cards)| cards.cards.iter().map(|card| card_row(node, card)));
        let pods = holdings
            .pods
            .iter()
            .flat_map(|(key, charge)| pod_rows((key, charge), nodes.get(&*charge.node).copied()));
        Self { cards: cards.collect(), pods: pods.collect() }
    }
}

fn card_row<'a>(node: &'a str, offered: &'a OfferedCard<'a>) -> CardRow<'a> {
    CardRow { node, index: offered.card.index.to_string(), model: model(&offered.card.model), offered }
}

/// A node's annotation says what model a card is: as much of it as a label should hold.
pub(super) fn model(text: &str) -> Cow<'_, str> {
    excerpt(text, FIELD)
}

fn pod_rows<'a>(
    (key, charge): (&'a PodKey, &'a Charge),
    cards: Option<&'a NodeCards<'a>>,
) -> impl Iterator<Item = HeldCardRow<'a>> {
    held_on(cards, &charge.allocations, charge.init).into_iter().map(|held| HeldCardRow {
        namespace: &key.namespace,
        pod: &key.name,
        node: &charge.node,
        model: model(held.model()).into_owned(),
        held,
    })
}
