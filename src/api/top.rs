//! What is used of the cards of a cluster: by node, by model and by namespace. Values only; how they are printed is not known here.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{
    ApiError,
    bound::BoundRow,
    closed::closed,
    fleet::CountedFleet,
    gpu_parts::{GpuParts, thousandths},
    viewer::Viewer,
};
use crate::{
    cluster::report::{
        cards::{HeldCard, NodeCards, OfferedCard, held_on},
        gpus::TypicalPods,
        overview::Overview,
    },
    device::{CardId, CardUsage},
    dialect::Dialects,
    scheduling::world::{World, ledger::Charges, node_state::NodeState},
};

/// What is used of the cards of a cluster.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ClusterUsage {
    /// Nodes that have cards.
    pub nodes: Vec<NodeUsage>,
    /// Models of their cards.
    pub models: Vec<ModelUsage>,
    /// Namespaces whose pods hold or want some of a card, or that have a quota of it.
    pub namespaces: Vec<NamespaceUsage>,
}

/// Whose shares count as used.
#[derive(Clone, Copy, Debug)]
pub enum UsageScope<'a> {
    /// All that is given away.
    Everything,
    /// Those of the pods of one namespace.
    Namespace(&'a str),
}

/// How much there is of some cards, and how much of it is used.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsedAmounts {
    /// MiB.
    pub memory: u64,
    /// MiB.
    pub memory_used: u64,
    /// Compute in percent of one card: 200 are two cards.
    #[serde(serialize_with = "thousandths")]
    pub cores: f64,
    /// In percent of one card.
    #[serde(serialize_with = "thousandths")]
    pub cores_used: f64,
    /// How many containers can share the cards.
    pub slots: u64,
    /// How many do.
    pub slots_used: u64,
}

/// One card.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsedCard {
    /// The card; one that is known by its number only has `index` instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
    /// Its number, where no plugin tells its uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<u32>,
    /// As its plugin spells it.
    pub model: Arc<str>,
    /// Whether its plugin says that it works.
    pub healthy: bool,
    /// How much of it is used.
    #[serde(flatten)]
    pub amounts: UsedAmounts,
}

/// A node that has cards.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeUsage {
    /// Its name.
    pub name: String,
    /// Why pods without tolerations do not go there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub closed: BTreeSet<Cow<'static, str>>,
    /// By plugin, then by number.
    pub cards: Vec<UsedCard>,
    /// All of its cards together.
    #[serde(flatten)]
    pub amounts: UsedAmounts,
    /// The same in parts of a card.
    #[serde(flatten)]
    pub gpus: GpuParts,
    /// Pods that hold some of a card.
    pub pods: u64,
}

/// All cards of one model.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// As device plugins spell it.
    pub model: Arc<str>,
    /// Nodes that have such cards.
    pub nodes: u64,
    /// How many there are.
    pub cards: u64,
    /// How many of them work.
    pub healthy: u64,
    /// All of them together.
    #[serde(flatten)]
    pub amounts: UsedAmounts,
    /// The same in parts of a card.
    #[serde(flatten)]
    pub gpus: GpuParts,
    /// Pods that hold some of one.
    pub pods: u64,
}

/// The pods of one namespace.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceUsage {
    /// The namespace; empty: those that the viewer may not see.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// How many namespaces the viewer may not see; all of them are one row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<u64>,
    /// Pods that hold some of a card.
    pub pods: u64,
    /// Pods that wait to be placed by Berth.
    pub waiting: u64,
    /// What the pods hold in parts of a card: of each card the larger part of its memory and compute.
    #[serde(serialize_with = "thousandths")]
    pub gpus: f64,
    /// What they hold, and what the whole cluster has.
    #[serde(flatten)]
    pub amounts: UsedAmounts,
    /// Models of the cards that they hold.
    pub models: BTreeSet<Arc<str>>,
    /// Quotas of shares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<BoundRow>,
}

