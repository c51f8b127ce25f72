//! How many GPUs of nodes are allocated, in parts of a card, and how much of what is free is of use for the pods that typically come.
//!
//! Fragmentation is that of FGD (Weng et al., USENIX ATC 2023): for each typical pod what is free on nodes and cards where it can't run, weighted by
//! how often such a pod comes. Values only: how they are printed or exported is not known here.

mod fitting;
pub mod models;
#[cfg(test)]
mod tests;

use std::{cmp::Reverse, collections::HashMap, ops::AddAssign, sync::Arc};

use smallvec::SmallVec;

use super::cards::{NodeCards, OfferedCard};
use crate::{
    device::{Cores, IdFilter, MiB, Mode, ProfileName, ProfileRequest, ShareRequest},
    dialect::Dialects,
    scheduling::{
        model::pod_shape::{PodShape, ShareShape},
        world::node_state::NodeState,
    },
};

pub use fitting::{FITTED, FittedPods, fitting};

/// Pods are typical until they make up this part of all.
const TYPICAL: f64 = 0.95;

/// What a pod asks of one card.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct AskedShare {
    /// How large it is, and of which cards.
    pub shape: ShareShape,
    /// Of which cards, by uuid.
    pub ids: IdFilter,
}

/// What a pod asks for.
#[derive(Clone, Debug)]
pub struct AskedPod {
    /// In thousandths.
    pub cpu: i64,
    /// In bytes.
    pub memory: i64,
    /// Of how many cards it asks such a share; `None`: no GPU.
    pub shares: Option<(u32, AskedShare)>,
}

/// A pod that typically comes.
#[derive(Debug)]
struct TypicalPod {
    /// How many of the typical pods are such, from 0 to 1.
    weight: f64,
    cpu: i64,
    memory: i64,
    /// Of how many cards it asks a share, and the place of that share; `None`: no GPU.
    shares: Option<(u32, usize)>,
}

/// What cards have in common to which a share comes to the same.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct CardClass {
    profiles: SmallVec<[ProfileName; 1]>,
    model: Arc<str>,
    mode: Mode,
    memory: MiB,
    cores: Cores,
}

/// The pods that typically come, and what they ask of each class of cards that was seen so far.
#[derive(Debug)]
pub struct TypicalPods {
    pods: Vec<TypicalPod>,
    shares: Vec<AskedShare>,
    classes: HashMap<CardClass, usize>,
    /// By class, then by share: memory and compute of it; `None`: such a card does not serve.
    portions: Vec<Vec<Option<(MiB, Cores)>>>,
}

/// GPUs of one model on one node, in parts of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelGpus {
    /// How many there are that work.
    pub capacity: f64,
    /// How many are allocated: of each card the larger part of its memory and compute.
    pub allocated: f64,
    /// FGD's fragmentation.
    pub fragmented: f64,
}

/// What is lacking first for every typical pod that could use a card: for the pod that gets furthest.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Lack {
    /// No typical pod asks for cards of its model, mode or dialect.
    Model,
    /// As many pods as may share the card do.
    Slots,
    /// What is left of the card, or of the node's other cards, is too small.
    PartlyUsed,
    /// The node has too little cpu left.
    Cpu,
    /// The node has too little memory left.
    Memory,
}

/// How far a share gets on a card.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fit {
    Fits,
    Lacks(Lack),
}

/// A card that works.
#[derive(Clone, Copy, Debug)]
struct WorkingCard<'a> {
    offered: &'a OfferedCard<'a>,
    free: f64,
    class: usize,
    /// The place of its model among those of the node.
    model: usize,
}

/// What typical pods could take of one node.
#[derive(Debug)]
pub struct NodeGpus<'t, 'n> {
    typical: &'t TypicalPods,
    /// In thousandths.
    cpu: i64,
    /// In bytes.
    memory: i64,
    cards: Vec<WorkingCard<'n>>,
    models: Vec<&'n Arc<str>>,
    /// By share, then by card.
    fits: Vec<Fit>,
    /// By share, how many cards have room for it.
    counts: Vec<usize>,
}

impl Lack {
    /// All of them, by how far pods get.
    pub const ALL: [Self; 5] = [Self::Model, Self::Slots, Self::PartlyUsed, Self::Cpu, Self::Memory];

    /// As replays and metrics say it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Slots => "slots",
            Self::PartlyUsed => "partlyUsed",
            Self::Cpu => "cpu",
            Self::Memory => "memory",
        }
    }
}

impl AskedShare {
    /// What this share of this request asks of each card.
    pub fn of(device: &ProfileRequest, share: &ShareRequest) -> Self {
        Self { shape: ShareShape::of(device, share), ids: device.request.selection.ids.clone() }
    }

    fn portion(&self, class: &CardClass) -> Option<(MiB, Cores)> {
        let ShareShape { memory, cores, .. } = &self.shape;
        let serves = self.shape.is_served_by(&class.profiles, &class.model, class.mode);
        serves.then(|| (memory.of(class.memory), cores.of(class.cores)))
    }

