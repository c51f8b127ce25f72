//! What a pod holds of the cards of one dialect; a pod with cards of several vendors has one allocation for each.
//!
//! It must not know the node, nor which scheduler decided it.

use std::sync::Arc;

use super::{
    agent::Answer, assignment::Assignment, node_devices::DeviceType, profile::ProfileName,
    request::PodRequest,
};

/// What a pod holds of the cards of one dialect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Allocation {
    /// The dialect in which the shares are written, and whose agent serves them.
    pub profile: ProfileName,
    /// The shares.
    pub assignment: Arc<Assignment>,
    /// Why some cards of this dialect that the pod holds are unknown; `None`: all are known.
    pub unread: Option<Box<str>>,
    /// What it may hold of the cards that are unknown; `None`: nothing that counts.
    pub unknown: Option<UnknownCards>,
    /// What the node's agent has made of the shares.
    pub answer: Answer,
}

/// What a pod may hold whose cards are unknown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UnknownCards {
    /// What its spec asks for, of any card of the dialect.
    Asked(Arc<PodRequest>),
    /// Any card and any device of the dialect, as a whole.
    Everything,
}

impl Allocation {
    /// An allocation of which every card is known.
    pub fn new(profile: ProfileName, assignment: Arc<Assignment>, answer: Answer) -> Self {
        Self { profile, assignment, unread: None, unknown: None, answer }
    }

    /// The same; where it can't be read, with the cards that were known before to be held by the pod.
    #[must_use]
    pub fn or_known(self, before: &[Self]) -> Self {
        let known = before.iter().find(|known| known.profile == self.profile && known.names_all());
        match known.filter(|_| self.unread.is_some()) {
            Some(known) => Self { assignment: known.assignment.clone(), unknown: None, ..self },
            None => self,
        }
    }

    /// Whether it names cards or devices, and all that the pod holds.
    fn names_all(&self) -> bool {
        let names = self.assignment.shares().next().is_some() || !self.assignment.devices.is_empty();
        self.unknown.is_none() && names
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
        let Self { profile, assignment, unread, unknown, answer: _ } = other;
        (&self.profile, &self.unread, &self.unknown) == (profile, unread, unknown)
            && self.assignment.holds_as(assignment)
    }
}
