//! What a pod holds of the cards of one dialect; a pod with cards of several vendors has one allocation for each.
//!
//! It must not know the node, nor which scheduler decided it.

use std::sync::Arc;

use super::{agent::Answer, assignment::Assignment, node_devices::DeviceType, profile::ProfileName};

/// What a pod holds of the cards of one dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Allocation {
    /// The dialect in which the shares are written, and whose agent serves them.
    pub profile: ProfileName,
    /// The shares.
    pub assignment: Arc<Assignment>,
    /// Why some cards of this dialect that the pod holds are unknown; `None`: all are known.
    pub unread: Option<String>,
    /// What the node's agent has made of the shares.
    pub answer: Answer,
}

impl Allocation {
    /// An allocation of which every card is known.
    pub fn new(profile: ProfileName, assignment: Arc<Assignment>, answer: Answer) -> Self {
        Self { profile, assignment, unread: None, answer }
    }

    /// Whether the agent owes an answer: it has something to serve and has not answered.
    pub fn is_awaited(&self) -> bool {
        self.answer == Answer::Awaited && self.is_served()
    }

    /// Whether the agent answers by freeing the node's lock, and has something to serve.
    pub fn is_told_by_lock(&self) -> bool {
        self.answer == Answer::ByLock && self.is_served()
    }

    /// Whether there is anything to serve: shares of cards, or GPUs among devices by type.
    fn is_served(&self) -> bool {
        self.assignment.shares().next().is_some() || self.assignment.devices.contains_key(&DeviceType::Gpu)
    }

    /// Whether both hold the same, whenever they were written and whatever the agent has answered.
    pub fn holds_as(&self, other: &Self) -> bool {
        let Self { profile, assignment, unread, answer: _ } = other;
        (&self.profile, &self.unread) == (profile, unread) && self.assignment.holds_as(assignment)
    }
}