    /// The least part of a card that such a share takes of one of these cards, up to 1; `None`: none of them serves.
    pub fn least_part(&self, cards: &NodeCards<'_>) -> Option<f64> {
        let parts = cards.offering().filter(|(card, _)| self.ids.admits(&card.card.id));
        let parts = parts.filter_map(|(card, profiles)| {
            let (memory, cores) = self.portion(&CardClass::of(card, profiles))?;
            let memory = part(memory.get(), card.card.memory.get());
            Some(memory.max(part(cores.get().into(), card.cores.get().into())).min(1.0))
        });
        parts.min_by(f64::total_cmp)
    }

    /// How far a share of this size gets on a card.
    fn fit(&self, card: &OfferedCard<'_>, portion: Option<(MiB, Cores)>) -> Fit {
        let Some((memory, cores)) = portion.filter(|_| self.ids.admits(&card.card.id)) else {
            return Fit::Lacks(Lack::Model);
        };
        if card.used.slots >= card.card.slots {
            return Fit::Lacks(Lack::Slots);
        }
        let has_room = memory.get() + card.used.memory.get() <= card.card.memory.get()
            && cores.get() + card.used.cores.get() <= card.cores.get()
            && !(self.shape.alone && card.used.slots > 0);
        if has_room { Fit::Fits } else { Fit::Lacks(Lack::PartlyUsed) }
    }
}

impl From<&PodShape> for AskedPod {
    fn from(pod: &PodShape) -> Self {
        let asked = AskedShare { shape: pod.cards.share.clone(), ids: IdFilter::default() };
        let memory = i64::from(pod.memory).saturating_mul(MiB::BYTES.cast_signed());
        Self { cpu: pod.cpu.into(), memory, shares: Some((pod.cards.count, asked)) }
    }
}

impl CardClass {
    fn of(card: &OfferedCard<'_>, profiles: &[&ProfileName]) -> Self {
        Self {
            profiles: profiles.iter().map(|&profile| profile.clone()).collect(),
            model: card.card.model.clone(),
            mode: card.card.mode,
            memory: card.card.memory,
            cores: card.cores,
        }
    }
}

impl TypicalPods {
    /// The pods that make up most of all. Each is given with how often it comes; of equals the first counts first.
    pub fn of(mut pods: Vec<(AskedPod, u64)>) -> Self {
        let all = pods.iter().map(|(_, count)| count).sum();
        pods.sort_by_key(|(_, count)| Reverse(*count));
        let (mut most, mut taken) = (Vec::new(), 0);
        for (pod, count) in pods {
            if part(taken, all) >= TYPICAL {
                break;
            }
            taken += count;
            most.push((pod, count));
        }
        let (mut shares, mut places) = (Vec::new(), HashMap::new());
        let mut place = |share: AskedShare| {
            *places.entry(share).or_insert_with_key(|share| {
                shares.push(share.clone());
                shares.len() - 1
            })
        };
        let typical = |(AskedPod { cpu, memory, shares }, count)| TypicalPod {
            weight: part(count, taken),
            cpu,
            memory,
            shares: shares.map(|(cards, share)| (cards, place(share))),
        };
        let pods = most.into_iter().map(typical).collect();
        Self { pods, shares, classes: HashMap::new(), portions: Vec::new() }
    }

    /// The same by shapes, each given with how much it counts.
    pub fn of_shapes(shapes: impl Iterator<Item = (Arc<PodShape>, u32)>) -> Self {
        // What is asked of devices by type is no share of a card that a plugin registers, and only such cards are counted here.
        let mut shapes: Vec<_> = shapes.filter(|(shape, _)| !shape.cards.share.typed).collect();
        // Of equals the order must follow from the shapes.
        shapes.sort();
        let asked = |(shape, weight): &(Arc<PodShape>, u32)| (AskedPod::from(&**shape), u64::from(*weight));
        Self::of(shapes.iter().map(asked).collect())
    }

    fn class(&mut self, card: &OfferedCard<'_>, profiles: &[&ProfileName]) -> usize {
        let Self { shares, classes, portions, .. } = self;
        *classes.entry(CardClass::of(card, profiles)).or_insert_with_key(|class| {
            portions.push(shares.iter().map(|share| share.portion(class)).collect());
            portions.len() - 1
        })
    }

    /// What they could take of a node.
    pub fn on<'n>(&mut self, node: &NodeState, cards: &'n NodeCards<'n>) -> NodeGpus<'_, 'n> {
        let mut models: Vec<&Arc<str>> = Vec::new();
        let working = cards.offering().filter(|(card, _)| card.is_healthy()).map(|(card, profiles)| {
            let name = &card.card.model;
            let model = models.iter().position(|model| *model == name).unwrap_or_else(|| {
                models.push(name);
                models.len() - 1
            });
            WorkingCard { offered: card, free: free(card), class: self.class(card, profiles), model }
        });
        let cards: Vec<_> = working.collect();
        let typical = &*self;
        let (mut fits, mut counts) = (Vec::with_capacity(typical.shares.len() * cards.len()), Vec::new());
        for (place, share) in typical.shares.iter().enumerate() {
            let before = fits.len();
            let of_cards = cards.iter().map(|card| (card, typical.portions[card.class][place]));
            fits.extend(of_cards.map(|(card, portion)| share.fit(card.offered, portion)));
            counts.push(fits[before..].iter().filter(|fit| **fit == Fit::Fits).count());
        }
        let [cpu, memory] = ["cpu", "memory"].map(|resource| left(node, resource));
        NodeGpus { typical, cpu, memory, cards, models, fits, counts }
    }
}

