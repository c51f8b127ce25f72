//! One pod of a plan.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    cli::migrate::{objects::Used, pool::PoolNode},
    dialect::{Dialect, claim::Unexpressed},
    object::{Pod, Quantity, resource_claim::AllocationResult},
};

/// What would become of a pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(in crate::cli::migrate) enum MigrationOutcome {
    /// Its claim would be allocated.
    Fits,
    /// Its claim could not be allocated.
    DoesNotFit,
    /// There is no claim that asks for the same.
    NoClaim,
}

/// A pod of the pool.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::cli::migrate) struct MigrationRow {
    pub(super) namespace: String,
    pub(super) name: String,
    /// The node that it runs on; absent: it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<String>,
    pub(super) outcome: MigrationOutcome,
    /// The mode in which it asks for shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    /// How many shares of cards it asks for.
    shares: u32,
    /// The cards that it has now, as its annotations say.
    pub(super) cards: Vec<String>,
    /// The object from which it would have its claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) claim: Option<Used>,
    /// The containers that would use a request of the claim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    containers: Vec<ContainerRow>,
    /// The node on which its claim would be allocated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allocated_on: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) devices: Vec<GivenDeviceRow>,
    /// Why it does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// What the claim leaves out, or why there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unexpressed: Vec<UnexpressedRow>,
}

/// A container and the request whose devices it would use.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli::migrate) struct ContainerRow {
    pub(in crate::cli::migrate) name: String,
    pub(in crate::cli::migrate) request: String,
}

/// A device that the pod would be given.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli::migrate) struct GivenDeviceRow {
    request: String,
    pool: String,
    pub(super) device: String,
    uuid: String,
    /// The share's part of each capacity; empty: the whole card.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) capacity: BTreeMap<String, Quantity>,
}

/// What a claim can't say.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli::migrate) struct UnexpressedRow {
    field: String,
    reason: String,
}

impl MigrationRow {
    /// A pod without any request so far.
    pub(in crate::cli::migrate) fn new(pod: &Pod, node: Option<String>) -> Self {
        Self {
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            node,
            outcome: MigrationOutcome::NoClaim,
            mode: None,
            shares: 0,
            cards: Vec::new(),
            claim: None,
            containers: Vec::new(),
            allocated_on: None,
            devices: Vec::new(),
            message: None,
            unexpressed: Vec::new(),
        }
    }

    /// With what it asks for and has.
    pub(in crate::cli::migrate) fn asking(self, dialect: &dyn Dialect, pod: &Pod, shares: u32) -> Self {
        let carried = dialect.assignment(pod).ok().flatten();
        let cards = carried.iter().flat_map(|carried| carried.assignment.shares());
        let cards = cards.map(|share| share.card.to_string()).collect();
        Self { mode: Some(dialect.mode().to_string()), shares, cards, ..self }
    }

    /// With the claim that it would have.
    pub(in crate::cli::migrate) fn claiming(
        self,
        claim: Used,
        containers: Vec<ContainerRow>,
        left_out: Vec<Unexpressed>,
    ) -> Self {
        Self { claim: Some(claim), containers, unexpressed: rows(left_out), ..self }
    }

    /// Without any claim.
    pub(in crate::cli::migrate) fn inexpressible(self, reasons: Vec<Unexpressed>) -> Self {
        Self { outcome: MigrationOutcome::NoClaim, unexpressed: rows(reasons), ..self }
    }

    /// With the devices that its claim would be given.
    pub(in crate::cli::migrate) fn given(self, node: &PoolNode, allocation: &AllocationResult) -> Self {
        let results = allocation.devices.results.iter();
        let devices = results.map(|result| {
            let card = node.cards.iter().find(|card| *card.id.device == *result.device);
            GivenDeviceRow {
                request: result.request.clone(),
                pool: result.pool.clone(),
                device: result.device.clone(),
                uuid: card.map(|card| card.uuid.clone()).unwrap_or_default(),
                capacity: result.consumed_capacity.clone(),
            }
        });
        let (devices, allocated_on) = (devices.collect(), Some(node.name.clone()));
        Self { outcome: MigrationOutcome::Fits, devices, allocated_on, ..self }
    }

    /// With a claim that is given nothing.
    pub(in crate::cli::migrate) fn refused(self, message: String) -> Self {
        Self { outcome: MigrationOutcome::DoesNotFit, message: Some(message), ..self }
    }

    /// Whether it would be given all that it asks for.
    pub(super) fn is_served(&self) -> bool {
        self.is_given() && self.unexpressed.is_empty()
    }

    pub(super) fn is_given(&self) -> bool {
        self.outcome == MigrationOutcome::Fits
    }

    pub(super) fn is_given_on(&self, node: &str) -> bool {
        self.allocated_on.as_deref() == Some(node)
    }

    pub(super) fn is_on(&self, node: &str) -> bool {
        self.node.as_deref() == Some(node)
    }

    pub(super) fn shares(&self) -> u32 {
        self.shares
    }

    /// Every remark on it.
    pub(super) fn remarks(&self) -> Vec<String> {
        let left_out = self.unexpressed.iter().map(|one| format!("{}: {}", one.field, one.reason));
        self.message.iter().cloned().chain(left_out).collect()
    }
}

fn rows(unexpressed: Vec<Unexpressed>) -> Vec<UnexpressedRow> {
    let row = |Unexpressed { field, reason }| UnexpressedRow { field, reason };
    unexpressed.into_iter().map(row).collect()
}
