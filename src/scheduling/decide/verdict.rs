//! What one node makes of one pod: whether it fits, with which cards and which score; and the best of those that fit.

use std::{
    collections::BTreeSet,
    iter,
    sync::{Arc, OnceLock},
};

use smallvec::SmallVec;

use super::nearest::Closeness;
use crate::device::{Allocation, CardPreference, CardUsage, InitPhase, ProfileRequest, Quota, usage};
use crate::scheduling::{
    model::{name::NodeName, pod::Ask},
    packing::Packing,
    plugin::{
        NodeReasons,
        contract::Placement,
        filter::{filter, filter_from},
        least_waste::first_card,
        score::NodeScores,
    },
    world::{World, node_state::NodeState},
};

/// What a pod would take of the quotas, one amount for each of its requests of cards.
pub type Taken = SmallVec<[CardUsage; 1]>;

/// What a class makes of a node.
#[derive(Clone, Debug)]
pub enum NodeVerdict {
    /// It fits, whatever the quotas.
    Fits(FittingNode),
    /// It does not.
    Fails(FailingNode),
}

/// Why a node does not fit a pod.
#[derive(Clone, Debug, Default)]
pub struct FailingNode {
    /// The reasons.
    pub reasons: NodeReasons,
    closeness: OnceLock<Closeness>,
}

impl FailingNode {
    /// How close the node comes, whatever the quotas: found out only where no node is taken.
    pub(super) fn closeness(&self, ask: &Ask, node: &NodeState) -> Closeness {
        *self.closeness.get_or_init(|| Closeness::of(ask, node, &self.reasons, &[]))
    }
}

/// What a node that fits a pod is to it.
#[derive(Clone, Debug)]
pub struct FittingNode {
    /// Its scores.
    pub scores: NodeScores,
    /// So much of the quotas would be taken.
    pub taken: Taken,
}

/// What judging a node depends on beside the node and the ask, the same for every node.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The dialects' own resources: a node need not advertise them.
    pub device_resources: &'a BTreeSet<String>,
    /// What rooms are worth to the pods that may come.
    pub packing: &'a Packing,
}

impl<'a> From<&'a World> for Surroundings<'a> {
    fn from(world: &'a World) -> Self {
        Self { device_resources: world.device_resources(), packing: world.packing() }
    }
}

/// Judges one node for one ask of a namespace that may still take so much for each request: the cards that it would give and its
/// scores.
pub fn judge(
    ask: &Ask,
    node: &NodeState,
    around: Surroundings<'_>,
    quotas: &[Quota],
) -> Result<(Vec<Allocation>, NodeScores), NodeReasons> {
    let allocations = filter(ask, node, around.device_resources, quotas)?;
    let placement = Placement { ask, node, allocations: &allocations, packing: around.packing };
    let scores = NodeScores::of(&placement);
    Ok((allocations, scores))
}

/// The cards that a node would give that fits; of those that would do for a share of one card, the one that is best.
pub(in crate::scheduling) fn choose(
    ask: &Ask,
    node: &NodeState,
    around: Surroundings<'_>,
    quotas: &[Quota],
) -> Result<Vec<Allocation>, NodeReasons> {
    let resources = around.device_resources;
    if ask.devices.iter().any(|device| device.request.choice.order.contains(&CardPreference::LeastWaste))
        && let Some(first) = first_card(ask, node, around.packing)
        // Whether a node fits does not depend on which card is tried first: a quota may have one card be too large.
        && let Ok(given) = filter_from(Some(&first), ask, node, resources, quotas)
    {
        return Ok(given);
    }
    filter(ask, node, resources, quotas)
}

impl NodeVerdict {
    /// What becomes of the node for this ask, whatever the quotas.
    pub(in crate::scheduling) fn of(ask: &Ask, node: &NodeState, around: Surroundings<'_>) -> Self {
        let taken = |device: &ProfileRequest, given: &[Allocation]| {
            let given = given.iter().find(|one| one.profile == device.profile.name);
            // Of what a claim serves, what the pod says.
            given
                .map_or_else(|| device.request.least(), |one| usage::total(&one.assignment, InitPhase::Ahead))
        };
        match filter(ask, node, around.device_resources, &[]) {
            Ok(given) => {
                let placement = Placement { ask, node, allocations: &given, packing: around.packing };
                let scores = NodeScores::of(&placement);
                let taken = ask.devices.iter().map(|device| taken(device, &given)).collect();
                Self::Fits(FittingNode { scores, taken })
            }
            Err(reasons) => Self::Fails(FailingNode { reasons, closeness: OnceLock::new() }),
        }
    }
}

/// Whether a node that fits whatever the quotas, with so much taken, does so under the quotas; or why it would not do. Where that would take too much,
/// other cards of the node may do: then the scores are those of these; else `None`.
pub(in crate::scheduling) fn within(
    ask: &Ask,
    node: &NodeState,
    around: Surroundings<'_>,
    quotas: &[Quota],
    taken: &[CardUsage],
) -> Result<Option<NodeScores>, NodeReasons> {
    if iter::zip(quotas, taken).all(|(quota, taken)| quota.admits(*taken)) {
        return Ok(None);
    }
    judge(ask, node, around, quotas).map(|(_, scores)| Some(scores))
}

/// The least rank among these nodes, and the least place of those that have it; `None`: there are none.
pub fn first_of<'a, P: Ord>(
    places: impl IntoIterator<Item = (&'a Arc<NodeState>, P)>,
    rank: impl Fn(&NodeName) -> usize,
) -> Option<(usize, P)> {
    places.into_iter().map(|(node, place)| (rank(&node.info.name), place)).min()
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
