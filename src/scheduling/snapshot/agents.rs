//! Whether the device plugins of nodes answer, and which of them have given no sign for too long.

use std::collections::{BTreeMap, BTreeSet};

use super::Snapshot;
use crate::scheduling::world::node_state::Agent;
use crate::{device::ProfileName, scheduling::model::name::NodeName};

/// What is known of the device plugins of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Agents {
    silent: BTreeSet<NodeName>,
    /// By node, the plugins that have given no sign for too long.
    expired: BTreeMap<NodeName, BTreeSet<ProfileName>>,
}

impl Agents {
    /// Whether the node's device plugin answers.
    pub(super) fn of(&self, node: &NodeName) -> Agent {
        if self.silent.contains(node) { Agent::Silent } else { Agent::Answering }
    }

    fn set(&mut self, node: &NodeName, agent: Agent) {
        match agent {
            Agent::Silent => self.silent.insert(node.clone()),
            Agent::Answering => self.silent.remove(node),
        };
    }

    /// The plugins of the node that have given no sign for too long.
    pub(super) fn expired(&self, node: &NodeName) -> BTreeSet<ProfileName> {
        self.expired.get(node).cloned().unwrap_or_default()
    }

    fn set_expired(&mut self, node: &NodeName, expired: BTreeSet<ProfileName>) {
        if expired.is_empty() {
            self.expired.remove(node);
        } else {
            self.expired.insert(node.clone(), expired);
        }
    }

    /// The node is gone: for how long its plugins have given no sign is no longer known.
    pub(super) fn forget(&mut self, node: &str) {
        self.expired.remove(node);
    }
}

impl Snapshot {
    /// Takes in whether a node's device plugin answers; returns what was thought of it before.
    pub(in crate::scheduling) fn set_agent(&mut self, name: &NodeName, agent: Agent) -> Agent {
        let known = self.agents.of(name);
        if known != agent {
            self.agents.set(name, agent);
            self.refold([name]);
        }
        known
    }

    /// How many nodes have a device plugin that does not answer.
    pub fn silent_agents(&self) -> usize {
        self.agents.silent.iter().filter(|name| self.world.node(name).is_some()).count()
    }

    /// Takes in which of a node's plugins have given no sign for too long; returns what was thought of it before.
    pub(in crate::scheduling) fn set_expired(
        &mut self,
        name: &NodeName,
        expired: BTreeSet<ProfileName>,
    ) -> BTreeSet<ProfileName> {
        let known = self.agents.expired(name);
        if known != expired {
            self.agents.set_expired(name, expired);
            self.refold([name]);
        }
        known
    }
}
