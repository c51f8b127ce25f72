//! Whether one node can serve a pod: the plugins that look at one node, in kube-scheduler's order; the cards come last.

use std::collections::BTreeSet;

use super::{NODE_TESTS, devices};
use crate::device::{Allocation, Quota};
use crate::scheduling::{
    model::{pod::Ask, reason::NodeReasons},
    world::snapshot::NodeState,
};

/// All that the plugins which look at one node may read.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// What the pod asks for.
    pub ask: &'a Ask,
    /// The node as it stands.
    pub node: &'a NodeState,
    /// The dialects' own resources: a node need not advertise them.
    pub device_resources: &'a BTreeSet<String>,
}

/// The cards that the node would give, one allocation for each request, or every reason of the first plugin that rejects it.
///
/// `device_resources` are the dialects' own: a node need not advertise them. `quotas` is what the pod's namespace may still take, one for each
/// request; a request without one has no bound.
pub fn filter(
    ask: &Ask,
    node: &NodeState,
    device_resources: &BTreeSet<String>,
    quotas: &[Quota],
) -> Result<Vec<Allocation>, NodeReasons> {
    let scene = Scene { ask, node, device_resources };
    for test in NODE_TESTS {
        test(&scene)?;
    }
    devices::allocations(&scene, quotas)
}