/// A node, its cards, and what the pods in question hold of each.
struct CountedNode<'a> {
    state: &'a NodeState,
    cards: NodeCards<'a>,
    /// By card, where not everything that is given away counts.
    held: HashMap<CardId, CardUsage>,
    pods: u64,
    /// By model, how many pods hold some.
    pods_of_model: BTreeMap<Arc<str>, u64>,
}

/// The rows of namespaces.
struct NamespaceRows {
    /// All cards of the cluster, none of which is used.
    whole: UsedAmounts,
    rows: BTreeMap<String, NamespaceUsage>,
}

impl UsedAmounts {
    fn add(&mut self, other: &Self) {
        self.memory += other.memory;
        self.memory_used += other.memory_used;
        self.cores += other.cores;
        self.cores_used += other.cores_used;
        self.slots += other.slots;
        self.slots_used += other.slots_used;
    }

    /// Of one card, of which so much is used.
    fn of(card: &OfferedCard<'_>, used: CardUsage) -> Self {
        Self {
            memory: card.card.memory.get(),
            memory_used: used.memory.get(),
            cores: card.ratio(card.cores) * 100.0,
            cores_used: card.ratio(used.cores) * 100.0,
            slots: card.card.slots.into(),
            slots_used: used.slots.into(),
        }
    }

    /// What a pod holds of one card.
    fn held(held: &HeldCard<'_>) -> Self {
        Self {
            memory_used: held.used.memory.get(),
            cores_used: held.ratio() * 100.0,
            slots_used: held.used.slots.into(),
            ..Self::default()
        }
    }

    /// The part of the memory that is used, from 0.
    #[expect(clippy::cast_precision_loss, reason = "a part of some cards")]
    pub fn memory_part(&self) -> f64 {
        if self.memory == 0 { 0.0 } else { self.memory_used as f64 / self.memory as f64 }
    }

    /// The part of the compute that is used, from 0.
    pub fn cores_part(&self) -> f64 {
        if self.cores <= 0.0 { 0.0 } else { self.cores_used / self.cores }
    }

    /// Whether nothing is used.
    pub fn is_unused(&self) -> bool {
        self.memory_used == 0 && self.cores_used <= 0.0 && self.slots_used == 0
    }

    /// The larger of both.
    pub fn larger_part(&self) -> f64 {
        self.memory_part().max(self.cores_part())
    }
}

impl NodeUsage {
    /// The models of its cards, by name.
    pub fn models(&self) -> BTreeSet<&str> {
        self.cards.iter().map(|card| &*card.model).collect()
    }
}

impl ClusterUsage {
    /// What these pods use of the cards of a cluster. `waiting`: by namespace, how many pods wait.
    pub fn of(
        world: &World,
        holders: &Charges,
        dialects: &Dialects,
        waiting: &BTreeMap<String, u64>,
        scope: UsageScope<'_>,
    ) -> Self {
        let mut nodes: Vec<CountedNode<'_>> = world
            .nodes()
            .map(|state| CountedNode::of(state, dialects))
            .filter(|node| !node.cards.cards.is_empty())
            .collect();
        let namespaces = namespaces(world, holders, &mut nodes, waiting, scope);
        let mut typical = TypicalPods::of_shapes(world.packing().shared_shapes().into_iter());
        let mut models: BTreeMap<Arc<str>, ModelUsage> = BTreeMap::new();
        let rows = nodes.iter().map(|node| node.usage(&mut typical, &mut models, scope));
        let mut nodes: Vec<NodeUsage> = rows.collect();
        let mut models: Vec<ModelUsage> = models.into_values().collect();
        if let UsageScope::Namespace(_) = scope {
            nodes.retain(|node| node.pods > 0);
            models.retain(|model| model.pods > 0);
        }
        Self { nodes, models, namespaces }
    }

    /// The same for a viewer: what the pods of namespaces hold that she may not see is one row, without their quotas.
    fn shown_to(mut self, viewer: &Viewer) -> Self {
        let (seen, hidden) = self.namespaces.into_iter().partition(|row| viewer.sees(&row.namespace));
        self.namespaces = seen;
        self.namespaces.extend(NamespaceUsage::together(hidden));
        self
    }

