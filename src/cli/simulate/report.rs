//! The answer of `berth simulate`, as JSON has it and as tables.

mod verdict;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{
    api::nearest::NearestRow,
    cli::{
        documents::Document,
        output::Shown,
        review::ViolationRow,
        simulate::{claims::ClaimRow, volume::VolumeRow},
        table::Table,
    },
    cluster::report::ledger::{LedgerCard, LedgerNode},
    dialect::Record,
    scheduling::{FitError, model::name::NodeName, plan::eviction::Eviction},
};

pub(super) use verdict::{ReasonRow, SimulatedVerdict};

/// What came of a simulation.
#[derive(Clone, Debug, Serialize)]
pub struct Simulation {
    /// Every pod that wanted a place, in the order of the input.
    pub pods: Vec<SimulatedPod>,
    /// The pods of revocable zones that are closed, as far as their budgets let them go, in the order in which they are evicted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evictions: Vec<EvictionRow>,
    /// Every node with its cards, by name, after all placements.
    pub nodes: Vec<LedgerNode>,
}

/// A pod that is evicted since its window has closed.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The labels of its Binding.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The locks that are taken on its node.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockRow>,
    /// The claims that are bound with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<VolumeRow>>,
    /// The claims of devices that it uses, as they stand in the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<ClaimRow>,
    /// The node on which it would fit once its victims are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nominated_node: Option<String>,
    /// The pods that would be preempted for it, as `namespace/name`, the most important first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub victims: Vec<String>,
    /// Why no node would have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The node that comes closest to having it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<NearestRow>,
    /// The warnings for the user who submits the pod.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<ViolationRow>,
    /// What each node, by name, makes of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<SimulatedVerdict>>,
    /// Its shares, for the table.
    #[serde(skip)]
    shares: String,
}

/// A lock on a node.
#[derive(Clone, Debug, Serialize)]
pub struct LockRow {
    /// The annotation's key.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl SimulatedPod {
    /// A pod of which nothing has come yet.
    pub fn new(document: &Document) -> Self {
        Self {
            namespace: document.namespace_or_default().to_owned(),
            name: document.name().unwrap_or_default().to_owned(),
            outcome: SimulatedOutcome::Ignored,
            node: None,
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
            locks: Vec::new(),
            volumes: None,
            claims: Vec::new(),
            nominated_node: None,
            victims: Vec::new(),
            message: None,
            nearest: None,
            warnings: Vec::new(),
            violations: Vec::new(),
            nodes: None,
            shares: String::new(),
        }
    }

    pub(super) fn denied(self, violations: Vec<ViolationRow>, warnings: Vec<String>) -> Self {
        Self { outcome: SimulatedOutcome::Denied, violations, warnings, ..self }
    }

    pub(super) fn unschedulable(self, message: String) -> Self {
        Self { outcome: SimulatedOutcome::Unschedulable, message: Some(message), ..self }
    }

    /// It waits for this, and fits on no node for this error.
    pub(super) fn waiting(self, message: String, error: Option<&FitError>) -> Self {
        let nearest = error.and_then(FitError::nearest).map(NearestRow::of);
        Self { nearest, volumes: None, locks: Vec::new(), ..self.unschedulable(message) }
    }

    /// With the node that is kept for it, and the pods that would be preempted there; `None`: no node is.
    pub(super) fn nominated(self, node: Option<&NodeName>, victims: Vec<String>) -> Self {
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

    /// What there is to say beside outcome and node, line by line.
    fn remarks(&self, nodes: &[String]) -> Vec<String> {
        let shares = (!self.shares.is_empty()).then(|| self.shares.clone());
        let preempts = self
            .nominated_node
            .as_ref()
            .map(|node| format!("would preempt on {node}: {}", self.victims.join(", ")));
        let claims = self.claims.iter().filter_map(ClaimRow::remark);
        let violations = self.violations.iter().map(ToString::to_string);
        let warnings = self.warnings.iter().map(|warning| format!("warning: {warning}"));
        let asked = |verdict: &&SimulatedVerdict| nodes.is_empty() || nodes.contains(&verdict.name);
        let nodes = verdict::lines(self.nodes.iter().flatten().filter(asked));
        shares
            .into_iter()
            .chain(claims)
            .chain(self.message.clone())
            .chain(preempts)
            .chain(violations)
            .chain(warnings)
            .chain(nodes)
            .collect()
    }
}

impl Simulation {
    /// Whether a pod was denied or does not fit.
    pub fn is_short(&self) -> bool {
        self.pods
            .iter()
            .any(|pod| matches!(pod.outcome, SimulatedOutcome::Denied | SimulatedOutcome::Unschedulable))
    }

    /// The pods, then the cards. Of nodes, only these are told of; of all, where none is named.
    pub fn table(&self, nodes: &[String]) -> Shown {
        let mut pods = Table::new(&["NAMESPACE", "NAME", "OUTCOME", "NODE", "REMARKS"]);
        for pod in &self.pods {
            let mut remarks = pod.remarks(nodes).into_iter();
            let (outcome, node) = (format!("{:?}", pod.outcome), pod.node.clone().unwrap_or_default());
            let first = remarks.next().unwrap_or_default();
            pods.row([pod.namespace.clone(), pod.name.clone(), outcome, node, first]);
            remarks.for_each(|remark| pods.row(["", "", "", "", remark.as_str()]));
        }
        pods.render().and(&self.evicted()).and(&Shown::line("")).and(&self.cards(nodes))
    }

    /// The pods that are evicted; nothing where there are none.
    fn evicted(&self) -> Shown {
        if self.evictions.is_empty() {
            return Shown::default();
        }
        let mut evicted = Table::new(&["NAMESPACE", "EVICTED", "ZONE"]);
        for EvictionRow { namespace, name, zone } in &self.evictions {
            evicted.row([namespace, name, zone].map(String::as_str));
        }
        Shown::line("").and(&evicted.render())
    }

    fn cards(&self, nodes: &[String]) -> Shown {
        let asked = |node: &&LedgerNode| nodes.is_empty() || nodes.contains(&node.name);
        let mut cards = Table::new(&["NODE", "CARD", "HEALTHY", "SLOTS", "MEMORY", "CORES", "PODS"]);
        for (node, card) in
            self.nodes.iter().filter(asked).flat_map(|node| node.cards.iter().map(move |card| (node, card)))
        {
            cards.row([
                node.name.clone(),
                card.uuid.clone().or_else(|| card.index.map(|index| index.to_string())).unwrap_or_default(),
                card.healthy.to_string(),
                format!("{}/{}", card.slots_used, card.slots),
                format!("{}/{}", card.memory_used, card.memory),
                format!("{}/{}", card.cores_used, card.cores),
                holders(card),
            ]);
        }
        cards.render()
    }
}

/// The pods that hold shares of a card, and the claims that hold some of it.
fn holders(card: &LedgerCard) -> String {
    let claims = card.claims.iter().map(|claim| format!("claim {claim}"));
    card.pods.iter().cloned().chain(claims).collect::<Vec<_>>().join(",")
}
