//! Scores nodes by the alternatives that prioritized lists get there: the earlier, the better.

use super::alternatives::AlternativePoints;
use crate::scheduling::plugin::{
    claim_fits::NodeFits,
    contract::{FeasibleNodes, PreScored},
    score::range::MOST,
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
    fn normalised(&self, feasible: FeasibleNodes<'_>) -> Vec<i64> {
        let points = |node| [self.held, self.fits.points(node)].into_iter().sum::<AlternativePoints>();
        let mut scores = feasible.each(|node| i64::try_from(points(node).0).unwrap_or(MOST));
        let most = scores.iter().copied().max().unwrap_or_default().max(1);
        for score in &mut scores {
            *score = *score * MOST / most;
        }
        scores
    }
}
