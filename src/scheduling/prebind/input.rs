//! Everything that can happen to pods whose claims are bound, or are to be: one closed list.

use crate::{
    object::ResourceClaim,
    scheduling::model::{
        name::{NodeName, Uid},
        outcome::WriteOutcome,
        pod::PodKey,
        prebind_step::PrebindStep,
        prebind_write::PrebindWrite,
    },
};

/// Something that happened.
#[derive(Clone, Debug)]
pub(in crate::scheduling) enum PrebindInput<'a> {
    /// A pod was decided, and its claims are to be bound. Nothing is written before its turn comes.
    Decided {
        /// Which pod.
        pod: PodKey,
        /// Its place among all pods ever seen.
        seen: u64,
        /// For which node.
        node: NodeName,
        /// What is to be written.
        steps: Vec<PrebindStep>,
    },
    /// The claims of this pod may go further.
    Touched(&'a Uid),
    /// What came of a write for a claim.
    Answered {
        /// For which pod.
        pod: &'a PodKey,
        /// Of which write.
        write: &'a PrebindWrite,
        /// What came of it.
        outcome: WriteOutcome,
    },
    /// All claims of these pods are bound, and those of their gangs are.
    Permitted(Vec<Uid>),
    /// What is taken back may go further.
    UndosTouched,
    /// A time may have come at which pods say what they wait for, or give their places to others.
    TimePassed,
    /// A pod is no longer to be placed on the node whose claims are being bound.
    GivenUp(&'a Uid),
    /// The place of this pod is given to another.
    PlaceTaken(&'a Uid),
    /// A pod fits nowhere, with the claims that it has.
    Unschedulable(&'a Uid),
    /// A claim of devices was seen.
    ClaimSeen(&'a ResourceClaim),
    /// A pod is gone.
    PodGone(&'a PodKey),
}
