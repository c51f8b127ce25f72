//! The line of pods at each node: one at a time is locked, bound and served by the node's agent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;

use crate::scheduling::model::name::{NodeName, Uid};

/// How far the pod at the head of a line is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Step {
    /// The lock is being taken.
    Locking,
    /// Nobody knows whether the lock was taken; the node is being read.
    DoubtingLock,
    /// The lock was not taken; it is tried again then, on the node as it then is.
    Relocking {
        /// When.
        at: Timestamp,
    },
    /// The Binding is under way.
    Binding,
    /// Nobody knows what came of the Binding; the pod is being read.
    Doubting,
    /// The pod is given up here as soon as no Binding of it can arrive any more: it is read once more then.
    Fencing {
        /// When.
        at: Timestamp,
    },
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
    /// When the outcome of its Binding was last unknown.
    pub doubted: Option<Timestamp>,
    /// Until then the API server asks to be left alone with it.
    pub not_before: Option<Timestamp>,
    /// Since when its lock says that it is held, in whole seconds, as locks are written; `None`: it takes none.
    pub lock_since: Option<Timestamp>,
}

/// Why the pod at the head of a line is not served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Blocked {
    /// Which pod.
    pub uid: Uid,
    /// Since when.
    pub since: Timestamp,
    /// How often it was said.
    pub told: u32,
}

/// One node's line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Who waits, first come first.
    pub waiting: VecDeque<Uid>,
    /// Who is being locked and bound.
    pub serving: Option<Serving>,
    /// How often in a row the lock was not to be had.
    pub refusals: u32,
    /// Why no pod is served although pods wait.
    pub blocked: Option<Blocked>,
}

/// Every node's line.
#[derive(Debug, Default)]
pub struct Lines {
    by_node: BTreeMap<NodeName, Line>,
    /// Nodes where something may go on.
    touched: BTreeSet<NodeName>,
    /// Nodes whose lines do not go on, as long as that lasts.
    held_up: BTreeSet<NodeName>,
    deadlines: Deadlines,
    changes: u64,
}

/// When each line is to be looked at although nothing has happened: by node, and in order of time.
#[derive(Debug, Default)]
struct Deadlines {
    by_node: BTreeMap<NodeName, Timestamp>,
    by_time: BTreeSet<(Timestamp, NodeName)>,
}

impl Line {
    /// How many pods stand in it or are being served.
    fn length(&self) -> usize {
        self.waiting.len() + usize::from(self.serving.is_some())
    }
}

/// A node with so many pods in line is passed over for the next best: packing gives way to not waiting.
pub const FULL: usize = 8;

/// A node that is held up comes after every other, however long their lines are.
const HELD_UP: usize = usize::MAX / 2;

fn rank(length: usize) -> usize {
    if length < FULL { 0 } else { length }
}

impl Lines {
    /// How many pods stand in line or are being served.
    pub fn length(&self, node: &str) -> usize {
        self.by_node.get(node).map_or(0, Line::length)
    }

    /// Where a node stands among those that fit: 0, unless its line is full or held up; then the longer the line, the later.
    pub fn rank(&self, node: &str) -> usize {
        let held_up = if self.is_held_up(node) { HELD_UP } else { 0 };
        held_up + rank(self.length(node))
    }

    /// The nodes that are passed over for others, with their ranks.
    pub fn passed_over(&self) -> BTreeMap<NodeName, usize> {
        let nodes: BTreeSet<&NodeName> = self.by_node.keys().chain(&self.held_up).collect();
        let ranked = nodes.into_iter().map(|node| (node.clone(), self.rank(node)));
        ranked.filter(|(_, rank)| *rank > 0).collect()
    }

    /// Whether the node serves no pod and is not known to begin soon.
    pub fn is_held_up(&self, node: &str) -> bool {
        self.held_up.contains(node)
    }

    /// The node serves no pod, and has served none for longer than is usual.
    pub(in crate::scheduling) fn hold_up(&mut self, node: &NodeName) {
        self.changes += u64::from(self.held_up.insert(node.clone()));
    }

    /// The node can serve again, or is gone.
    pub(in crate::scheduling) fn go_on(&mut self, node: &NodeName) {
        self.changes += u64::from(self.held_up.remove(node));
    }

