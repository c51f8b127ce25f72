//! All nodes with cards, who holds what of them, and what of the rest is of use: counted once for everybody who looks, shown to each as far as
//! she may see it.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    closed::closed,
    fits::{FittingSizes, sizes},
    gpu_parts::{GpuParts, thousandths},
    viewer::{Viewer, ViewerRow},
};
use crate::{
    cluster::report::{
        cards::{HeldCard, NodeCards, OfferedCard},
        gpus::{
            FittedPods, Lack, fitting,
            models::{FleetCount, FleetGpus},
        },
        overview::{Leading, Overview},
    },
    excerpt::{VALUE, excerpt},
    scheduling::{
        NodeName,
        pending::PendingReason,
        world::{
            ledger::Charge,
            node_state::{Agent, NodeState},
        },
    },
};

/// The cluster as one replica saw it at one moment.
#[derive(Debug)]
pub(super) struct CountedFleet {
    /// What it was counted from.
    pub(super) overview: Overview,
    /// Grows with every change of what is shown.
    pub(super) version: u64,
    models: Vec<ModelSummary>,
    fits: BTreeMap<String, FittedPods>,
    waiting: WaitingSummary,
    nodes: BTreeMap<NodeName, FleetNode>,
    /// The namespaces of the pods that hold something or wait.
    pub(super) namespaces: BTreeSet<Arc<str>>,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct FleetNode {
    state: Arc<NodeState>,
    /// The version of the fleet in which it changed last.
    version: u64,
    closed: Vec<&'static str>,
    cards: Vec<FleetCard>,
}

/// A card, whoever looks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FleetCard {
    amounts: CardAmounts,
    stranded: Option<Lack>,
    /// By namespace and name.
    shares: Vec<CardShare>,
}

/// What a card is, and what of it is given away.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CardAmounts {
    /// Its uuid; `NODE/INDEX` where it has none.
    id: String,
    index: u32,
    model: String,
    healthy: bool,
    /// MiB.
    memory: u64,
    memory_used: u64,
    /// Percent of the card, or its own units.
    cores: u32,
    cores_used: u32,
    slots: u32,
    slots_used: u32,
}

/// What one pod holds of a card.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct CardShare {
    namespace: Arc<str>,
    pod: Arc<str>,
    memory: u64,
    cores: u32,
    /// When the pod was started.
    since: Option<Timestamp>,
}

/// All cards of one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ModelSummary {
    model: String,
    /// Those that work.
    #[serde(serialize_with = "thousandths")]
    cards: f64,
    #[serde(flatten)]
    gpus: GpuParts,
    fits: Vec<FittingPods>,
}

/// How many pods of one size would fit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct FittingPods {
    cards: u32,
    percent: f64,
    pods: u64,
}

/// The pods that wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct WaitingSummary {
    pods: usize,
    reasons: Vec<ReasonCount>,
}

/// How many pods wait for one reason; a pod counts once for each of its reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ReasonCount {
    reason: String,
    pods: usize,
}

/// The fleet as one viewer sees it.
#[derive(Debug, Serialize)]
pub(super) struct FleetPage<'a> {
    at: Timestamp,
    /// For `?since=`.
    version: String,
    leads: bool,
    viewer: ViewerRow<'a>,
    models: &'a [ModelSummary],
    waiting: &'a WaitingSummary,
    /// How many nodes there are, if `nodes` holds only those that have changed.
    #[serde(rename = "nodesInAll", skip_serializing_if = "Option::is_none")]
    nodes_in_all: Option<usize>,
    nodes: Vec<ShownNode<'a>>,
}

/// A node as one viewer sees it.
#[derive(Debug, Serialize)]
pub(super) struct ShownNode<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    closed: &'a [&'static str],
    cards: Vec<ShownCard<'a>>,
}

/// A card as one viewer sees it.
#[derive(Debug, Serialize)]
pub(super) struct ShownCard<'a> {
    #[serde(flatten)]
    amounts: &'a CardAmounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    stranded: Option<&'static str>,
    shares: Vec<ShownShare<'a>>,
}

/// What pods hold of a card.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ShownShare<'a> {
    /// One pod that the viewer may see.
    Pod {
        namespace: &'a str,
        pod: &'a str,
        memory: u64,
        cores: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        since: Option<Timestamp>,
    },
    /// All that she may not see.
    Others { others: usize, memory: u64, cores: u32 },
}

