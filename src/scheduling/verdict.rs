//! What one node makes of one pod: whether it fits, with which cards and which score; and the best of those that fit.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    filter::filter, node::NodeName, pod::Ask, reason::NodeReasons, score::RawScores, snapshot::NodeState,
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

/// The best of the nodes that fit: a smaller `rank` comes before a higher score, 0 is the best; equals go by name.
pub fn best<'a>(
    fitting: impl IntoIterator<Item = (&'a Arc<NodeState>, f64)>,
    rank: impl Fn(&NodeName) -> usize,
) -> Option<&'a Arc<NodeState>> {
    let mut best: Option<(usize, f64, &Arc<NodeState>)> = None;
    for (node, score) in fitting {
        let Some((best_rank, best_score, best_node)) = best else {
            best = Some((rank(&node.info.name), score, node));
            continue;
        };
        // Names are compared and ranks looked up only where they can matter: both are far from the scores in memory.
        let by_score = score.total_cmp(&best_score);
        let comes_before = by_score.then_with(|| best_node.info.name.cmp(&node.info.name)).is_gt();
        if !comes_before && best_rank == 0 {
            continue;
        }
        let own = rank(&node.info.name);
        if own < best_rank || (own == best_rank && comes_before) {
            best = Some((own, score, node));
        }
    }
    best.map(|(_, _, node)| node)
}
