//! A plan as it is printed.

mod row;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    objects::ClaimObject,
    pool::{CardSource, MigrationPool, PoolCard, PoolNode},
};
use crate::{device::MiB, dra::HeldDevices, object::Quantity};

use row::MigrationOutcome;
pub(super) use row::{ContainerRow, MigrationRow};

/// What the pods of a pool would be as claims.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPlan {
    device_class: String,
    driver: String,
    /// By name.
    nodes: Vec<PoolNodeRow>,
    /// In the order in which their claims are allocated.
    pods: Vec<MigrationRow>,
    /// The claims and templates that pods would use, each once.
    objects: Vec<ClaimObject>,
    /// What was assumed or could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
}

/// A node of the pool.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolNodeRow {
    name: String,
    /// From what its cards are known.
    source: CardSource,
    /// Those that the driver publishes, or would.
    cards: Vec<PoolCardRow>,
    /// Pods on it that ask for cards.
    pods: usize,
    /// Shares that these pods ask for.
    shares: u32,
    /// Pods whose claims are allocated on it, those that wait among them.
    given: usize,
    /// Pods on it whose claims are not allocated.
    not_given: usize,
}

/// A card and what claims would take of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PoolCardRow {
    device: String,
    uuid: String,
    product_name: String,
    shareable: bool,
    /// In MiB; absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<u64>,
    /// Whether a claim has it as a whole.
    whole: bool,
    /// How much claims take of each capacity.
    taken: BTreeMap<String, Quantity>,
}

/// The claims of a plan as kubectl takes them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct List<'a> {
    api_version: &'static str,
    kind: &'static str,
    items: &'a [ClaimObject],
}

impl MigrationPlan {
    /// The plan of a pool: what claims hold at its end, its pods and their objects.
    pub(super) fn of(
        pool: &MigrationPool<'_>,
        held: &HeldDevices,
        pods: Vec<MigrationRow>,
        objects: Vec<ClaimObject>,
    ) -> Self {
        let nodes = pool.nodes.iter().map(|node| PoolNodeRow::of(node, held, &pods)).collect();
        let (device_class, driver) = (pool.class.name.to_owned(), pool.class.driver.to_owned());
        Self { device_class, driver, nodes, pods, objects, notices: pool.notices.clone() }
    }

    /// Whether each pod would be given all that it asks for.
    pub fn is_complete(&self) -> bool {
        self.pods.iter().all(MigrationRow::is_served)
    }

    /// What was assumed or could not be read.
    pub(super) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The claims and templates alone.
    pub(super) fn list(&self) -> List<'_> {
        List { api_version: "v1", kind: "List", items: &self.objects }
    }
}

impl PoolNodeRow {
    fn of(node: &PoolNode, held: &HeldDevices, pods: &[MigrationRow]) -> Self {
        let here = || pods.iter().filter(|pod| pod.is_on(&node.name));
        Self {
            name: node.name.clone(),
            source: node.source,
            cards: node.cards.iter().map(|card| PoolCardRow::of(card, held)).collect(),
            pods: here().count(),
            shares: here().map(MigrationRow::shares).sum(),
            given: pods.iter().filter(|pod| pod.is_given_on(&node.name)).count(),
            not_given: here().filter(|pod| !pod.is_given()).count(),
        }
    }
}

impl PoolCardRow {
    fn of(card: &PoolCard, held: &HeldDevices) -> Self {
        let taken = held.of(&card.id);
        let amounts = taken.into_iter().flat_map(|taken| &taken.consumed);
        Self {
            device: card.id.device.to_string(),
            uuid: card.uuid.clone(),
            product_name: card.product.clone(),
            shareable: card.shareable,
            memory: card.memory.map(MiB::get),
            whole: taken.is_some_and(|taken| taken.whole),
            taken: amounts.map(|(name, amount)| (name.clone(), amount.binary())).collect(),
        }
    }
}