impl CountedFleet {
    /// Counts what an overview shows. What has not changed since `before` keeps its version.
    pub(super) fn of(overview: Overview, before: Option<&Self>) -> Self {
        let version = before.map_or(1, |before| before.version + 1);
        let Overview { view, holders, pending, .. } = &overview;
        let (world, dialects) = (view.outlook.world(), view.reader.dialects());
        let mut on_node: HashMap<&str, Vec<&Charge>> = HashMap::new();
        for charge in holders.of_shares() {
            on_node.entry(&charge.node).or_default().push(charge);
        }
        let with_cards: Vec<_> = world.nodes().map(|state| (state, NodeCards::of(state, dialects))).collect();
        let mut count = FleetCount::of_shapes(&world.packing().shared_shapes());
        let (mut nodes, mut fits) = (BTreeMap::new(), BTreeMap::<String, FittedPods>::new());
        for (state, cards) in with_cards.iter().filter(|(_, cards)| !cards.cards.is_empty()) {
            let stranded = count.add(state, cards);
            if closed(&state.info).is_empty() {
                for (model, pods) in fitting(cards) {
                    let sums = fits.entry(excerpt(model, VALUE).into_owned()).or_default();
                    sums.iter_mut().zip(pods).for_each(|(sum, pods)| *sum += pods);
                }
            }
            let name = &state.info.name;
            let known = before.and_then(|before| before.nodes.get(name));
            let pods = on_node.get(&**name).map(Vec::as_slice).unwrap_or_default();
            nodes.insert(name.clone(), FleetNode::of(state, cards, &stranded, pods, known, version));
        }
        let models = count.into_models();
        let models =
            models.iter().map(|(model, gpus)| ModelSummary::of(model, gpus, fits.get(&**model))).collect();
        let namespaces =
            holders.of_shares().map(|charge| &charge.pod).chain(pending.iter().map(|pod| &pod.key));
        let namespaces = namespaces.map(|key| key.namespace.clone()).collect();
        let waiting = WaitingSummary::of(pending.iter().map(|pod| pod.reason.as_ref()));
        let fleet = Self { overview, version, models, fits, waiting, nodes, namespaces };
        match before {
            Some(before) if fleet.is_as(before) => Self { version: before.version, ..fleet },
            _ => fleet,
        }
    }

    /// Whether nobody sees anything else than before.
    fn is_as(&self, before: &Self) -> bool {
        let order = |fleet: &Self| {
            let pods = fleet.overview.pending.iter();
            pods.map(|pod| (pod.key.uid.clone(), pod.attempts)).collect::<Vec<_>>()
        };
        self.models == before.models
            && self.waiting == before.waiting
            && self.nodes.len() == before.nodes.len()
            && self.nodes.values().all(|node| node.version < self.version)
            && self.overview.leading == before.overview.leading
            && order(self) == order(before)
    }

    /// Everything that the viewer may see; `since`: of nodes only those that have changed since that version.
    pub(super) fn shown<'a>(
        &'a self,
        viewer: &'a Viewer,
        version: String,
        since: Option<u64>,
    ) -> FleetPage<'a> {
        let changed = self.nodes.values().filter(|node| since.is_none_or(|since| node.version > since));
        FleetPage {
            at: self.overview.at,
            version,
            leads: self.overview.leading == Leading::Yes,
            viewer: viewer.row(),
            models: &self.models,
            waiting: &self.waiting,
            nodes_in_all: since.map(|_| self.nodes.len()),
            nodes: changed.map(|node| node.shown(viewer)).collect(),
        }
    }

    /// What would fit.
    pub(super) fn fits(&self) -> FittingSizes {
        FittingSizes::of(self.fits.iter().map(|(model, pods)| (&**model, *pods)))
    }

    /// A node with cards.
    pub(super) fn node(&self, name: &str) -> Option<&FleetNode> {
        self.nodes.get(name)
    }

    /// A card and its node.
    pub(super) fn card(&self, id: &str) -> Option<(&NodeName, &FleetCard)> {
        let mut cards =
            self.nodes.iter().flat_map(|(name, node)| node.cards.iter().map(move |card| (name, card)));
        cards.find(|(_, card)| card.amounts.id == id)
    }
}

