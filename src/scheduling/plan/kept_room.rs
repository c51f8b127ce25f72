//! Room for a pod that waits long: on which node the fewest pods have to end before it fits, and which.
//!
//! Nobody is evicted. Each node is tried in a plan that is undone, as for [`preemption`](super::preemption): pods of no higher priority are taken off,
//! and as many are put back as the node can have beside the pod. The others have to end.

use std::{cmp::Reverse, collections::BTreeSet};

use jiff::Timestamp;

use super::{
    Plan,
    held_places::{TAKE, cards},
    preemption::{fits, is_lost, lacks_devices},
};
use crate::scheduling::{
    model::{
        name::{NodeName, Uid},
        pod::{Deletion, Demand},
        steps::{FOLD, JUDGE, PER_MILLISECOND},
    },
    plugin::pod_counts::PodCounts,
    snapshot::Snapshot,
    world::{ledger::Charge, node_state::NodeState},
};

/// So many nodes on which the pod would fit are compared.
const MOST_COMPARED: usize = 16;

/// No further node is tried in a search that has taken so many steps: about 10 ms.
const MOST_STEPS: u64 = 10 * PER_MILLISECOND;

/// A node for a pod, and who has to end there before the pod fits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::scheduling) struct RoomPlace {
    /// The node.
    pub(in crate::scheduling) node: NodeName,
    /// The pods that have to end, those that are being deleted already included.
    pub(in crate::scheduling) must_end: BTreeSet<Uid>,
}

/// Of these nodes the one on which the fewest pods have to end before the pod fits; of several, the one where these hold most cards, so that least stays
/// free meanwhile; then by name. Of the nodes on which the pod would fit, those with the fewest pods are compared. `None`: the pod would
/// fit on none.
pub(in crate::scheduling) fn choose(
    demand: &Demand,
    snapshot: &mut Snapshot,
    counts: &mut PodCounts,
    allowed: &BTreeSet<NodeName>,
) -> Option<RoomPlace> {
    let allowed = snapshot.nodes().filter(|state| allowed.contains(&state.info.name));
    let could_fit = |state: &NodeState| !is_lost(demand, state, snapshot.device_resources());
    let could_fit = allowed.filter(|state| could_fit(state)).map(|state| &state.info.name);
    let mut nodes: Vec<_> =
        could_fit.map(|node| (in_the_way(demand, node, snapshot), node.clone())).collect();
    nodes.sort();
    counts.steps().add(JUDGE + FOLD, snapshot.nodes.count());
    let mut plan = Plan::new(snapshot);
    let mut compared = Vec::new();
    let mut steps = 0;
    for (_, node) in nodes {
        let (found, taken) = who_must_end(demand, &node, &mut plan, counts);
        steps += taken;
        compared.extend(found.map(|(cost, must_end)| (cost, RoomPlace { node, must_end })));
        if compared.len() >= MOST_COMPARED || steps >= MOST_STEPS {
            break;
        }
    }
    let least = compared
        .into_iter()
        .min_by(|(cost, one), (other_cost, other)| (cost, &one.node).cmp(&(other_cost, &other.node)));
    least.map(|(_, place)| place)
}

/// The pods that have to end on this node before the pod fits; `None`: it would not fit without them either.
pub(in crate::scheduling) fn must_end(
    demand: &Demand,
    node: &NodeName,
    snapshot: &mut Snapshot,
    counts: &mut PodCounts,
) -> Option<BTreeSet<Uid>> {
    let state = snapshot.node(node)?;
    if is_lost(demand, state, snapshot.device_resources()) {
        return None;
    }
    let (found, _) = who_must_end(demand, node, &mut Plan::new(snapshot), counts);
    found.map(|(_, must_end)| must_end)
}

/// How many pods of the node could be in the way: where the pod asks for cards, those that hold some.
fn in_the_way(demand: &Demand, node: &NodeName, snapshot: &Snapshot) -> usize {
    let is_in_the_way = |charge: &Charge| {
        charge.importance.priority <= demand.priority
            && charge.importance.deletion == Deletion::None
            && (demand.ask.devices.is_empty() || !charge.allocations.is_empty())
    };
    snapshot.ledger().on_node(node).filter(|(_, charge)| is_in_the_way(charge)).count()
}

/// How many pods have to end, and how many cards they hold: the more, the less stays free until then.
type Cost = (usize, Reverse<usize>);

/// The pods that have to end on a node, and what that costs; and the steps that finding out has taken.
fn who_must_end(
    demand: &Demand,
    node: &NodeName,
    plan: &mut Plan<'_>,
    counts: &mut PodCounts,
) -> (Option<(Cost, BTreeSet<Uid>)>, u64) {
    let mark = plan.mark();
    let may_end =
        plan.ledger().on_node(node).filter(|(_, charge)| charge.importance.priority <= demand.priority);
    let mut may_end: Vec<(Uid, Charge)> =
        may_end.map(|(pod, charge)| (pod.clone(), charge.clone())).collect();
    may_end.sort_by_cached_key(|(pod, charge)| (place(charge), pod.clone()));
    let taken = (2 * TAKE + demand.ask.cost()).saturating_mul(1 + may_end.len() as u64);
    counts.steps().add(2 * TAKE + demand.ask.cost(), 1 + may_end.len());
    let lacks_devices = lacks_devices(demand, plan, node, counts);
    for (pod, _) in &may_end {
        plan.evict(pod);
    }
    let found = if lacks_devices || !fits(demand, plan, node, counts) {
        None
    } else {
        let (mut must_end, mut pods, mut held) = (BTreeSet::new(), 0, 0);
        for (pod, charge) in may_end {
            let (is_going, holds) = (charge.importance.deletion != Deletion::None, card_count(&charge));
            if !is_going {
                plan.place(&pod, charge);
                if fits(demand, plan, node, counts) {
                    continue;
                }
                plan.evict(&pod);
                (pods, held) = (pods + 1, held + holds);
            }
            must_end.insert(pod);
        }
        Some(((pods, Reverse(held)), must_end))
    };
    plan.undo(mark);
    (found, taken)
}

/// The place of a pod among those that are put back: the fewest cards first, so that few pods have to end, then the one that has run longest.
fn place(charge: &Charge) -> (usize, Timestamp) {
    (card_count(charge), charge.importance.started.unwrap_or(Timestamp::MAX))
}

fn card_count(charge: &Charge) -> usize {
    cards(&charge.node, &charge.allocations).len()
}
