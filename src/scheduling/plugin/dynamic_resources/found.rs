//! What the allocator finds on a node for claims that are given devices there.

use std::sync::Arc;

use super::alternatives::AlternativePoints;
use crate::dra::NodeResourcesTaken;

/// What claims that are given devices take of the node, in their order; none where no device takes anything.
pub(in crate::scheduling) type TakenByEach = Arc<[NodeResourcesTaken]>;

/// What the allocator finds on a node for claims that are given devices there.
#[derive(Clone, Debug, Default)]
pub(in crate::scheduling) struct FoundDevices {
    /// How early the alternatives are that they get.
    pub(in crate::scheduling) points: AlternativePoints,
    /// What each of them takes of the node.
    pub(in crate::scheduling) taken: TakenByEach,
}
