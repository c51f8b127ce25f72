//! The tests that a node must pass before a pod may be placed on it: a closed table, one file for each, named as in
//! kube-scheduler. [`devices`] is Berth's own.
//!
//! A plugin here looks at one pod and one node, so its answer holds until the node changes ([`super::class`] keeps it).

pub mod devices;
pub mod node_affinity;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod taint_toleration;

use super::{filter::Scene, reason::NodeReasons};

/// A plugin, in the order in which kube-scheduler asks them (v1.36 `pkg/scheduler/apis/config/v1/default_plugins.go`).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Plugin {
    /// Cordons.
    NodeUnschedulable,
    /// Taints of the node and tolerations of the pod.
    TaintToleration,
    /// Node selector and node affinity.
    NodeAffinity,
    /// Resources that Kubernetes accounts.
    NodeResourcesFit,
    /// Cards: fit, quota and the device plugin's state.
    Devices,
}

impl Plugin {
    /// The name, as kube-scheduler's configuration spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NodeUnschedulable => "NodeUnschedulable",
            Self::TaintToleration => "TaintToleration",
            Self::NodeAffinity => "NodeAffinity",
            Self::NodeResourcesFit => "NodeResourcesFit",
            Self::Devices => "Devices",
        }
    }
}

/// A test of one node.
type Test = fn(&Scene<'_>) -> Result<(), NodeReasons>;

/// The tests of one node that come before the cards, cheapest first as in kube-scheduler.
pub(super) const NODE_TESTS: &[Test] = &[
    node_unschedulable::test,
    taint_toleration::test,
    node_affinity::test,
    node_resources_fit::test,
    devices::test_agent,
];
