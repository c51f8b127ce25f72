//! Claims that a pod is taken to leave, and the nodes of whose cards these hold less then.

use std::{collections::BTreeSet, sync::Arc};

use super::Snapshot;
use crate::scheduling::model::name::{NodeName, Uid};

/// Takes a pod to leave these claims and to use all others that name it. Returns the nodes of whose cards claims hold more or less for it: they
/// are to be folded anew.
pub(super) fn set_left(
    snapshot: &mut Snapshot,
    pod: &Uid,
    claims: &BTreeSet<Arc<str>>,
) -> BTreeSet<NodeName> {
    if snapshot.world.resource_claims.left_by(pod) == *claims {
        return BTreeSet::new();
    }
    let known = Arc::make_mut(&mut snapshot.world.resource_claims);
    known.set_left(pod, claims);
    let moved = known.take_moved();
    moved.into_iter().filter(|node| snapshot.world.offers_cards(node)).collect()
}
