//! Everything that can happen to preemptions: one closed list.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Nominated;
use crate::scheduling::{
    model::{
        kept_room::RoomCourse,
        name::{NodeName, Uid},
        outcome::WriteOutcome,
        pod::PodKey,
    },
    plan::preemption::Candidate,
};

/// Whether a pod for which others are to go still needs that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum Need {
    /// It waits, and fits nowhere.
    Still,
    /// It fits somewhere by now, or wants no place any more.
    NoLonger,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub(in crate::scheduling) enum PreemptInput<'a> {
    /// A node was chosen for a pod, and the pods that go for it there: for a pod of a gang maybe none.
    Chosen {
        /// Which pod.
        pod: &'a Uid,
        /// Its priority.
        priority: i32,
        /// Which node, and who goes.
        candidate: Candidate,
    },
    /// Room is to be kept for a pod that waits long.
    RoomChosen {
        /// Which pod.
        pod: &'a Uid,
        /// On which node.
        node: NodeName,
        /// The pods that have to end before it fits there.
        must_end: BTreeSet<Uid>,
        /// Since when.
        since: Timestamp,
    },
    /// Room is not to be kept for this pod any more.
    RoomEnded(&'a Uid, RoomCourse),
    /// No node was chosen for a pod that fits nowhere. kube-scheduler clears `nominatedNodeName` then (v1.36
    /// `framework/preemption/preemption.go`).
    NoneChosen(&'a Uid),
    /// The node that is kept for this pod is to be there for others.
    Withdrawn(&'a Uid),
    /// What came of writing a pod's nominated node.
    Nominated {
        /// Which pod.
        pod: &'a PodKey,
        /// What its status was to state.
        stated: &'a Nominated,
        /// What came of it.
        outcome: &'a WriteOutcome,
    },
    /// The answer to [`Confirm`](super::request::PreemptRequest::Confirm).
    Confirmed(PodKey, Need),
    /// A pod is left of a group that goes as a whole, of which others were preempted already.
    LeftOver {
        /// Which pod.
        pod: &'a PodKey,
        /// For which pod the others went.
        preemptor: &'a PodKey,
        /// On which node.
        node: &'a NodeName,
    },
    /// A pod is bound.
    Bound(&'a PodKey),
    /// What came of deleting a victim. That it goes is seen by itself.
    Deleted {
        /// Which victim.
        pod: &'a PodKey,
        /// For which pod.
        preemptor: &'a PodKey,
        /// What came of it.
        outcome: &'a WriteOutcome,
    },
    /// A time may have come at which kept nodes begin to go to others.
    TimePassed,
}
