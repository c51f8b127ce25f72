//! The GPUs of all nodes by model, and what of them is of use for the pods that may come.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use super::{FittedPods, Lack, ModelGpus, TypicalPods, fitting};
use crate::{
    cluster::cards::NodeCards,
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

/// The GPUs of these nodes by model, for pods of these shapes, each with how much it counts. A model whose cards all fail has none.
pub fn by_model<'a>(
    nodes: impl IntoIterator<Item = (&'a NodeState, &'a NodeCards<'a>)>,
    shapes: &[(Arc<PodShape>, u32)],
) -> BTreeMap<Cow<'a, str>, FleetGpus> {
    let mut typical = TypicalPods::of_shapes(shapes.iter().cloned());
    let mut models: BTreeMap<Cow<'_, str>, FleetGpus> = BTreeMap::new();
    for (state, cards) in nodes {
        for card in cards.cards.iter().filter(|card| !card.is_healthy()) {
            models.entry(called(&card.card.model)).or_default();
        }
        let found = typical.on(state, cards);
        for (model, gpus) in found.by_model() {
            models.entry(called(model)).or_default().gpus += gpus;
        }
        for (model, lack, gpus) in found.stranded() {
            models.entry(called(model)).or_default().stranded[lack as usize] += gpus;
        }
        for (model, pods) in fitting(cards) {
            let sums = &mut models.entry(called(model)).or_default().fitting;
            sums.iter_mut().zip(pods).for_each(|(sum, pods)| *sum += pods);
        }
    }
    models
}

/// A node's annotation says what model a card is: as much of it as a label should hold.
fn called(model: &str) -> Cow<'_, str> {
    excerpt(model, FIELD)
}
