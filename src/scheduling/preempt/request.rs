//! Everything that is requested where pods are preempted: one closed list.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Nominated;
use crate::scheduling::model::{
    name::{NodeName, Uid},
    pod::PodKey,
};

/// Something that is requested. The requests of one input are carried out in their order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum PreemptRequest {
    /// Keep the node for the pod, for which these victims go.
    Keep {
        /// Which pod.
        pod: Uid,
        /// Which node.
        node: NodeName,
        /// Who goes, or has to end first where room is kept.
        victims: BTreeSet<Uid>,
        /// Since when room is kept for it because it waits long; `None`: the victims are deleted.
        room_since: Option<Timestamp>,
    },
    /// Keep no node for the pod any more.
    EndNomination(Uid),
    /// Write into the pod's status which node is kept for it. Answered by `Nominated`.
    Nominate(PodKey, Nominated),
    /// Note what the pod's status states of that now.
    NoteStated {
        /// Which pod.
        pod: Uid,
        /// What.
        stated: Nominated,
        /// The pod's version since then.
        resource_version: String,
    },
    /// Note that the nomination stands in the pod's status: once the status states none any more, it is over.
    NoteNominationWritten(Uid),
    /// Find out whether the pod still waits and fits nowhere. Answered at once by [`Confirmed`](super::input::PreemptInput::Confirmed). It is the
    /// last request of an input.
    Confirm(PodKey),
    /// Delete a victim. Answered by `Deleted`.
    Delete {
        /// Which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// For which pod.
        preemptor: PodKey,
    },
    /// Take the decision for a victim that is not bound yet back, unless this node is just locking or binding it, and decide it again after a
    /// backoff.
    BackOffIfNotServed(Uid, NodeName),
    /// Decide the pod again after a backoff, if it waits.
    BackOffIfWaiting(Uid),
    /// Decide the pod again, if it waits.
    DecideAgain(Uid),
    /// Decide pods again for which nodes had no room beside those that they are kept for.
    WakeKept,
}
