//! What may let a waiting pod through that a plugin which looks at more than one node has rejected: kube-scheduler's cluster events.

use std::sync::Arc;

use super::kind::Kind;
use super::{footprint::Footprint, name::NodeName};

/// A change beside the one node that has more room.
#[derive(Clone, Debug)]
pub enum Change {
    /// A pod stands on a node that did not stand there, or has become another.
    PodAdded(Arc<Footprint>),
    /// More is held of a node.
    Charged(NodeName),
    /// A pod no longer stands on a node, or was another before.
    PodRemoved(Arc<Footprint>),
    /// A node is new or gone, or its labels, taints or features are others.
    Node,
    /// A node is kept for a pod, or no longer.
    Nomination,
    /// A claim of devices holds less, or what pods that are being placed have chosen for it.
    DevicesFreed,
    /// A node has more left of its own resources, of which devices take some.
    ResourcesFreed,
    /// Claims of devices hold more or less of a node's cards.
    CardsClaimed(NodeName),
    /// An object of another kind is new, changed or gone.
    Object(Kind, Arc<str>),
}
