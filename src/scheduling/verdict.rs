//! What one node makes of one pod: whether it fits, with which cards and which score; and the best of those that fit.

use std::collections::BTreeSet;

use super::{
    cycle::Preferences,
    filter::filter,
    node::NodeName,
    pod::Ask,
    reason::NodeReasons,
    score::{Feasible, RawScores, Scale, ScoreWeights},
    snapshot::NodeState,
};
use crate::device::{Assignment, CardUsage, InitPhase, Quota, usage};

/// What a class makes of a node.
#[derive(Clone, Debug)]
pub enum NodeVerdict {
    /// It fits, whatever the quota: with these scores, and so much of the quota taken.
    Fits(RawScores, CardUsage),
    /// It does not.
    Fails(NodeReasons),
}

/// Judges one node for one ask of a namespace that may still take so much: the cards that it would give and its
/// scores.
pub fn judge(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quota: Quota,
) -> Result<(Assignment, RawScores), NodeReasons> {
    let assignment = filter(ask, node, device_resources, quota)?;
    let offer = node.info.offer(&ask.profile.name).and_then(|offer| offer.inventory.as_ref());
    let inventory = offer.expect("a node without an inventory does not pass the filter");
    let scores = RawScores::of(ask, node, inventory, &assignment);
    Ok((assignment, scores))
}

impl NodeVerdict {
    /// What becomes of the node for this ask, whatever the quota.
    pub(super) fn of(ask: &Ask, node: &NodeState, device_resources: &BTreeSet<String>) -> Self {
        match judge(ask, node, device_resources, Quota::default()) {
            Ok((assignment, scores)) => Self::Fits(scores, usage::total(&assignment, InitPhase::Ahead)),
            Err(reasons) => Self::Fails(reasons),
        }
    }
}

/// The scores of a node that fits whatever the quota, with these scores and so much taken, under the quota; or why it would not do. Where
/// that would take too much, other cards of the node may do.
pub(super) fn within(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quota: Quota,
    (scores, total): (RawScores, CardUsage),
) -> Result<RawScores, NodeReasons> {
    if quota.admits(total) {
        return Ok(scores);
    }
    judge(ask, node, device_resources, quota).map(|(_, scores)| scores)
}

/// Whether the scores of the nodes of one decision depend on each other.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Relation {
    /// They may.
    Relative,
    /// They don't: each is known from its node alone.
    Independent,
}

/// The best of the nodes that fit for this ask: a smaller `rank` comes before a higher score, 0 is the best; equals go by name.
pub(super) fn best_scored<'a>(
    ask: &Ask,
    preferences: &Preferences<'_>,
    relation: Relation,
    weights: &ScoreWeights,
    feasible: impl Iterator<Item = Feasible<'a>>,
    rank: impl Fn(&NodeName) -> usize,
) -> Option<&'a NodeName> {
    let scored =
        |scale: &Scale<'_>, one: &Feasible<'a>| (&one.node.info.name, scale.scores(one).total(weights));
    if relation == Relation::Independent {
        let scale = Scale::of(ask, preferences, &[]);
        return best(feasible.map(|one| scored(&scale, &one)), rank);
    }
    let feasible: Vec<_> = feasible.collect();
    let scale = Scale::of(ask, preferences, &feasible);
    best(feasible.iter().map(|one| scored(&scale, one)), rank)
}

/// The best of the nodes that fit: a smaller `rank` comes before a higher score, 0 is the best; equals go by name.
pub fn best<'a>(
    fitting: impl IntoIterator<Item = (&'a NodeName, f64)>,
    rank: impl Fn(&NodeName) -> usize,
) -> Option<&'a NodeName> {
    let mut best: Option<(usize, f64, &NodeName)> = None;
    for (name, score) in fitting {
        let Some((best_rank, best_score, best_name)) = best else {
            best = Some((rank(name), score, name));
            continue;
        };
        let scores_higher = score.total_cmp(&best_score).then_with(|| best_name.cmp(name)).is_gt();
        // The rank is looked up only where it can matter.
        if !scores_higher && best_rank == 0 {
            continue;
        }
        let own = rank(name);
        if own < best_rank || (own == best_rank && scores_higher) {
            best = Some((own, score, name));
        }
    }
    best.map(|(_, _, name)| name)
}
