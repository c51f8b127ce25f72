//! Bound pods that ask for shares and carry no assignment, on a node whose device plugin serves such shares.
//!
//! Whichever scheduler bound them, they hold nothing in the ledger; the plugin may give them cards that belong to another pod.

use crate::{
    device::ProfileName,
    scheduling::model::{
        message::Message,
        name::NodeName,
        node::NodeInfo,
        pod::{PodInfo, Stage},
    },
};

/// A pod that is bound, asks for a share and carries no assignment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MissingAssignment {
    /// Its node.
    pub node: NodeName,
    /// The kind of share that it asks for.
    pub profile: ProfileName,
}

impl MissingAssignment {
    /// What is missing; `None`: nothing, or the node's device plugin is not concerned.
    pub(super) fn of(pod: &PodInfo, node: &NodeInfo) -> Option<Self> {
        let holding = pod.holding.as_ref().filter(|_| pod.stage != Stage::Ended)?;
        let profile = holding.unassigned.iter().find(|profile| node.devices.offer(profile).is_some())?;
        Some(Self { node: node.name.clone(), profile: profile.clone() })
    }

    pub(super) fn message(&self) -> Message {
        let Self { node, profile } = self;
        let bound_to = |node: &str| {
            format!(
                "the Pod requests a GPU share ({profile}) and is bound to {node} without an assignment: its device plugin may refuse it or \
                 give it the cards of another Pod; delete it and create it again for a scheduler of GPU shares"
            )
        };
        Message::with_own(bound_to(&format!("node {node}")), bound_to("a node"))
    }
}
