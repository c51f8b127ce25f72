//! What came of a simulation, as JSON has it.

pub mod verdict;

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use self::verdict::SimulatedVerdict;
use super::{claims::ClaimRow, volume::VolumeRow};
use crate::{
    cluster::report::{
        ledger::{LedgerCard, LedgerNode},
        nearest::NearestRow,
    },
    dialect::Record,
    scheduling::{FitError, model::name::NodeName, plan::eviction::Eviction},
};

/// What came of a simulation.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Simulation {
    /// Every pod that wanted a place, in the order of the input.
    pub pods: Vec<SimulatedPod>,
    /// The pods of revocable zones that are closed, as far as their budgets let them go, in the order in which they are evicted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<EvictionRow>,
    /// How many more are evicted, which are not shown by name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_evictions: usize,
    /// Every node with its cards, by name, after all placements.
    pub nodes: Vec<LedgerNode>,
}

/// A pod that is evicted since its window has closed.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct EvictionRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The zone that is closed.
    pub zone: String,
}

impl EvictionRow {
    pub(super) fn of(eviction: &Eviction) -> Self {
        let Eviction { pod, zone, .. } = eviction;
        Self { namespace: pod.namespace.to_string(), name: pod.name.to_string(), zone: zone.to_string() }
    }
}

/// What came of a pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Deserialize, Serialize)]
pub enum SimulatedOutcome {
    /// It has a place.
    Bound,
    /// No node would have it.
    Unschedulable,
    /// The rules refuse it.
    Denied,
    /// It is not Berth's to place.
    Ignored,
}

/// One pod; a key that does not apply is absent.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SimulatedPod {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What came of it.
    pub outcome: SimulatedOutcome,
    /// Its node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The annotations of its Binding.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The labels of its Binding.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The locks that are taken on its node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockRow>,
    /// The claims that are bound with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<VolumeRow>>,
    /// The claims of devices that it uses, as they stand in the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimRow>,
    /// The node on which it would fit once its victims are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominated_node: Option<String>,
    /// The pods that would be preempted for it.
    #[serde(flatten)]
    pub victims: NamedVictims,
    /// Why no node would have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The node that comes closest to having it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestRow>,
    /// The warnings for the user who submits the pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why it was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<ViolationRow>,
    /// What each node, by name, makes of it.
    #[serde(skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<SimulatedVerdict>>,
    /// Its shares, for the table.
    #[serde(skip)]
    pub shares: String,
}

/// Pods that would be preempted for another.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedVictims {
    /// As `namespace/name`, the most important first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
    /// How many more would be, which are not shown by name.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_victims: usize,
}

/// One violation of a rule.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ViolationRow {
    /// The rule's name.
    pub rule: Cow<'static, str>,
    /// The field: a path from the document's root.
    pub field: String,
    /// What to change.
    pub message: String,
}

impl fmt::Display for ViolationRow {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}: {}", self.rule, self.field, self.message)
    }
}

/// A lock on a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LockRow {
    /// The annotation's key.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl SimulatedPod {
    /// A pod of which nothing has come yet.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            outcome: SimulatedOutcome::Ignored,
            node: None,
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
            locks: Vec::new(),
            volumes: None,
            claims: Vec::new(),
            nominated_node: None,
            victims: NamedVictims::default(),
            message: None,
            nearest: None,
            warnings: Vec::new(),
            violations: Vec::new(),
            nodes: None,
            shares: String::new(),
        }
    }

    /// It is refused for this.
    #[must_use]
    pub fn denied(self, violations: Vec<ViolationRow>, warnings: Vec<String>) -> Self {
        Self { outcome: SimulatedOutcome::Denied, violations, warnings, ..self }
    }

    /// No node would have it, for this.
    #[must_use]
    pub fn unschedulable(self, message: String) -> Self {
        Self { outcome: SimulatedOutcome::Unschedulable, message: Some(message), ..self }
    }

    /// It waits for this, and fits on no node for this error.
    pub(super) fn waiting(self, message: String, error: Option<&FitError>) -> Self {
        let nearest = error.and_then(FitError::nearest).map(NearestRow::of);
        Self { nearest, volumes: None, locks: Vec::new(), ..self.unschedulable(message) }
    }

    /// With the node that is kept for it, and the pods that would be preempted there; `None`: no node is.
    pub(super) fn nominated(self, node: Option<&NodeName>, victims: Vec<String>) -> Self {
        let victims = NamedVictims { victims, ..NamedVictims::default() };
        Self { nominated_node: node.map(ToString::to_string), victims, ..self }
    }

    /// With one more claim that is bound with it.
    pub(super) fn with_volume(mut self, volume: VolumeRow) -> Self {
        self.volumes.get_or_insert_default().push(volume);
        self
    }

    /// With the locks of its node, by their keys.
    pub(super) fn locked(self, locks: BTreeMap<String, String>) -> Self {
        Self { locks: locks.into_iter().map(|(key, value)| LockRow { key, value }).collect(), ..self }
    }

    /// It has this place.
    pub(super) fn bound(self, node: &NodeName, shares: &[String], record: Record) -> Self {
        Self {
            outcome: SimulatedOutcome::Bound,
            node: Some(node.to_string()),
            annotations: record.annotations,
            labels: record.labels,
            shares: shares.join(", "),
            ..self
        }
    }
}

impl Simulation {
    /// Says of pods that were read from JSON, which leaves it out, of which cards they have shares.
    pub fn name_cards(&mut self) {
        for pod in &mut self.pods {
            let full = format!("{}/{}", pod.namespace, pod.name);
            let node = self.nodes.iter().find(|node| Some(&node.name) == pod.node.as_ref());
            let cards = node
                .into_iter()
                .flat_map(|node| &node.cards)
                .filter(|card| card.holders.pods.contains(&full));
            let name = |card: &LedgerCard| {
                card.uuid.clone().or_else(|| card.index.map(|index| index.to_string())).unwrap_or_default()
            };
            pod.shares = cards.map(name).collect::<Vec<_>>().join(", ");
        }
    }

    /// Whether a pod was denied or does not fit.
    pub fn is_short(&self) -> bool {
        self.pods
            .iter()
            .any(|pod| matches!(pod.outcome, SimulatedOutcome::Denied | SimulatedOutcome::Unschedulable))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference over")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
