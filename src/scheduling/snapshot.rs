//! The cluster as it stands: nodes, and what is in use of them by the ledger.
//!
//! A node's state is an immutable value that is replaced when anything on the node changes; its generation tells whether it has.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    ledger::{Charge, Ledger},
    node::{NodeInfo, NodeName},
    pod::Uid,
    quota::{QuotaInfo, QuotaKey, Quotas},
    resources::ResourceAmounts,
};
use crate::device::{Cuts, ProfileName, Usage};

/// Whether a node's device plugin does its work.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Agent {
    /// It owes nothing, or not for long.
    Answering,
    /// It owes an answer for too long: no further pod is sent there, since it would mix both up.
    Silent,
}

/// One node and what is in use of it.
#[derive(Clone, Debug)]
pub struct NodeState {
    /// The node.
    pub info: Arc<NodeInfo>,
    /// What is in use of its cards.
    pub usage: Usage,
    /// What is in use of its other resources.
    pub requested: ResourceAmounts,
    /// How many pods are on it.
    pub pods: i64,
    /// Whether its device plugin answers.
    pub agent: Agent,
    /// The plugins that have given no sign for too long.
    pub expired: BTreeSet<ProfileName>,
    /// Greater after every change, over all nodes.
    pub generation: u64,
}

/// Whether something is as it should be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Check {
    /// It is.
    Right,
    /// It was not, and has been put right.
    Wrong,
}

/// The cluster as it stands.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    slots: Vec<Option<Arc<NodeState>>>,
    by_name: BTreeMap<NodeName, usize>,
    ledger: Ledger,
    quotas: Quotas,
    silent: BTreeSet<NodeName>,
    /// By node, the plugins that have given no sign for too long.
    expired: BTreeMap<NodeName, BTreeSet<ProfileName>>,
    generation: u64,
}

impl Snapshot {
    /// Takes in a node, new or changed.
    pub fn set_node(&mut self, info: NodeInfo) {
        let name = info.name.clone();
        let slot = self.by_name.get(&name).copied().unwrap_or_else(|| self.free_slot());
        self.by_name.insert(name.clone(), slot);
        self.set_cuts(&name, info.cuts());
        self.fold(slot, &name, Arc::new(info));
    }

    /// Takes in a node of which nothing has changed that decides what fits.
    pub(super) fn refresh_node(&mut self, info: NodeInfo) {
        let Some(state) = self.by_name.get(&info.name).and_then(|&slot| self.slots[slot].as_mut()) else {
            return;
        };
        Arc::make_mut(state).info = Arc::new(info);
    }

    /// Takes a node out; the charges on it stay, in case that it comes back.
    pub fn remove_node(&mut self, name: &str) {
        if let Some((name, slot)) = self.by_name.remove_entry(name) {
            self.slots[slot] = None;
            self.generation += 1;
            self.set_cuts(&name, Cuts::default());
        }
        self.expired.remove(name);
    }

    /// Takes in how a node's cards are cut: what its slices hold counts in quotas too.
    fn set_cuts(&mut self, name: &NodeName, cuts: Cuts) {
        for namespace in self.ledger.set_cuts(name, cuts) {
            self.quotas.refold(&namespace, &self.ledger);
        }
    }

    /// Takes in whether a node's device plugin answers; returns what was thought of it before.
    pub(super) fn set_agent(&mut self, name: &NodeName, agent: Agent) -> Agent {
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
    pub(super) fn set_expired(
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

    /// Folds a node's state anew, if it is not what the ledger says; whether it was.
    pub(super) fn check(&mut self, name: &NodeName) -> Check {
        let Some(state) = self.node(name) else { return Check::Right };
        let ledger = &self.ledger;
        let right = state.usage == ledger.usage(name).with_aliases(&state.info.aliases)
            && state.requested == ledger.requested(name)
            && state.pods == ledger.pods(name);
        if right {
            return Check::Right;
        }
        self.refold(name);
        Check::Wrong
    }

    /// A node.
    pub fn node(&self, name: &str) -> Option<&Arc<NodeState>> {
        self.slots[*self.by_name.get(name)?].as_ref()
    }

    /// Every node, by name.
    pub fn nodes(&self) -> impl Iterator<Item = &Arc<NodeState>> {
        self.by_name.values().filter_map(|&slot| self.slots[slot].as_ref())
    }

    /// Grows with every change that decides what fits.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Every node by its slot, which it keeps while it exists.
    pub(super) fn slots(&self) -> &[Option<Arc<NodeState>>] {
        &self.slots
    }

    /// Who holds what.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The quotas of namespaces.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    /// Takes in a quota, new or changed.
    pub fn set_quota(&mut self, quota: QuotaInfo) {
        self.quotas.set(quota, &self.ledger);
    }

    /// Takes a quota out.
    pub fn remove_quota(&mut self, key: &QuotaKey) {
        self.quotas.remove(key);
    }

    /// Folds anew what the pods of a namespace hold, if it is not what the ledger says; whether it was.
    pub(super) fn check_quota(&mut self, namespace: &Arc<str>) -> Check {
        let before = self.quotas.version();
        self.quotas.refold(namespace, &self.ledger);
        if self.quotas.version() == before { Check::Right } else { Check::Wrong }
    }

    /// Charges a pod with what it holds.
    pub fn charge(&mut self, uid: Uid, charge: Charge) {
        let (node, namespace) = (charge.node.clone(), charge.namespace.clone());
        let before = self.ledger.get(&uid);
        if before.is_some_and(|before| before.holds_as(&charge)) {
            if let Some(before) = self.ledger.get_mut(&uid) {
                *before = charge;
            }
            return;
        }
        let before = self.ledger.charge(uid, charge);
        if let Some(before) = before.filter(|before| before.node != node) {
            self.refold(&before.node);
        }
        self.refold(&node);
        self.quotas.refold(&namespace, &self.ledger);
    }

    /// Forgets what a pod holds, and returns it.
    pub fn release(&mut self, uid: &Uid) -> Option<Charge> {
        let charge = self.ledger.release(uid)?;
        self.refold(&charge.node);
        self.quotas.refold(&charge.namespace, &self.ledger);
        Some(charge)
    }

    fn refold(&mut self, name: &NodeName) {
        let Some(&slot) = self.by_name.get(name) else {
            return;
        };
        let Some(info) = self.slots[slot].as_ref().map(|state| state.info.clone()) else {
            return;
        };
        self.fold(slot, name, info);
    }

    fn fold(&mut self, slot: usize, name: &NodeName, info: Arc<NodeInfo>) {
        self.generation += 1;
        self.slots[slot] = Some(Arc::new(NodeState {
            usage: self.ledger.usage(name).with_aliases(&info.aliases),
            info,
            requested: self.ledger.requested(name),
            pods: self.ledger.pods(name),
            agent: if self.silent.contains(name) { Agent::Silent } else { Agent::Answering },
            expired: self.expired.get(name).cloned().unwrap_or_default(),
            generation: self.generation,
        }));
    }

    fn free_slot(&mut self) -> usize {
        if let Some(free) = self.slots.iter().position(Option::is_none) {
            return free;
        }
        self.slots.push(None);
        self.slots.len() - 1
    }
}
