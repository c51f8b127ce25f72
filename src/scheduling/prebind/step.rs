//! One claim of a pod that is being placed: what is to be written for it, and how far that is.

use jiff::Timestamp;

use super::reason::PrebindReason;
use crate::scheduling::model::{
    outcome::{REACH, Setback},
    prebind_step::PrebindStep,
    prebind_write::PrebindWrite,
};
use crate::scheduling::queue::backoff;

/// One claim of a pod that is being placed.
#[derive(Debug)]
pub(super) struct ClaimStep {
    pub(super) choice: PrebindStep,
    /// How many writes were sent.
    pub(super) tries: u32,
    /// Whether a write was sent that gives a claim devices.
    pub(super) gave: bool,
    /// Whether it was written into the pod's status which claim serves extended resources.
    pub(super) stated: bool,
    pub(super) state: ClaimState,
    /// Until when a write without an answer may still arrive; `None`: each has an answer, or a later one has been written.
    pub(super) in_doubt: Option<Timestamp>,
}

impl ClaimStep {
    /// A claim for which so many writes were sent before.
    pub(super) fn new(choice: PrebindStep, tries: u32) -> Self {
        Self { choice, tries, gave: false, stated: false, state: ClaimState::Unsent, in_doubt: None }
    }

    /// This write is sent.
    pub(super) fn send(&mut self, write: &PrebindWrite) {
        (self.state, self.tries) = (ClaimState::Sent, self.tries + 1);
        self.gave |= write.gives_devices();
        self.stated |= write.states_claim();
    }

    /// A write may or may not be written: it is sent again after a pause.
    pub(super) fn pause(&mut self, setback: &Setback, now: Timestamp) {
        let pause = backoff(self.tries).max(setback.wait);
        self.state = ClaimState::Due(now.checked_add(pause).unwrap_or(now));
        self.in_doubt = Some(end_of_reach(now));
    }

    /// The answer to a write that is under way will not be read.
    pub(super) fn drop_answer(&mut self, now: Timestamp) {
        if self.state == ClaimState::Sent {
            (self.state, self.in_doubt) = (ClaimState::Due(now), Some(end_of_reach(now)));
        }
    }

    /// The last write is written, at this version of the object.
    pub(super) fn written(&mut self, version: String) {
        (self.state, self.in_doubt) = (ClaimState::Written(version), None);
    }

    /// How far the undoing of its writes is: what is under way is undone once it is answered, what is written once it is seen, and what has no answer
    /// once it can no longer arrive.
    pub(super) fn when_undone(&self) -> ClaimState {
        match &self.state {
            // The version is the pod's, and everything of the claim itself was seen before that.
            ClaimState::Written(_) if self.stated => ClaimState::Unsent,
            ClaimState::Unsent | ClaimState::Due(_) => {
                self.in_doubt.map_or(ClaimState::Unsent, ClaimState::Due)
            }
            ClaimState::Sent | ClaimState::Written(_) => self.state.clone(),
        }
    }
}

/// When a write that has no answer by now can no longer arrive.
pub(super) fn end_of_reach(now: Timestamp) -> Timestamp {
    now.checked_add(REACH).unwrap_or(now)
}

/// How far a claim is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ClaimState {
    /// To be written.
    Unsent,
    /// To be written from then on.
    Due(Timestamp),
    /// The write is under way.
    Sent,
    /// Written, at this version of the object.
    Written(String),
}

impl ClaimState {
    /// Ends a pause that is over: a claim that has been bound meanwhile is not written again, and a time that has passed would
    /// stay the scheduler's next deadline, by which its loop wakes.
    pub(super) fn come_due(&mut self, now: Timestamp) {
        if self.due().is_some_and(|at| at <= now) {
            *self = Self::Unsent;
        }
    }

    /// When it is to be written.
    pub(super) fn due(&self) -> Option<Timestamp> {
        match self {
            Self::Due(at) => Some(*at),
            Self::Unsent | Self::Sent | Self::Written(_) => None,
        }
    }
}

/// What is to be done for a claim, as everything is known now.
pub(super) enum ClaimProgress {
    /// The claim is bound, and what it is bound to can be used on the node.
    Bound,
    /// A controller or a driver has its turn, or another pod's write.
    Awaited,
    /// It is written already, at this version of the object.
    Adopted(String),
    /// This has to be written.
    Write(PrebindWrite),
    /// The pod can't be placed there.
    Failed(PrebindReason),
}
