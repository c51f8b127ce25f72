//! How many GPUs of a replayed cluster are allocated, in parts, and how much of what is free is of use for the pods of the replay.

use std::collections::{BTreeMap, HashMap};

use crate::{
    cluster::report::{
        cards::NodeCards,
        gpus::{AskedPod, AskedShare, ModelGpus, TypicalPods},
    },
    device::{ProfileRequest, ShareRequest},
    dialect::Dialects,
    scheduling::{Ask, NodeName, PodInfo, world::node_state::NodeState},
};

/// The GPUs of a cluster.
#[derive(Debug)]
pub(super) struct ClusterGpus {
    typical: TypicalPods,
    nodes: HashMap<NodeName, ModelGpus>,
    sum: ModelGpus,
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
        let mut gpus = Self { typical: typical(pods), nodes: HashMap::new(), sum: ModelGpus::default() };
        for node in nodes {
            gpus.update(node, dialects);
        }
        gpus
    }

    /// Takes in that something has changed on a node.
    pub(super) fn update(&mut self, node: &NodeState, dialects: &Dialects) {
        let cards = NodeCards::of(node, dialects);
        let found = self.typical.on(node, &cards).total();
        let before = self.nodes.insert(node.info.name.clone(), found).unwrap_or_default();
        self.sum.capacity += found.capacity - before.capacity;
        self.sum.allocated += found.allocated - before.allocated;
        self.sum.fragmented += found.fragmented - before.fragmented;
    }

    /// How many GPUs there are that work.
    pub(super) fn capacity(&self) -> f64 {
        self.sum.capacity
    }

    /// How many GPUs are allocated, in parts.
    pub(super) fn allocated(&self) -> f64 {
        self.sum.allocated.max(0.0)
    }

    /// FGD's fragmentation, in GPUs.
    pub(super) fn fragmented(&self) -> f64 {
        self.sum.fragmented.max(0.0)
    }

    /// What is free of GPUs that no typical pod could be given any of, by what is lacking first.
    pub(super) fn stranded<'a>(
        &mut self,
        nodes: impl Iterator<Item = &'a NodeState>,
        dialects: &Dialects,
    ) -> BTreeMap<&'static str, f64> {
        let mut stranded = BTreeMap::new();
        for node in nodes {
            let cards = NodeCards::of(node, dialects);
            for (_, lack, gpus) in self.typical.on(node, &cards).stranded() {
                *stranded.entry(lack.as_str()).or_insert(0.0) += gpus;
            }
        }
        stranded
    }
}

/// How many GPUs such a share is, in parts of the largest of these nodes' cards that it may have.
pub(super) fn size<'a>(
    (device, share): &(ProfileRequest, ShareRequest),
    nodes: impl Iterator<Item = &'a NodeState>,
    dialects: &Dialects,
) -> f64 {
    let asked = AskedShare::of(device, share);
    let least = nodes.filter_map(|node| asked.least_part(&NodeCards::of(node, dialects)));
    f64::from(share.cards.get()) * least.min_by(f64::total_cmp).unwrap_or(1.0)
}

/// The pods that make up most of all.
fn typical<'a>(pods: impl Iterator<Item = &'a PodInfo>) -> TypicalPods {
    let mut counts: HashMap<_, u64> = HashMap::new();
    for demand in pods.filter_map(PodInfo::demand) {
        let resources = (demand.ask.resources.get("cpu"), demand.ask.resources.get("memory"));
        *counts.entry((resources, share(&demand.ask))).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    // Of equals the order must follow from the pods.
    counts.sort_by_cached_key(|(ask, _)| format!("{ask:?}"));
    let asked = |(((cpu, memory), shares), count): ((_, Option<(ProfileRequest, ShareRequest)>), _)| {
        let shares = shares.map(|(device, share)| (share.cards.get(), AskedShare::of(&device, &share)));
        (AskedPod { cpu, memory, shares }, count)
    };
    TypicalPods::of(counts.into_iter().map(asked).collect())
}