impl FleetNode {
    fn of(
        state: &Arc<NodeState>,
        cards: &NodeCards<'_>,
        stranded: &[(&OfferedCard<'_>, Lack)],
        pods: &[&Charge],
        known: Option<&Self>,
        version: u64,
    ) -> Self {
        let name = &state.info.name;
        // What pods hold changes with the state of their node, and when they start without it.
        let same = known.filter(|known| Arc::ptr_eq(&known.state, state) && known.has_started());
        let mut shares = match same {
            Some(known) => known.cards.iter().map(|card| card.shares.clone()).collect(),
            None => shares(cards, pods),
        };
        let card = |(offered, shares): (&OfferedCard<'_>, &mut Vec<CardShare>)| FleetCard {
            amounts: CardAmounts::of(name, offered),
            stranded: stranded
                .iter()
                .find(|(card, _)| card.card.id == offered.card.id)
                .map(|(_, lack)| *lack),
            shares: std::mem::take(shares),
        };
        let cards = cards.cards.iter().zip(&mut shares).map(card).collect();
        let closed = closed_for(state);
        let unchanged = known.filter(|known| (&known.closed, &known.cards) == (&closed, &cards));
        Self {
            state: state.clone(),
            version: unchanged.map_or(version, |known| known.version),
            closed,
            cards,
        }
    }

    /// Whether it is known of every pod on it when it was started.
    fn has_started(&self) -> bool {
        self.cards.iter().flat_map(|card| &card.shares).all(|share| share.since.is_some())
    }

    /// As one viewer sees it.
    pub(super) fn shown(&self, viewer: &Viewer) -> ShownNode<'_> {
        ShownNode {
            name: &self.state.info.name,
            closed: &self.closed,
            cards: self.cards.iter().map(|card| card.shown(viewer)).collect(),
        }
    }

    /// The node and what is in use of it.
    pub(super) fn state(&self) -> &NodeState {
        &self.state
    }
}

/// Who holds what of each card, in the order of the cards.
fn shares(cards: &NodeCards<'_>, pods: &[&Charge]) -> Vec<Vec<CardShare>> {
    let mut shares = vec![Vec::new(); cards.cards.len()];
    for charge in pods {
        for HeldCard { card, used, .. } in cards.held(&charge.allocations, charge.init) {
            let Some(held) = card else { continue };
            let place = cards.cards.iter().position(|card| card.card.id == held.card.id);
            if let Some(shares) = place.and_then(|place| shares.get_mut(place)) {
                shares.push(CardShare {
                    namespace: charge.pod.namespace.clone(),
                    pod: charge.pod.name.clone(),
                    memory: used.memory.get(),
                    cores: used.cores.get(),
                    since: charge.importance.started,
                });
            }
        }
    }
    for shares in &mut shares {
        shares.sort();
    }
    shares
}

/// Why pods without tolerations don't go to the node, or none does.
fn closed_for(state: &NodeState) -> Vec<&'static str> {
    let silent = (state.agents.agent == Agent::Silent).then_some("silentAgent");
    closed(&state.info).into_iter().chain(silent).collect()
}

impl FleetCard {
    /// As one viewer sees it.
    pub(super) fn shown(&self, viewer: &Viewer) -> ShownCard<'_> {
        let mut hidden = (0, 0, 0);
        let mut shares = Vec::new();
        for CardShare { namespace, pod, memory, cores, since } in &self.shares {
            if viewer.sees(namespace) {
                let (memory, cores, since) = (*memory, *cores, *since);
                shares.push(ShownShare::Pod { namespace, pod, memory, cores, since });
            } else {
                hidden = (hidden.0 + 1, hidden.1 + memory, hidden.2 + cores);
            }
        }
        let (others, memory, cores) = hidden;
        shares.extend((others > 0).then_some(ShownShare::Others { others, memory, cores }));
        ShownCard { amounts: &self.amounts, stranded: self.stranded.map(Lack::as_str), shares }
    }
}

impl CardAmounts {
    /// Of a card of this node.
    pub(super) fn of(node: &str, offered: &OfferedCard<'_>) -> Self {
        let OfferedCard { card, cores, used, .. } = offered;
        Self {
            id: card_id(node, offered),
            index: card.index,
            model: excerpt(&card.model, VALUE).into_owned(),
            healthy: offered.is_healthy(),
            memory: card.memory.get(),
            memory_used: used.memory.get(),
            cores: cores.get(),
            cores_used: used.cores.get(),
            slots: card.slots,
            slots_used: used.slots,
        }
    }
}

/// The card's uuid; its node and number where it has none.
pub(super) fn card_id(node: &str, offered: &OfferedCard<'_>) -> String {
    match offered.uuid() {
        Some(uuid) => excerpt(&uuid.to_string(), VALUE).into_owned(),
        None => format!("{node}/{}", offered.card.index),
    }
}

impl ModelSummary {
    fn of(model: &str, gpus: &FleetGpus, fitting: Option<&FittedPods>) -> Self {
        let fits = sizes(fitting.copied().unwrap_or_default());
        Self {
            model: model.to_owned(),
            cards: gpus.gpus.capacity,
            gpus: gpus.into(),
            fits: fits.map(|(cards, percent, pods)| FittingPods { cards, percent, pods }).collect(),
        }
    }
}

impl WaitingSummary {
    fn of<'a>(pending: impl Iterator<Item = Option<&'a PendingReason>>) -> Self {
        let (mut pods, mut counts) = (0, BTreeMap::<String, usize>::new());
        for reason in pending {
            pods += 1;
            for reason in reason.into_iter().flat_map(|reason| reason.blame().labels()) {
                *counts.entry(reason.1).or_default() += 1;
            }
        }
        let mut reasons: Vec<_> =
            counts.into_iter().map(|(reason, pods)| ReasonCount { reason, pods }).collect();
        reasons.sort_by_key(|reason| Reverse(reason.pods));
        Self { pods, reasons }
    }
}
