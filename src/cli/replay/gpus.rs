//! How many GPUs of a cluster are allocated, in parts, and how much of what is free is of use for the pods that typically come.
//!
//! Fragmentation is that of FGD (Weng et al., USENIX ATC 2023): for each typical pod what is free on nodes and cards where it can't run, weighted by
//! how often such a pod comes.

use std::collections::{BTreeMap, HashMap};

use crate::{
    cluster::cards::{NodeCards, OfferedCard},
    device::{ProfileRequest, ShareRequest},
    dialect::Dialects,
    scheduling::{Ask, NodeName, PodInfo, world::node_state::NodeState},
};

/// Pods are typical until they make up this part of all.
const TYPICAL: f64 = 0.95;

/// A pod that typically comes.
#[derive(Debug)]
struct TypicalPod {
    /// How many of the typical pods are such.
    weight: f64,
    cpu: i64,
    memory: i64,
    /// What it asks of cards; `None`: no GPU.
    shares: Option<(ProfileRequest, ShareRequest)>,
}

/// What was found of one node.
#[derive(Clone, Copy, Debug, Default)]
struct NodeGpus {
    allocated: f64,
    fragmented: f64,
}

/// The GPUs of a cluster.
#[derive(Debug)]
pub(super) struct ClusterGpus {
    typical: Vec<TypicalPod>,
    nodes: HashMap<NodeName, NodeGpus>,
    /// How many GPUs there are that work.
    pub(super) capacity: f64,
    sum: NodeGpus,
}

/// How much of a card is free, in parts.
fn free(card: &OfferedCard<'_>) -> f64 {
    let memory = part(card.used.memory.get(), card.card.memory.get());
    let cores = part(card.used.cores.get().into(), card.cores.get().into());
    (1.0 - memory.max(cores)).clamp(0.0, 1.0)
}

#[expect(clippy::cast_precision_loss, reason = "a part of a card")]
fn part(used: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { used as f64 / all as f64 }
}

/// How many GPUs a share asks for, in parts of a card like this.
fn part_of(share: &ShareRequest, card: &OfferedCard<'_>) -> f64 {
    let memory = part(share.memory.of(card.card.memory).get(), card.card.memory.get());
    let cores = part(share.cores.of(card.cores).get().into(), card.cores.get().into());
    memory.max(cores).min(1.0)
}

/// The share of cards that a pod asks for: that of the container with the most.
pub(super) fn share(ask: &Ask) -> Option<(ProfileRequest, ShareRequest)> {
    let device = ask.devices.first()?;
    let shares = device.request.containers.iter().filter_map(|container| container.share);
    Some((device.clone(), shares.max_by_key(|share| share.cards)?))
}

impl ClusterGpus {
    /// The GPUs of these nodes. Typical are the pods of which most of these are.
    pub(super) fn new<'n, 'p>(
        nodes: impl Iterator<Item = &'n NodeState>,
        dialects: &Dialects,
        pods: impl Iterator<Item = &'p PodInfo>,
    ) -> Self {
        let mut gpus =
            Self { typical: typical(pods), nodes: HashMap::new(), capacity: 0.0, sum: NodeGpus::default() };
        for node in nodes {
            let cards = NodeCards::of(node, dialects).cards.iter().filter(|card| card.is_healthy()).count();
            gpus.capacity += part(cards as u64, 1);
            gpus.update(node, dialects);
        }
        gpus
    }

    /// Takes in that something has changed on a node.
    pub(super) fn update(&mut self, node: &NodeState, dialects: &Dialects) {
        let found = self.found(node, dialects);
        let before = self.nodes.insert(node.info.name.clone(), found).unwrap_or_default();
        self.sum.allocated += found.allocated - before.allocated;
        self.sum.fragmented += found.fragmented - before.fragmented;
    }

    /// How many GPUs are allocated, in parts.
    pub(super) fn allocated(&self) -> f64 {
        self.sum.allocated.max(0.0)
    }

    /// FGD's fragmentation, in GPUs.
    pub(super) fn fragmented(&self) -> f64 {
        self.sum.fragmented.max(0.0)
    }

    fn found(&self, node: &NodeState, dialects: &Dialects) -> NodeGpus {
        let cards = NodeCards::of(node, dialects);
        let working: Vec<_> = cards.cards.iter().filter(|card| card.is_healthy()).collect();
        let all_free: f64 = working.iter().map(|card| free(card)).sum();
        let cpu = left(node, "cpu");
        let fragment = |pod: &TypicalPod| match &pod.shares {
            Some(shares) if pod.cpu <= cpu => {
                let with_room = working.iter().filter(|card| has_room(card, shares));
                let (count, room) =
                    with_room.fold((0, 0.0), |(count, room), card| (count + 1, room + free(card)));
                if count < shares.1.cards.get() { all_free } else { all_free - room }
            }
            _ => all_free,
        };
        let fragmented = self.typical.iter().map(|pod| pod.weight * fragment(pod)).sum();
        NodeGpus { allocated: part(working.len() as u64, 1) - all_free, fragmented }
    }

