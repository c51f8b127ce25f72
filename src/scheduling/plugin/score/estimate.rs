//! The highest score that a node may have, found without judging the node: where one plugin alone tells nodes apart, and that by their rooms.

use super::{ROOM_SCORER, RawScores, SCORERS, ScoreWeights};
use crate::scheduling::{
    model::pod::Ask,
    packing::{
        Packing,
        free_room::{AskedRoom, CostEstimate, FreeRoom},
    },
    plugin::{TABLE, contract::Placement, row::RoomScoring},
    world::{World, node_state::NodeState},
};

/// What is free on a node, by which [`ScoreEstimates`] are made.
pub(in crate::scheduling) fn free_room(node: &NodeState, packing: &Packing) -> Option<FreeRoom> {
    ROOM_SCORER.map(|(_, scoring)| (scoring.free_room)(node, packing))
}

/// How high nodes may score for one pod.
#[derive(Debug)]
pub struct ScoreEstimates<'a> {
    asked: AskedRoom,
    /// What the other plugins make of every node.
    even: RawScores,
    scoring: RoomScoring,
    weights: ScoreWeights,
    packing: &'a Packing,
}

impl<'a> ScoreEstimates<'a> {
    /// `None`: plugins have to look at the nodes themselves to tell them apart.
    pub(in crate::scheduling) fn prepare(ask: &Ask, world: &'a World, weights: ScoreWeights) -> Option<Self> {
        let (_, scoring) = ROOM_SCORER?;
        let packing = world.packing();
        let asked = (scoring.asked_room)(ask, world.resource_claims().extended(), packing)?;
        let node = world.nodes.by_slot().next()?;
        let placement = Placement { ask, node, allocations: &[], packing };
        let mut even = RawScores::default();
        for (place, row) in SCORERS.into_iter().enumerate() {
            let Some(scorer) = TABLE[row].score else { continue };
            if !(scorer.is_even)(ask, &world.nodes) {
                return None;
            }
            if let Some(score) = (scorer.score)(&placement) {
                even.set(place, score);
            }
        }
        Some(Self { asked, even, scoring, weights, packing })
    }

    /// Whether each node that fits has exactly the highest score that it may have, where that is finite.
    pub(in crate::scheduling) fn are_exact(&self) -> bool {
        self.asked.any || self.asked.cards == 0
    }

    /// The highest score that a node may have on which so much is free, as the weighted sum of its scores has it; `None`: it does not fit.
    pub(in crate::scheduling) fn most(&self, free: &FreeRoom) -> Option<f64> {
        match (self.scoring.estimate)(&self.asked, free, self.packing) {
            CostEstimate::NoRoom => None,
            CostEstimate::Unknown => Some(f64::INFINITY),
            CostEstimate::AtLeast(cost) | CostEstimate::Exactly(cost) => {
                let mut raw = self.even;
                raw.set_cost(cost, true);
                Some(raw.total(&self.weights))
            }
        }
    }
}
