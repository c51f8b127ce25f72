//! Scores nodes by the alternatives that prioritized lists get there: the earlier, the better.

use super::alternatives::AlternativePoints;
use crate::scheduling::{
    plugin::{claim_fits::NodeFits, contract::PreScored, score::range::MOST},
    world::node_state::NodeState,
};

/// What a pod's claims get on each node.
#[derive(Debug)]
pub(super) struct AlternativeScores {
    fits: NodeFits,
    /// Those of the claims that hold devices already, which are the same on every node.
    held: AlternativePoints,
}

impl AlternativeScores {
    pub(super) fn new(fits: NodeFits, held: AlternativePoints) -> Self {
        Self { fits, held }
    }
}

impl PreScored for AlternativeScores {
    /// In percent of the best of these nodes.
    fn normalised(&self, feasible: &[&NodeState]) -> Vec<i64> {
        let points = |node: &&NodeState| [self.held, self.fits.points(node)].into_iter().sum();
        let points: Vec<AlternativePoints> = feasible.iter().map(points).collect();
        let most = points.iter().map(|points| points.0).max().unwrap_or_default().max(1);
        let percent = |points: &AlternativePoints| i64::try_from(points.0).unwrap_or(MOST) * MOST;
        let most = i64::try_from(most).unwrap_or(MOST);
        points.iter().map(|points| percent(points) / most).collect()
    }
}