    /// What is free of GPUs that no typical pod could be given any of, by what is lacking first.
    pub(super) fn stranded<'a>(
        &self,
        nodes: impl Iterator<Item = &'a NodeState>,
        dialects: &Dialects,
    ) -> BTreeMap<&'static str, f64> {
        let mut stranded = BTreeMap::new();
        for node in nodes {
            let cards = NodeCards::of(node, dialects);
            let working: Vec<_> = cards.cards.iter().filter(|card| card.is_healthy()).collect();
            for card in working.iter().filter(|card| free(card) > 0.0) {
                if let Some(lacks) = self.lacks(node, card, &working) {
                    *stranded.entry(lacks).or_insert(0.0) += free(card);
                }
            }
        }
        stranded
    }

    /// What is lacking first for every typical pod that could use this card; `None`: one of them could be given it.
    fn lacks(
        &self,
        node: &NodeState,
        card: &OfferedCard<'_>,
        cards: &[&OfferedCard<'_>],
    ) -> Option<&'static str> {
        let (cpu, memory) = (left(node, "cpu"), left(node, "memory"));
        // How far the pod gets that gets furthest.
        let reached = self.typical.iter().filter_map(|pod| {
            let shares = pod.shares.as_ref()?;
            let enough = || {
                cards.iter().filter(|card| has_room(card, shares)).count() >= shares.1.cards.get() as usize
            };
            Some(match () {
                () if !admits(card, &shares.0) => 0,
                () if card.used.slots >= card.card.slots => 1,
                () if !has_room(card, shares) || !enough() => 2,
                () if pod.cpu > cpu => 3,
                () if pod.memory > memory => 4,
                () => 5,
            })
        });
        match reached.max().unwrap_or(0) {
            0 => Some("model"),
            1 => Some("slots"),
            2 => Some("partlyUsed"),
            3 => Some("cpu"),
            4 => Some("memory"),
            _ => None,
        }
    }
}

fn left(node: &NodeState, resource: &str) -> i64 {
    node.info.allocatable.get(resource) - node.requested.get(resource)
}

fn admits(card: &OfferedCard<'_>, device: &ProfileRequest) -> bool {
    let selection = &device.request.selection;
    selection.models.admits(&card.card.model)
        && selection.ids.admits(&card.card.id)
        && selection.admits_mode(card.card)
}

fn has_room(card: &OfferedCard<'_>, (device, share): &(ProfileRequest, ShareRequest)) -> bool {
    admits(card, device)
        && card.used.slots < card.card.slots
        && share.memory.of(card.card.memory).get() + card.used.memory.get() <= card.card.memory.get()
        && share.cores.of(card.cores).get() + card.used.cores.get() <= card.cores.get()
}

/// How many GPUs such a share is, in parts of the largest of these nodes' cards that it may have.
pub(super) fn size<'a>(
    (device, share): &(ProfileRequest, ShareRequest),
    nodes: impl Iterator<Item = &'a NodeState>,
    dialects: &Dialects,
) -> f64 {
    let mut least: Option<f64> = None;
    for node in nodes {
        let cards = NodeCards::of(node, dialects);
        let parts = cards.cards.iter().filter(|card| admits(card, device)).map(|card| part_of(share, card));
        least = parts.chain(least).min_by(f64::total_cmp);
    }
    f64::from(share.cards.get()) * least.unwrap_or(1.0)
}

/// The pods that make up most of all, by decreasing number.
fn typical<'a>(pods: impl Iterator<Item = &'a PodInfo>) -> Vec<TypicalPod> {
    let mut counts: HashMap<_, u64> = HashMap::new();
    let mut all: u64 = 0;
    for demand in pods.filter_map(PodInfo::demand) {
        let resources = (demand.ask.resources.get("cpu"), demand.ask.resources.get("memory"));
        *counts.entry((resources, share(&demand.ask))).or_default() += 1;
        all += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    // Of equals the order must follow from the pods.
    counts.sort_by_cached_key(|(ask, count)| (std::cmp::Reverse(*count), format!("{ask:?}")));
    let (mut typical, mut taken) = (Vec::new(), 0);
    for (asked, count) in counts {
        if part(taken, all) >= TYPICAL {
            break;
        }
        taken += count;
        typical.push((asked, count));
    }
    let of_typical =
        |(((cpu, memory), shares), count)| TypicalPod { weight: part(count, taken), cpu, memory, shares };
    typical.into_iter().map(of_typical).collect()
}
