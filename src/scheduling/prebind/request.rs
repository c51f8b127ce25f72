//! Everything that is requested where claims are bound: one closed list.

use std::sync::Arc;

use super::reason::PrebindReason;
use crate::{
    object::resource_claim::AllocationResult,
    scheduling::model::{
        name::{NodeName, Uid},
        pod::PodKey,
        prebind_write::PrebindWrite,
    },
};

/// Something that is requested. The requests of one input are carried out in their order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum PrebindRequest {
    /// Write this for a claim of the pod. Answered by [`Answered`](super::input::PrebindInput::Answered).
    Write(PodKey, PrebindWrite),
    /// Have the pod join the line of this node: its claims are bound.
    Join(Uid, NodeName),
    /// Take the decision for the pod back, decide it again after a backoff, and report why.
    BackOff(Uid, PrebindReason),
    /// From now on the pod, and those of its gang that are not bound, come after those of their priority that are there already.
    PutBehind(Uid),
    /// Report what the pod waits for.
    Tell(Uid, PrebindReason),
    /// Decide those pods again that would have this node without pods which give their places to others.
    WakeForHeld(NodeName),
    /// Hold devices for a claim, by its full name, since a write may still give it these; `None`: hold none any more.
    Linger(Arc<str>, Option<Arc<AllocationResult>>),
}
