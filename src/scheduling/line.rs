//! The line of pods at each node: one at a time is locked, bound and served by the node's agent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use super::{node::NodeName, pod::Uid};

/// How far the pod at the head of a line is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// The lock is being taken against this version of the node.
    Locking {
        /// The version.
        resource_version: String,
    },
    /// The lock was refused: the node has changed since this version, and its new one has not been seen.
    AwaitingNode {
        /// The version that is no more.
        stale: String,
    },
    /// The Binding is under way.
    Binding,
    /// Nobody knows what came of the Binding; the pod is being read.
    Doubting,
    /// The pod is not bound after all; the same Binding is sent again then.
    Rebinding {
        /// When.
        at: Timestamp,
    },
}

/// The pod that a node is occupied with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Serving {
    /// The pod.
    pub uid: Uid,
    /// How far it is.
    pub step: Step,
    /// How many Bindings were sent for it.
    pub bindings: u32,
}

/// One node's line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Who waits, first come first.
    pub waiting: VecDeque<Uid>,
    /// Who is being locked and bound.
    pub serving: Option<Serving>,
}

/// Every node's line.
#[derive(Debug, Default)]
pub struct Lines {
    lines: BTreeMap<NodeName, Line>,
    /// Nodes where something may go on.
    touched: BTreeSet<NodeName>,
}

/// A node with so many pods in line is passed over for the next best: packing gives way to not waiting.
pub const FULL: usize = 8;

impl Lines {
    /// How many pods stand in line or are being served.
    pub fn length(&self, node: &str) -> usize {
        self.lines.get(node).map_or(0, |line| line.waiting.len() + usize::from(line.serving.is_some()))
    }

    /// Puts a pod at the end of a node's line.
    pub fn join(&mut self, node: &NodeName, uid: Uid) {
        self.lines.entry(node.clone()).or_default().waiting.push_back(uid);
        self.touch(node);
    }

    /// Takes a pod out of a node's line, also when it is being served.
    pub fn leave(&mut self, node: &NodeName, uid: &Uid) {
        if let Some(line) = self.lines.get_mut(node) {
            line.waiting.retain(|waiting| waiting != uid);
            line.serving.take_if(|serving| serving.uid == *uid);
            if line.waiting.is_empty() && line.serving.is_none() {
                self.lines.remove(node);
            }
        }
        self.touch(node);
    }

    /// A node's line.
    pub fn get(&self, node: &str) -> Option<&Line> {
        self.lines.get(node)
    }

    /// A node's line, to go on with it.
    pub(super) fn get_mut(&mut self, node: &str) -> Option<&mut Line> {
        self.lines.get_mut(node)
    }

    /// The nodes with a line.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.lines.keys()
    }

    /// Something has changed on a node: its line may go on.
    pub fn touch(&mut self, node: &NodeName) {
        self.touched.insert(node.clone());
    }

    /// Every line may go on.
    pub(super) fn touch_all(&mut self) {
        self.touched.extend(self.lines.keys().cloned());
    }

    /// The nodes where something may go on, each once.
    pub(super) fn take_touched(&mut self) -> BTreeSet<NodeName> {
        std::mem::take(&mut self.touched)
    }
}