    /// Looks once more at the lines that are held up.
    pub(in crate::scheduling) fn touch_held_up(&mut self) {
        self.touched.extend(self.held_up.iter().cloned());
    }

    /// Grows whenever a line becomes longer or shorter.
    pub(in crate::scheduling) fn changes(&self) -> u64 {
        self.changes
    }

    /// Puts a pod into a node's line, behind so many of the pods that wait there.
    pub fn join(&mut self, node: &NodeName, uid: Uid, place: usize) {
        let waiting = &mut self.by_node.entry(node.clone()).or_default().waiting;
        waiting.insert(place.min(waiting.len()), uid);
        self.changes += 1;
        self.touch(node);
    }

    /// Takes a pod out of a node's line, also when it is being served.
    pub fn leave(&mut self, node: &NodeName, uid: &Uid) {
        self.changes += 1;
        if let Some(line) = self.by_node.get_mut(node) {
            line.waiting.retain(|waiting| waiting != uid);
            line.serving.take_if(|serving| serving.uid == *uid);
            if line.waiting.is_empty() && line.serving.is_none() {
                self.by_node.remove(node);
            }
        }
        self.touch(node);
    }

    /// Whether no pod of any line is being locked or bound.
    pub fn nobody_is_served(&self) -> bool {
        self.by_node.values().all(|line| line.serving.is_none())
    }

    /// A node's line.
    pub fn get(&self, node: &str) -> Option<&Line> {
        self.by_node.get(node)
    }

    /// A node's line, to go on with it.
    pub(in crate::scheduling) fn get_mut(&mut self, node: &str) -> Option<&mut Line> {
        self.by_node.get_mut(node)
    }

    /// The pods that stand in any line or are being served.
    pub fn pods(&self) -> impl Iterator<Item = &Uid> {
        self.by_node
            .values()
            .flat_map(|line| line.waiting.iter().chain(line.serving.as_ref().map(|serving| &serving.uid)))
    }

    /// How many pods stand in all lines or are being served.
    pub fn total(&self) -> usize {
        self.by_node.values().map(Line::length).sum()
    }

    /// Since when the head of a line has waited that has waited longest.
    pub fn blocked_since(&self) -> Option<Timestamp> {
        self.by_node.values().filter_map(|line| line.blocked.as_ref()).map(|blocked| blocked.since).min()
    }

    /// Sets when a node's line is to be looked at although nothing has happened.
    pub(in crate::scheduling) fn set_deadline(&mut self, node: &NodeName, at: Option<Timestamp>) {
        let Deadlines { by_node, by_time } = &mut self.deadlines;
        let before = match at {
            Some(at) => by_node.insert(node.clone(), at),
            None => by_node.remove(node),
        };
        if before != at {
            if let Some(before) = before {
                by_time.remove(&(before, node.clone()));
            }
            by_time.extend(at.map(|at| (at, node.clone())));
        }
    }

    /// When the next line is to be looked at.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.deadlines.by_time.first().map(|(at, _)| *at)
    }

    /// Touches every line whose time has come.
    pub(in crate::scheduling) fn touch_due(&mut self, now: Timestamp) {
        let due = self.deadlines.by_time.iter().take_while(|(at, _)| *at <= now);
        self.touched.extend(due.map(|(_, node)| node.clone()));
    }

    /// Something has changed on a node: its line may go on.
    pub fn touch(&mut self, node: &NodeName) {
        self.touched.insert(node.clone());
    }

    /// Every line may go on.
    pub(in crate::scheduling) fn touch_all(&mut self) {
        self.touched.extend(self.by_node.keys().cloned());
    }

    /// The nodes where something may go on, each once.
    pub(in crate::scheduling) fn take_touched(&mut self) -> BTreeSet<NodeName> {
        std::mem::take(&mut self.touched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_due_at_its_last_deadline_only() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let node: NodeName = "n1".into();
        let mut lines = Lines::default();
        lines.set_deadline(&node, Some(at(10)));
        lines.set_deadline(&node, Some(at(20)));
        assert_eq!(lines.next_deadline(), Some(at(20)));
        lines.touch_due(at(19));
        assert_eq!(lines.take_touched(), BTreeSet::new());
        lines.touch_due(at(20));
        assert_eq!(lines.take_touched(), BTreeSet::from([node.clone()]));
        lines.set_deadline(&node, None);
        assert_eq!(lines.next_deadline(), None);
    }
}
