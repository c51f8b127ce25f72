//! What the pod at the head of a node's line waits for, and why a pod that was served there is decided anew; and the words for that.

use jiff::Timestamp;

use crate::{
    device::LockOwner,
    scheduling::{
        decide::blame::Blame,
        model::{message::Message, name::NodeName, pod::PodKey},
    },
};

/// What the pod at the head of a node's line waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LineWait {
    /// The answer of the node's device plugin.
    Plugin {
        /// Which node.
        node: NodeName,
        /// For which pod it is allocating, and since when; `None`: it may be for one that is deleted.
        allocating: Option<(PodKey, Timestamp)>,
    },
    /// The node's lock.
    Lock {
        /// Which node.
        node: NodeName,
        /// Whom it names, and since when it is held; `None`: it can't be read.
        held: Option<(Option<LockOwner>, Timestamp)>,
    },
}

/// Why a pod could not be bound to the node in whose line it stood.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeFailure {
    /// The lock of this node could not be taken.
    Lock(NodeName, LockFailure),
    /// The API server refused the Binding to this node, and answered this.
    Binding(NodeName, String),
}

/// Why a node's lock could not be taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LockFailure {
    /// The API server refused the write, and answered this.
    Refused(String),
    /// Each time the node had changed meanwhile, or the API server failed.
    TriedTooOften,
}

impl LineWait {
    /// What the pod is told.
    pub fn message(&self) -> Message {
        match self {
            Self::Plugin { node, allocating: Some((pod, since)) } => Message::with_own(
                format!(
                    "Waiting for the device plugin of node {node}, which has been allocating for {pod} since {since:.0}"
                ),
                format!(
                    "Waiting for the device plugin of a node, which has been allocating for another pod since {since:.0}"
                ),
            ),
            Self::Plugin { node, allocating: None } => Message::with_own(
                format!(
                    "Waiting for the device plugin of node {node}, which may still be allocating for a deleted pod"
                ),
                "Waiting for the device plugin of a node, which may still be allocating for a deleted pod",
            ),
            Self::Lock { node, held: Some((Some(LockOwner { namespace, name }), since)) } => {
                Message::with_own(
                    format!(
                        "Waiting for the lock of node {node}, held by {namespace}/{name} since {since:.0}"
                    ),
                    format!("Waiting for the lock of a node, held for another pod since {since:.0}"),
                )
            }
            Self::Lock { node, held: Some((None, since)) } => Message::with_own(
                format!(
                    "Waiting for the lock of node {node}, held since {since:.0}; the lock does not name its holder"
                ),
                format!(
                    "Waiting for the lock of a node, held since {since:.0}; the lock does not name its holder"
                ),
            ),
            Self::Lock { node, held: None } => Message::with_own(
                format!("Waiting for the lock of node {node}"),
                "Waiting for the lock of a node",
            ),
        }
    }
}

impl NodeFailure {
    /// Why the pod waits, as far as that is counted.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Lock(..) => Blame::Lock,
            Self::Binding(..) => Blame::Binding,
        }
    }

    /// What the pod is told.
    pub fn message(&self) -> Message {
        match self {
            Self::Lock(node, failure) => {
                let why = match failure {
                    LockFailure::Refused(answer) => answer,
                    LockFailure::TriedTooOften => "the node changes too often, or the API server fails",
                };
                Message::with_own(
                    format!("taking the lock of node {node} failed: {why}"),
                    "taking the lock of a node failed",
                )
            }
            Self::Binding(node, answer) => Message::with_own(
                format!("binding to node {node} was refused: {answer}"),
                "binding to a node was refused",
            ),
        }
    }
}
