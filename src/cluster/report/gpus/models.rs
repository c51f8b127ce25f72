//! The GPUs of all nodes by model, and what of them is of use for the pods that may come.

use std::{collections::BTreeMap, sync::Arc};

use super::{FittedPods, Lack, ModelGpus, TypicalPods, fitting};
use crate::{
    cluster::report::cards::{NodeCards, OfferedCard},
    excerpt::{FIELD, excerpt},
    scheduling::{model::pod_shape::PodShape, world::node_state::NodeState},
};

/// All GPUs of one model, in parts of a card.
#[derive(Clone, Copy, Debug, Default)]
pub struct FleetGpus {
    /// How many there are, are allocated and fragmented.
    pub gpus: ModelGpus,
    /// What no pod that may come could use, by what is lacking first: in the order of [`Lack::ALL`].
    pub stranded: [f64; Lack::ALL.len()],
    /// How many pods of usual sizes would fit.
    pub fitting: FittedPods,
}

impl FleetGpus {
    /// What is allocated.
    pub fn allocated(&self) -> f64 {
        self.gpus.allocated.max(0.0)
    }

    /// What works and is not allocated.
    pub fn free(&self) -> f64 {
        (self.gpus.capacity - self.gpus.allocated).max(0.0)
    }

    /// FGD's fragmentation.
    pub fn fragmented(&self) -> f64 {
        self.gpus.fragmented.max(0.0)
    }
}

/// Counts the GPUs of nodes by model, for the pods that typically come.
#[derive(Debug)]
pub struct FleetCount {
    typical: TypicalPods,
    models: BTreeMap<Arc<str>, FleetGpus>,
}

impl FleetCount {
    /// No nodes yet; of pods of these shapes, each with how much it counts.
    pub fn of_shapes(shapes: &[(Arc<PodShape>, u32)]) -> Self {
        Self { typical: TypicalPods::of_shapes(shapes.iter().cloned()), models: BTreeMap::new() }
    }

    /// Counts the GPUs of a node; returns its cards of which no pod that may come could be given any, and what is lacking. A model whose cards
    /// all fail has no GPUs.
    pub fn add<'a>(
        &mut self,
        state: &NodeState,
        cards: &'a NodeCards<'a>,
    ) -> Vec<(&'a OfferedCard<'a>, Lack)> {
        let Self { typical, models } = self;
        for card in cards.cards.iter().filter(|card| !card.is_healthy()) {
            counted(models, &card.card.model);
        }
        let found = typical.on(state, cards);
        for (model, gpus) in found.by_model() {
            counted(models, model).gpus += gpus;
        }
        let stranded = found.stranded().map(|(card, lack, gpus)| {
            counted(models, &card.card.model).stranded[lack as usize] += gpus;
            (card, lack)
        });
        let stranded = stranded.collect();
        for (model, pods) in fitting(cards) {
            let sums = &mut counted(models, model).fitting;
            sums.iter_mut().zip(pods).for_each(|(sum, pods)| *sum += pods);
        }
        stranded
    }

    /// The GPUs by model.
    pub fn into_models(self) -> BTreeMap<Arc<str>, FleetGpus> {
        self.models
    }
}

/// The GPUs of these nodes by model, for pods of these shapes, each with how much it counts.
pub fn by_model<'a>(
    nodes: impl IntoIterator<Item = (&'a NodeState, &'a NodeCards<'a>)>,
    shapes: &[(Arc<PodShape>, u32)],
) -> BTreeMap<Arc<str>, FleetGpus> {
    let mut count = FleetCount::of_shapes(shapes);
    for (state, cards) in nodes {
        count.add(state, cards);
    }
    count.into_models()
}

/// What is counted of a model, with nothing counted at first. A node's annotation says what model a card is: as much of it counts as a label should
/// hold.
pub(in crate::cluster::report) fn counted<'a, T: Default>(
    models: &'a mut BTreeMap<Arc<str>, T>,
    model: &str,
) -> &'a mut T {
    let called = excerpt(model, FIELD);
    if !models.contains_key(&*called) {
        models.insert((&*called).into(), T::default());
    }
    models.get_mut(&*called).expect("it was inserted")
}
