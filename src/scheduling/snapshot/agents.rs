//! Whether the device plugins of nodes answer, and which of them have given no sign for too long.

use std::collections::BTreeSet;

use super::Snapshot;
use crate::scheduling::world::node_state::Agent;
use crate::{device::ProfileName, scheduling::model::name::NodeName};

impl Snapshot {
    /// Takes in whether a node's device plugin answers; returns what was thought of it before.
    pub(in crate::scheduling) fn set_agent(&mut self, name: &NodeName, agent: Agent) -> Agent {
        let changed = match agent {
            Agent::Silent => self.silent.insert(name.clone()),
            Agent::Answering => self.silent.remove(name),
        };
        if !changed {
            return agent;
        }
        self.refold(name);
        if agent == Agent::Silent { Agent::Answering } else { Agent::Silent }
    }

    /// How many nodes have a device plugin that does not answer.
    pub fn silent_agents(&self) -> usize {
        self.silent.iter().filter(|name| self.by_name.contains_key(*name)).count()
    }

    /// Takes in which of a node's plugins have given no sign for too long; returns what was thought of it before.
    pub(in crate::scheduling) fn set_expired(
        &mut self,
        name: &NodeName,
        expired: BTreeSet<ProfileName>,
    ) -> BTreeSet<ProfileName> {
        let known = self.expired.get(name).cloned().unwrap_or_default();
        if known != expired {
            if expired.is_empty() {
                self.expired.remove(name);
            } else {
                self.expired.insert(name.clone(), expired);
            }
            self.refold(name);
        }
        known
    }
}
