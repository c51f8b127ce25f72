//! Everything that gangs request: one closed list.

use std::sync::Arc;

use crate::scheduling::{
    model::{gang::GangName, measure::Measure, name::Uid, pod::Ask},
    plan::gang::{GangNoRoom, GangReason},
};

/// Something that follows for a pod from what is so of its gang.
#[derive(Clone, Debug)]
pub(in crate::scheduling::scheduler) enum GangRequest {
    /// Take the decision for the pod back, and decide it again.
    Requeue(Uid),
    /// Decide the pod again, which waits.
    DecideAgain(Uid),
    /// Put the pod in the queue anew: it comes before all others now.
    Reorder(Uid),
    /// Evict the bound pod, since not all pods of its gang could be bound.
    RollBack(Uid, GangName),
    /// The pod can't be decided before something changes of its gang: it waits, and says why.
    Postpone(Uid, GangReason),
    /// The pod has no place beside its gang: it waits for what may help it, and says what is missing.
    Refuse {
        /// Which pod.
        pod: Uid,
        /// What it asks for.
        ask: Arc<Ask>,
        /// What is missing.
        why: GangNoRoom,
    },
    /// Note what was measured.
    Measure(Measure),
}
