//! Device plugins that have given no sign for too long.

use std::collections::BTreeSet;

use super::BindingCycle;
use crate::{
    device::ProfileName,
    scheduling::{model::name::NodeName, node_flow::NodeFlowInput},
};

impl BindingCycle {
    /// Takes in which of the node's plugins have given no sign for too long; who waits for one that is back is decided again.
    pub(in crate::scheduling::scheduler) fn expire(
        &mut self,
        node: &NodeName,
        expired: &BTreeSet<ProfileName>,
    ) {
        let before = self.cycle.snapshot.set_expired(node, expired.clone());
        if !before.is_subset(expired) {
            self.wake(node);
        }
        if !expired.is_subset(&before) {
            self.advance(node, NodeFlowInput::Dismissed);
        }
    }
}