    /// All cards together.
    pub fn total(&self) -> UsedAmounts {
        let mut total = UsedAmounts::default();
        self.nodes.iter().for_each(|node| total.add(&node.amounts));
        total
    }
}

impl<'a> CountedNode<'a> {
    fn of(state: &'a NodeState, dialects: &Dialects) -> Self {
        let cards = NodeCards::of(state, dialects);
        Self { state, cards, held: HashMap::new(), pods: 0, pods_of_model: BTreeMap::new() }
    }

    /// A pod holds these cards.
    fn hold(&mut self, held: &[(CardId, Arc<str>, CardUsage)]) {
        self.pods += 1;
        let models: BTreeSet<_> = held.iter().map(|(_, model, _)| model).collect();
        for model in models {
            *self.pods_of_model.entry(model.clone()).or_default() += 1;
        }
        for (id, _, used) in held {
            let sum = self.held.entry(id.clone()).or_default();
            *sum = sum.and(*used);
        }
    }

    fn card(&self, card: &OfferedCard<'_>, scope: UsageScope<'_>) -> UsedCard {
        let used = match scope {
            UsageScope::Everything => card.used,
            UsageScope::Namespace(_) => self.held.get(&card.card.id).copied().unwrap_or_default(),
        };
        UsedCard {
            uuid: card.uuid().map(ToString::to_string),
            index: card.number(),
            model: card.card.model.clone(),
            healthy: card.is_healthy(),
            amounts: UsedAmounts::of(card, used),
        }
    }

    /// The node's row; the rows of its models are added to.
    fn usage(
        &self,
        typical: &mut TypicalPods,
        models: &mut BTreeMap<Arc<str>, ModelUsage>,
        scope: UsageScope<'_>,
    ) -> NodeUsage {
        let cards: Vec<_> = self.cards.cards.iter().map(|card| self.card(card, scope)).collect();
        let mut amounts = UsedAmounts::default();
        let mut of_node: BTreeSet<&Arc<str>> = BTreeSet::new();
        for card in &cards {
            amounts.add(&card.amounts);
            let row = models
                .entry(card.model.clone())
                .or_insert_with(|| ModelUsage { model: card.model.clone(), ..ModelUsage::default() });
            row.cards += 1;
            row.healthy += u64::from(card.healthy);
            row.amounts.add(&card.amounts);
            if of_node.insert(&card.model) {
                row.nodes += 1;
                row.pods += self.pods_of_model.get(&card.model).copied().unwrap_or_default();
            }
        }
        let mut gpus = GpuParts::default();
        let found = typical.on(self.state, &self.cards);
        for (model, of_model) in found.by_model() {
            gpus.add(of_model);
            models.entry(model.clone()).or_default().gpus.add(of_model);
        }
        for (card, lack, stranded) in found.stranded() {
            gpus.strand(lack, stranded);
            models.entry(card.card.model.clone()).or_default().gpus.strand(lack, stranded);
        }
        NodeUsage {
            name: self.state.info.name.to_string(),
            closed: closed(&self.state.info).into_iter().map(Cow::Borrowed).collect(),
            cards,
            amounts,
            gpus,
            pods: self.pods,
        }
    }
}