impl AddAssign for ModelGpus {
    fn add_assign(&mut self, other: Self) {
        self.capacity += other.capacity;
        self.allocated += other.allocated;
        self.fragmented += other.fragmented;
    }
}

impl ModelGpus {
    /// The GPUs of all nodes, of whichever model, for the pods of these shapes, each of which is given with how often it comes.
    pub fn of_all<'a>(
        nodes: impl Iterator<Item = &'a NodeState>,
        dialects: &Dialects,
        shapes: impl Iterator<Item = (Arc<PodShape>, u32)>,
    ) -> Self {
        let mut typical = TypicalPods::of_shapes(shapes);
        let mut all = Self::default();
        for node in nodes {
            let cards = NodeCards::of(node, dialects);
            all += typical.on(node, &cards).total();
        }
        all
    }
}

impl<'n> NodeGpus<'_, 'n> {
    /// The cards with room for a share, by its place.
    fn with_room(&self, share: usize) -> impl Iterator<Item = &WorkingCard<'n>> {
        let fits = &self.fits[share * self.cards.len()..];
        self.cards.iter().zip(fits).filter(|(_, fit)| **fit == Fit::Fits).map(|(card, _)| card)
    }

    /// Of all models on the node together.
    pub fn total(&self) -> ModelGpus {
        let mut total = ModelGpus::default();
        self.by_model().for_each(|(_, gpus)| total += gpus);
        total
    }

    /// Of each model on the node how many GPUs there are, are allocated and fragmented.
    pub fn by_model(&self) -> impl Iterator<Item = (&'n Arc<str>, ModelGpus)> {
        self.models.iter().zip(0..).map(move |(name, model)| {
            let cards = || self.cards.iter().filter(|card| card.model == model);
            let all_free: f64 = cards().map(|card| card.free).sum();
            let rooms = (0..self.counts.len()).map(|share| {
                let cards = self.with_room(share).filter(|card| card.model == model);
                cards.fold(0.0, |room, card| room + card.free)
            });
            let rooms: Vec<f64> = rooms.collect();
            let fragment = |pod: &TypicalPod| match pod.shares {
                Some((cards, share)) if pod.cpu <= self.cpu && self.counts[share] >= cards as usize => {
                    all_free - rooms[share]
                }
                _ => all_free,
            };
            let fragmented = self.typical.pods.iter().map(|pod| pod.weight * fragment(pod)).sum();
            let capacity = part(cards().count() as u64, 1);
            (*name, ModelGpus { capacity, allocated: capacity - all_free, fragmented })
        })
    }

    /// The cards of which no typical pod could be given any: what is lacking, and how much is free, in parts of the card.
    pub fn stranded(&self) -> impl Iterator<Item = (&'n OfferedCard<'n>, Lack, f64)> {
        // How far that pod gets that gets furthest, once a card has room for its share.
        let mut furthest = vec![None; self.typical.shares.len()];
        for pod in &self.typical.pods {
            let Some((cards, share)) = pod.shares else { continue };
            let reached = match () {
                () if self.counts[share] < cards as usize => Fit::Lacks(Lack::PartlyUsed),
                () if pod.cpu > self.cpu => Fit::Lacks(Lack::Cpu),
                () if pod.memory > self.memory => Fit::Lacks(Lack::Memory),
                () => Fit::Fits,
            };
            furthest[share] = Some(further(furthest[share], reached));
        }
        let lacks = move |at: usize| {
            let fits = self.fits.iter().skip(at).step_by(self.cards.len());
            let reached = fits.zip(&furthest).filter_map(|(fit, then)| match fit {
                Fit::Fits => *then,
                Fit::Lacks(_) => Some(*fit),
            });
            let mut lacks = reached.map(|fit| match fit {
                Fit::Fits => None,
                Fit::Lacks(lack) => Some(lack),
            });
            // Most cards are of use for one of the first pods.
            let most = lacks.try_fold(None, |most: Option<Lack>, lack| Some(most.max(Some(lack?))));
            most.map(|most| most.unwrap_or(Lack::Model))
        };
        let cards = self.cards.iter().enumerate().filter(|(_, card)| card.free > 0.0);
        cards.filter_map(move |(at, card)| Some((card.offered, lacks(at)?, card.free)))
    }
}

fn further(one: Option<Fit>, other: Fit) -> Fit {
    match (one, other) {
        (None, fit) => fit,
        (Some(Fit::Lacks(one)), Fit::Lacks(other)) => Fit::Lacks(one.max(other)),
        _ => Fit::Fits,
    }
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

fn left(node: &NodeState, resource: &str) -> i64 {
    node.info.allocatable.get(resource) - node.requested.get(resource)
}
