//! How well the nodes that fit suit a pod: a score from 0 to 100 by each plugin, and their weighted sum.
//!
//! A plugin's raw score of a node is normalised over the nodes that fit, as in kube-scheduler v1.36 (`pkg/scheduler/framework/runtime`,
//! `RunScorePlugins`). Which nodes fit is not decided here.

pub mod cards;
pub mod range;
pub mod weights;

use super::{
    cycle::Preferences, image_locality::LocalImages, inter_pod_affinity::scoring::NeighbourScale,
    node_resources_balanced_allocation, pod_topology_spread::scoring::SpreadScale, taint_toleration, tdm,
    volume_binding::scoring::VolumeCapacity,
};
use crate::{
    device::Allocation,
    scheduling::{
        model::{plugin::Plugin, pod::Ask},
        world::node_state::NodeState,
    },
};
use range::{MOST, float};
use weights::{SCORING, ScoreWeights};

pub use cards::{fullness, of_request};

/// What the plugins that look at one node make of it, before normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RawScores {
    /// The sum of the weights of the preferred terms of node affinity that match.
    affinity: i64,
    /// How many taints of effect `PreferNoSchedule` the pod does not tolerate.
    taints: i64,
    /// How much the pod balances cpu and memory, 0 to 100; `None`: it requests neither.
    balance: Option<i64>,
    /// How much the pod prefers the node's revocable zone, 0 to 100; `None`: it may use none.
    zone: Option<i64>,
    /// How well the cards suit, 0 to 100.
    devices: f64,
}

impl RawScores {
    /// The scores of a node, given what the pod would get there for each of its requests of cards.
    pub(in crate::scheduling) fn of(ask: &Ask, node: &NodeState, allocations: &[Allocation]) -> Self {
        let (info, constraints) = (&node.info, &ask.constraints);
        let taints = taint_toleration::untolerated_preferences(&constraints.tolerations, &info.taints);
        Self {
            affinity: constraints.affinity.preference(&info.name, &info.labels),
            taints: i64::try_from(taints).unwrap_or(i64::MAX / MOST),
            balance: node_resources_balanced_allocation::score(&ask.resources, node),
            zone: tdm::score(ask, node),
            devices: cards::of_node(&ask.devices, node, allocations),
        }
    }

    /// How well the cards suit, 0 to 100.
    pub fn devices(&self) -> f64 {
        self.devices
    }

    /// Whether the score depends on those of other nodes.
    pub(in crate::scheduling) fn is_relative(&self) -> bool {
        self.affinity > 0 || self.taints > 0
    }
}

/// A node that fits, with its raw scores.
#[derive(Clone, Copy, Debug)]
pub struct Feasible<'a> {
    /// The node.
    pub node: &'a NodeState,
    /// What the plugins that look at one node make of it.
    pub raw: RawScores,
}

/// By what the raw scores of one decision are normalised: their extremes over the nodes that fit.
#[derive(Debug)]
pub struct Scale<'a> {
    /// The greatest raw score of node affinity; `None`: the pod prefers no node.
    affinity: Option<i64>,
    /// The greatest number of taints that the pod does not tolerate.
    taints: i64,
    spread: Option<SpreadScale<'a>>,
    neighbours: Option<NeighbourScale<'a>>,
    images: Option<&'a LocalImages<'a>>,
    volumes: Option<&'a VolumeCapacity<'a>>,
}

impl<'a> Scale<'a> {
    /// The extremes over these nodes. Without nodes it is the scale of those whose raw scores depend on no other node.
    pub fn of(ask: &Ask, preferences: &'a Preferences<'a>, feasible: &[Feasible<'_>]) -> Self {
        let nodes = || feasible.iter().map(|feasible| feasible.node);
        let greatest = |raw: fn(&RawScores) -> i64| {
            feasible.iter().map(|feasible| raw(&feasible.raw)).max().unwrap_or_default()
        };
        let prefers = !ask.constraints.affinity.preferred.is_empty();
        Self {
            affinity: prefers.then(|| greatest(|raw| raw.affinity)),
            taints: greatest(|raw| raw.taints),
            spread: preferences.spread.as_ref().map(|spread| SpreadScale::of(spread, nodes())),
            neighbours: preferences.neighbours.as_ref().map(|domains| NeighbourScale::of(domains, nodes())),
            images: preferences.images.as_ref(),
            volumes: preferences.volumes.as_ref(),
        }
    }

    /// The normalised scores of one of these nodes.
    pub fn scores(&self, feasible: &Feasible<'_>) -> Scores {
        let Feasible { node, raw } = feasible;
        let part = |raw: i64, greatest: i64| if greatest == 0 { 0 } else { MOST * raw / greatest };
        let whole = [
            Some(MOST - part(raw.taints, self.taints)),
            self.affinity.map(|greatest| part(raw.affinity, greatest)),
            self.spread.as_ref().map(|spread| spread.score(node)),
            self.neighbours.as_ref().map(|neighbours| neighbours.score(node)),
            raw.balance,
            self.images.map(|images| images.score(&node.info)),
            self.volumes.map(|volumes| volumes.score(&node.info)),
            raw.zone,
        ];
        let [taints, affinity, spread, neighbours, balance, images, volumes, zone] =
            whole.map(|score| score.map(float));
        Scores([taints, affinity, spread, neighbours, balance, images, volumes, zone, Some(raw.devices)])
    }
}

/// The normalised scores of one node, 0 to 100, in the order of [`SCORING`]; `None`: the plugin has nothing to score for the pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scores([Option<f64>; SCORING.len()]);

impl Scores {
    /// The weighted sum.
    pub fn total(&self, weights: &ScoreWeights) -> f64 {
        let weighted =
            self.0.iter().zip(weights.0).map(|(score, weight)| f64::from(weight) * score.unwrap_or(0.0));
        weighted.sum()
    }

    /// The plugins that have something to score for the pod, each with the node's score.
    pub fn by_plugin(&self) -> impl Iterator<Item = (Plugin, f64)> {
        SCORING.into_iter().zip(self.0).filter_map(|((plugin, _), score)| Some((plugin, score?)))
    }
}

#[cfg(test)]
mod tests;
