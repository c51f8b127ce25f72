//! How many pods there are of each shape, bound and waiting: the mix of asks is a function of it, and of nothing else that pods do.
//!
//! A shape counts with its number rounded down to a power of 4, so that the mix stays as it is while single pods come and go.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use crate::scheduling::model::pod_shape::PodShape;

/// Of so many shapes the mix is made at most; of more, those that most pods have.
pub(in crate::scheduling) const MOST_SHAPES: usize = 512;

/// With how much a shape counts in the mix from now on; 0: not at all.
pub type Weighed = (Arc<PodShape>, u32);

/// How many pods there are of each shape.
#[derive(Debug, Default)]
pub struct Census {
    pods: HashMap<Arc<PodShape>, u32>,
    /// Every shape, that of most pods first; among equals the order is that of a number drawn from the shape.
    ranked: BTreeSet<(Reverse<u32>, u64, Arc<PodShape>)>,
    /// What counts in the mix, as was last said.
    said: HashMap<Arc<PodShape>, u32>,
}

/// A number drawn from a shape.
pub(super) fn seed(shape: &PodShape) -> u64 {
    let mut hasher = DefaultHasher::new();
    shape.hash(&mut hasher);
    hasher.finish()
}

/// The number rounded down to a power of 4; 0 stays 0.
fn rounded(pods: u32) -> u32 {
    pods.checked_ilog2().map_or(0, |log| 1 << (log & !1))
}

impl Census {
    /// One more pod has this shape; with what counts otherwise in the mix since.
    pub fn add(&mut self, shape: PodShape) -> Vec<Weighed> {
        self.count(Arc::new(shape), |pods| pods.saturating_add(1))
    }

    /// One pod less has this shape; with what counts otherwise in the mix since.
    pub fn remove(&mut self, shape: PodShape) -> Vec<Weighed> {
        self.count(Arc::new(shape), |pods| pods.saturating_sub(1))
    }

    fn count(&mut self, shape: Arc<PodShape>, to: impl Fn(u32) -> u32) -> Vec<Weighed> {
        let before = self.pods.get(&shape).copied().unwrap_or(0);
        let after = to(before);
        if after == 0 {
            self.pods.remove(&shape);
        } else {
            self.pods.insert(shape.clone(), after);
        }
        let (before, after) = (rounded(before), rounded(after));
        if before == after {
            return Vec::new();
        }
        let seed = seed(&shape);
        self.ranked.remove(&(Reverse(before), seed, shape.clone()));
        if after > 0 {
            self.ranked.insert((Reverse(after), seed, shape.clone()));
        }
        if self.ranked.len() < MOST_SHAPES {
            self.say(shape, after).into_iter().collect()
        } else {
            self.say_most()
        }
    }

    fn say(&mut self, shape: Arc<PodShape>, weight: u32) -> Option<Weighed> {
        let before =
            if weight == 0 { self.said.remove(&shape) } else { self.said.insert(shape.clone(), weight) };
        (before.unwrap_or(0) != weight).then_some((shape, weight))
    }

    /// What counts otherwise, where there may be more shapes than count.
    fn say_most(&mut self) -> Vec<Weighed> {
        let most: HashMap<_, _> = self
            .ranked
            .iter()
            .take(MOST_SHAPES)
            .map(|(weight, _, shape)| (shape.clone(), weight.0))
            .collect();
        let mut out: Vec<_> = self.said.keys().filter(|shape| !most.contains_key(*shape)).cloned().collect();
        out.sort();
        let mut changed: Vec<_> = out.into_iter().filter_map(|shape| self.say(shape, 0)).collect();
        let mut most: Vec<_> = most.into_iter().collect();
        most.sort();
        changed.extend(most.into_iter().filter_map(|(shape, weight)| self.say(shape, weight)));
        changed
    }
}
