//! How far a pod is whose node kube-scheduler chooses.

use std::{fmt, sync::Arc};

use crate::scheduling::{
    decide::fit_error::FitError, model::name::NodeName, plan::extension::words, plugin::NodeReasons,
};

/// How far a pod is whose node was chosen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Directed {
    /// It was not seen yet.
    Unseen,
    /// It waits for a node to be chosen, for this reason where one was and could not be taken.
    Waiting(Option<Untaken>),
    /// It stands in the line of this node or is being bound.
    InLine(NodeName),
    /// It is bound to this node.
    Bound(NodeName),
}

/// Why the node that was chosen for a pod is not taken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Untaken {
    /// The pod's request can't be read; what is wrong, in the words of what has read it.
    Request(Arc<str>),
    /// The pod is not to be placed.
    Unwanted,
    /// This node is not known.
    Unknown(NodeName),
    /// No node would have the pod.
    Fit(Arc<FitError>),
    /// The node would not have the pod, for these reasons.
    Node(NodeReasons),
}

impl fmt::Display for Untaken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(why) => formatter.write_str(why),
            Self::Unwanted => {
                formatter.write_str("the pod is not to be placed: it is gated, ended or being deleted")
            }
            Self::Unknown(node) => write!(formatter, "node {node} is not known"),
            Self::Fit(error) => error.fmt(formatter),
            Self::Node(reasons) => formatter.write_str(&words(reasons)),
        }
    }
}
