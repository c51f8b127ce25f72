//! How much a pod balances the use of a node's cpu and memory.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go`.

use std::convert::Infallible;

use super::{
    contract::{Placement, SchedulingPlugin, Score},
    score::range::{MOST, float, whole},
};
use crate::scheduling::{
    model::{pod::Ask, resources::ResourceAmounts},
    world::{node_parts::NodePart, node_state::NodeState, nodes::Nodes},
};

/// The resources that are balanced.
const BALANCED: [&str; 2] = ["cpu", "memory"];

/// Prefers nodes whose cpu and memory the pod makes used evenly.
#[derive(Debug)]
pub struct NodeResourcesBalancedAllocation;

impl SchedulingPlugin for NodeResourcesBalancedAllocation {
    const NAME: &'static str = "NodeResourcesBalancedAllocation";
    const WEIGHT: Option<u32> = Some(1);

    type Reason = Infallible;

    fn reads(_ask: &Ask) -> Option<&'static [NodePart]> {
        Some(&[NodePart::Amounts])
    }
}

impl Score for NodeResourcesBalancedAllocation {
    fn score(placement: &Placement<'_>) -> Option<f64> {
        // Evenly used nodes are what least-waste avoids.
        let counts = !placement.ask.wastes_least();
        score(&placement.ask.resources, placement.node).filter(|_| counts).map(float)
    }

    fn is_even(ask: &Ask, _nodes: &Nodes) -> bool {
        ask.wastes_least()
    }
}

/// 50 to 100: about 75 where the pod changes little, more where it balances the node; `None`: it requests neither resource.
fn score(requests: &ResourceAmounts, node: &NodeState) -> Option<i64> {
    let own = BALANCED.map(|name| requests.get(name));
    if own == [0, 0] {
        return None;
    }
    let capacity = BALANCED.map(|name| node.info.allocatable.get(name));
    let before = BALANCED.map(|name| node.requested.get(name));
    let after = [before[0].saturating_add(own[0]), before[1].saturating_add(own[1])];
    Some(MOST / 2 + (MOST / 2 + balance(after, capacity) - balance(before, capacity)) / 2)
}

/// 50 to 100: 100 where the same part of both is used. A resource that the node has none of is left out.
fn balance(used: [i64; 2], capacity: [i64; 2]) -> i64 {
    if capacity.contains(&0) {
        return MOST;
    }
    let part = |at: usize| (float(used[at]) / float(capacity[at])).min(1.0);
    let deviation = ((part(0) - part(1)) / 2.0).abs();
    whole((1.0 - deviation) * float(MOST))
}