/// The rows of the namespaces. What each pod holds is added to its node.
fn namespaces(
    world: &World,
    holders: &Charges,
    nodes: &mut [CountedNode<'_>],
    waiting: &BTreeMap<String, u64>,
    scope: UsageScope<'_>,
) -> Vec<NamespaceUsage> {
    let counts = |namespace: &str| match scope {
        UsageScope::Everything => true,
        UsageScope::Namespace(only) => namespace == only,
    };
    let mut whole = UsedAmounts::default();
    for card in nodes.iter().flat_map(|node| &node.cards.cards) {
        whole.add(&UsedAmounts::of(card, CardUsage::default()));
    }
    let mut rows = NamespaceRows { whole, rows: BTreeMap::new() };
    let places: HashMap<String, usize> =
        nodes.iter().enumerate().map(|(at, node)| (node.state.info.name.to_string(), at)).collect();
    for charge in holders.of_shares().filter(|charge| counts(&charge.pod.namespace)) {
        let place = places.get(&*charge.node).copied();
        let cards = place.map(|place| &nodes[place].cards);
        let held = held_on(cards, &charge.allocations, charge.init);
        if held.is_empty() {
            continue;
        }
        rows.of(&charge.pod.namespace).hold(&held);
        let of_card = |held: HeldCard<'_>| Some((held.id, held.card?.card.model.clone(), held.used));
        let held: Vec<_> = held.into_iter().filter_map(of_card).collect();
        if let Some(place) = place {
            nodes[place].hold(&held);
        }
    }
    for (namespace, pods) in waiting.iter().filter(|(namespace, _)| counts(namespace)) {
        rows.of(namespace).waiting = *pods;
    }
    for standing in world.quotas().standings().filter(|one| counts(one.namespace)) {
        rows.of(standing.namespace).quotas.push(standing.into());
    }
    rows.rows.into_values().collect()
}

impl NamespaceRows {
    fn of(&mut self, namespace: &str) -> &mut NamespaceUsage {
        self.rows.entry(namespace.to_owned()).or_insert_with(|| NamespaceUsage {
            namespace: namespace.to_owned(),
            amounts: self.whole,
            ..NamespaceUsage::default()
        })
    }
}

impl NamespaceUsage {
    /// One row for these, without names and quotas.
    fn together(rows: Vec<Self>) -> Option<Self> {
        let mut all = Self { others: Some(rows.len() as u64), ..Self::default() };
        for row in rows {
            all.pods += row.pods;
            all.waiting += row.waiting;
            all.gpus += row.gpus;
            all.models.extend(row.models);
            // Of what there is, each row has the whole cluster.
            let used = UsedAmounts { memory: 0, cores: 0.0, slots: 0, ..row.amounts };
            let whole = UsedAmounts { memory_used: 0, cores_used: 0.0, slots_used: 0, ..row.amounts };
            let mut amounts = UsedAmounts {
                memory_used: all.amounts.memory_used,
                cores_used: all.amounts.cores_used,
                slots_used: all.amounts.slots_used,
                ..whole
            };
            amounts.add(&used);
            all.amounts = amounts;
        }
        all.others.is_some_and(|others| others > 0).then_some(all)
    }

    /// A pod holds these cards.
    fn hold(&mut self, held: &[HeldCard<'_>]) {
        self.pods += 1;
        for held in held {
            self.amounts.add(&UsedAmounts::held(held));
            self.gpus += part_of_card(held);
            self.models.extend(held.card.map(|card| card.card.model.clone()));
        }
    }
}

/// The larger part of the card's memory and compute that a pod holds; of a card that is not there its compute alone is known.
fn part_of_card(held: &HeldCard<'_>) -> f64 {
    let Some(card) = held.card else { return held.ratio() };
    UsedAmounts::of(card, held.used).larger_part()
}

/// What a viewer is shown of what is used; of one namespace's pods alone, where she asks for that.
pub(super) fn page(
    fleet: &CountedFleet,
    namespace: Option<&str>,
    viewer: &Viewer,
) -> Result<ClusterUsage, ApiError> {
    if let Some(namespace) = namespace {
        viewer.check(namespace)?;
    }
    let Overview { view, holders, pending, .. } = &fleet.overview;
    let mut waiting = BTreeMap::<String, u64>::new();
    for pod in pending {
        *waiting.entry(pod.key.namespace.to_string()).or_default() += 1;
    }
    let scope = namespace.map_or(UsageScope::Everything, UsageScope::Namespace);
    let usage = ClusterUsage::of(view.outlook.world(), holders, view.reader.dialects(), &waiting, scope);
    Ok(usage.shown_to(viewer))
}
