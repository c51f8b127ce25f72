//! What is found wrong: raised once for each object and cleared when it is over. No pod loses anything for a finding.
//!
//! A finding carries names and amounts. The adapters make it into text. `Findings` keeps what was found on each node, so that a finding which lasts
//! is reported once.

mod double_allocation;
mod overcommitment;
mod unassigned;
mod unread;
mod watch;

use std::{fmt, sync::Arc};

use super::model::{
    message::Message,
    name::{NodeName, Uid},
    pod::PodKey,
};

pub use double_allocation::DoubleAllocation;
pub use overcommitment::{Beyond, Overcommitment, overcommitted};
pub use unassigned::MissingAssignment;
pub use unread::UnreadAssignment;
pub use watch::{FindingCounts, NodeFindings};
pub(in crate::scheduling) use watch::{Findings, Raised};

/// Something that is wrong with what a pod, a node or a namespace holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Finding {
    /// Pods hold more of a card of the pod than it has.
    Overcommitted(Overcommitment),
    /// Two claims were given a device of the pod.
    DoubleAllocation(DoubleAllocation),
    /// Which cards the pod holds can't be read.
    Unread(UnreadAssignment),
    /// The pod is bound, requests a share and carries no assignment.
    Unassigned(MissingAssignment),
    /// The ledger differed from the cluster, and was corrected.
    Drift(Drift),
}

/// Whom a finding is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Concern {
    /// A pod.
    Pod(PodKey),
    /// A node.
    Node(NodeName),
    /// A namespace.
    Namespace(Arc<str>),
}

/// How the ledger or the queue differed from what the cluster's objects say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Drift {
    /// The ledger did not have what the pod holds.
    Uncharged(PodKey),
    /// The ledger had a pod that holds nothing, which concerns this.
    Overcharged(Uid, Concern),
    /// The use of the node was not the sum of its pods.
    NodeUse(NodeName),
    /// What is used of the namespace's quota was not the sum of its pods.
    QuotaUse(Arc<str>),
    /// The pod was in no queue and in no line.
    Forgotten(PodKey),
    /// The pod stayed pending although a node accepts it.
    NeedlessWait(PodKey),
}

impl Drift {
    /// Whom it is about.
    pub fn concern(&self) -> Concern {
        match self {
            Self::Uncharged(pod) | Self::Forgotten(pod) | Self::NeedlessWait(pod) => {
                Concern::Pod(pod.clone())
            }
            Self::Overcharged(_, concern) => concern.clone(),
            Self::NodeUse(node) => Concern::Node(node.clone()),
            Self::QuotaUse(namespace) => Concern::Namespace(namespace.clone()),
        }
    }
}

impl Finding {
    /// Its text, in full and without what is not the pod's owner's.
    pub fn message(&self) -> Message {
        match self {
            Self::Overcommitted(found) => {
                Message::with_own(found.to_string(), "Pods hold more of a card of this Pod than it has")
            }
            Self::DoubleAllocation(found) => found.message(),
            Self::Unread(found) => found.message(),
            Self::Unassigned(found) => found.message(),
            Self::Drift(drift) => Message::from(drift.to_string()),
        }
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::Uncharged(_) => "the ledger did not have what the pod holds",
            Self::Overcharged(uid, _) => {
                return write!(formatter, "the ledger had pod {uid}, which holds nothing");
            }
            Self::NodeUse(_) => "the use of the node was not the sum of its pods",
            Self::QuotaUse(_) => "what is used of its quota was not the sum of its pods",
            Self::Forgotten(_) => "the pod was in no queue and in no line",
            Self::NeedlessWait(_) => "the pod stayed pending although a node accepts it",
        };
        formatter.write_str(words)
    }
}
