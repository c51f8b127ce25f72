//! The tests that a node must pass before a pod may be placed on it, and what scores the nodes that pass: a closed table, one file
//! for each plugin, named as in kube-scheduler. [`devices`] is Berth's own, and [`mod@tdm`] is Volcano's.
//!
//! Most look at one pod and one node, so that their answer holds until the node changes ([`super::decide::class`] keeps it). Those that look
//! at more than one node are asked once for a pod ([`cycle`]) and then test the nodes that passed the others.

pub mod allocate;
pub mod claim_fits;
pub mod cycle;
pub mod devices;
pub mod dynamic_resources;
pub mod filter;
pub mod image_locality;
pub mod inter_pod_affinity;
pub mod node_affinity;
pub mod node_declared_features;
pub mod node_ports;
pub mod node_resources_balanced_allocation;
pub mod node_resources_fit;
pub mod node_unschedulable;
pub mod node_volume_limits;
pub mod pod_counts;
pub mod pod_topology_spread;
pub mod scene;
pub mod score;
pub mod taint_toleration;
pub mod tdm;
pub mod volume_binding;
pub mod volume_restrictions;
pub mod volume_zone;

use scene::Scene;

use super::model::reason::NodeReasons;

/// A test of one node.
type Test = fn(&Scene<'_>) -> Result<(), NodeReasons>;

/// The tests of one node that come before the cards, cheapest first as in kube-scheduler.
pub(super) const NODE_TESTS: &[Test] = &[
    node_unschedulable::test,
    taint_toleration::test,
    node_affinity::test,
    node_ports::test,
    node_resources_fit::test,
    volume_restrictions::test,
    node_declared_features::test,
    tdm::test,
    devices::test_agent,
];
