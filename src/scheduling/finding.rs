//! What is found wrong: by node, raised once and cleared when it is over. Nothing is taken from anybody for it.
//!
//! A finding carries names and amounts; it is made into text where it is told. [`Findings`] keeps what was found on each node, so that what lasts is
//! reported once.

mod overcommitment;
mod unassigned;
mod unread;
mod watch;

use std::fmt;

use super::model::{message::Message, name::Uid};

pub use overcommitment::{Beyond, Overcommitment, overcommitted};
pub use unassigned::MissingAssignment;
pub use unread::UnreadAssignment;
pub use watch::NodeFindings;
pub(in crate::scheduling) use watch::{Findings, Raised};

/// Something that is wrong with what a pod, a node or a namespace holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Finding {
    /// Pods hold more of a card of the pod than it has.
    Overcommitted(Overcommitment),
    /// Which cards the pod holds can't be read.
    Unread(UnreadAssignment),
    /// The pod is bound, requests a share and carries no assignment.
    Unassigned(MissingAssignment),
    /// The ledger differed from the cluster, and was corrected.
    Drift(Drift),
}

/// How the ledger or the queue differed from what the cluster's objects say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Drift {
    /// What is used of a node was not the sum of what its pods hold.
    NodeUse,
    /// What is used of a namespace's quota was not the sum of what its pods hold.
    QuotaUse,
    /// The pod holds something, and the ledger did not have it.
    Uncharged,
    /// The ledger had something of this pod, which holds nothing.
    Overcharged(Uid),
    /// The pod was in no queue and in no line.
    Forgotten,
    /// The pod waited although a node accepts it.
    NeedlessWait,
}

impl Finding {
    /// What is told of it: in full, and without what is not the pod's owner's.
    pub fn message(&self) -> Message {
        match self {
            Self::Overcommitted(found) => {
                Message::with_own(found.to_string(), "Pods hold more of a card of this Pod than it has")
            }
            Self::Unread(found) => found.message(),
            Self::Unassigned(found) => found.message(),
            Self::Drift(drift) => Message::from(drift.to_string()),
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::NodeUse => "the use of the node was not the sum of its pods",
            Self::QuotaUse => "what is used of its quota was not the sum of its pods",
            Self::Uncharged => "the ledger did not have what the pod holds",
            Self::Overcharged(uid) => {
                return write!(formatter, "the ledger had pod {uid}, which holds nothing");
            }
            Self::Forgotten => "the pod was in no queue and in no line",
            Self::NeedlessWait => "the pod stayed pending although a node accepts it",
        };
        formatter.write_str(words)
    }
}
