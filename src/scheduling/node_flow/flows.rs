//! The flows of all nodes: which are to go on, when, and which nodes are passed over for others.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{
    NodeFlow,
    contest::{ContestReport, LockContest},
    input::NodeFlowInput,
    lock::NodeLocks,
    ranks::{NodeRanks, Occupancy},
    reads::{Reads, Validity},
    request::NodeFlowRequest,
    view::NodeView,
};
use crate::{
    device::LockOwner,
    scheduling::{
        model::{
            name::{NodeName, Uid},
            other_schedulers::OtherSchedulers,
            pod::PodInfo,
        },
        world::ledger::Charge,
    },
};

/// The flows of all nodes, those that are idle left out.
#[derive(Debug, Default)]
pub(in crate::scheduling) struct NodeFlows {
    /// How long a device plugin may owe an answer.
    pub(in crate::scheduling) lock_expiry: SignedDuration,
    flows: BTreeMap<NodeName, NodeFlow>,
    /// Nodes whose flows are to go on.
    touched: BTreeSet<NodeName>,
    /// The flows' deadlines, in order of time.
    deadlines: BTreeSet<(Timestamp, NodeName)>,
    /// The nodes that come after others.
    ranks: NodeRanks,
    /// The nodes whose locks name a pod.
    named: BTreeMap<LockOwner, BTreeSet<NodeName>>,
    reads: Reads,
    /// Whether another scheduler may take locks.
    contest: ContestReport,
}

impl NodeFlows {
    /// No flow yet; a device plugin may owe an answer for so long.
    pub(in crate::scheduling) fn new(lock_expiry: SignedDuration) -> Self {
        Self { lock_expiry, ..Self::default() }
    }

    /// Takes in what happened at a node. The requests are to be carried out in their order.
    pub(in crate::scheduling) fn handle(
        &mut self,
        input: NodeFlowInput<'_>,
        view: &NodeView<'_>,
    ) -> Vec<NodeFlowRequest> {
        let mut flow = self.flows.remove(view.name).unwrap_or_default();
        let (deadline, named) = (flow.deadline, flow.locks.named().clone());
        let goes_on = matches!(input, NodeFlowInput::Touched | NodeFlowInput::Decided(..));
        flow.handle(input, view);
        if goes_on && !flow.awaits_decision() {
            // Whatever moves the deadline touches the node.
            flow.deadline = flow.next_deadline(view);
        }
        if !goes_on || flow.deadline.is_some_and(|at| at <= view.now) {
            self.touch(view.name);
        }
        if flow.locks.take_sighting() {
            // The lock of another scheduler's pod is respected for so long, and so is the scheduler.
            let until = view.now.checked_add(view.lock_expiry).unwrap_or(Timestamp::MAX);
            self.contest.see_foreign_lock(until);
        }
        let mut requests = std::mem::take(&mut flow.requests);
        requests.retain(|request| match request {
            NodeFlowRequest::ReadNode => {
                self.reads.begin_node(&mut flow.reading);
                true
            }
            // Its answer is for every node.
            NodeFlowRequest::ReadHolder { owner, since } => self.reads.begin_holder(owner, *since),
            _ => true,
        });
        self.set_deadline(view.name, deadline, flow.deadline);
        self.set_named(view.name, &named, flow.locks.named());
        let occupancy = Occupancy { length: flow.line.length(), held_up: flow.held_up };
        self.ranks.set(view.name, occupancy, view.now);
        if !flow.is_idle() {
            self.flows.insert(view.name.clone(), flow);
        }
        self.watch_contest(view.now);
        requests
    }

    /// Takes in what is known of other schedulers that take locks.
    pub(in crate::scheduling) fn note_other_schedulers(&mut self, others: OtherSchedulers, now: Timestamp) {
        self.contest.report(others);
        self.watch_contest(now);
    }

    /// Whether another scheduler may take locks.
    pub(in crate::scheduling) fn contest(&self, now: Timestamp) -> LockContest {
        self.contest.at(now)
    }

    /// Once another scheduler may take locks, every node has one where a pod was bound without.
    fn watch_contest(&mut self, now: Timestamp) {
        if self.contest.opens(now) {
            self.touch_all();
        }
    }

    fn set_deadline(&mut self, node: &NodeName, before: Option<Timestamp>, now: Option<Timestamp>) {
        if before != now {
            if let Some(before) = before {
                self.deadlines.remove(&(before, node.clone()));
            }
            self.deadlines.extend(now.map(|at| (at, node.clone())));
        }
    }

    fn set_named(&mut self, node: &NodeName, before: &BTreeSet<LockOwner>, now: &BTreeSet<LockOwner>) {
        for owner in before.difference(now) {
            if let Some(nodes) = self.named.get_mut(owner) {
                nodes.remove(node);
                if nodes.is_empty() {
                    self.named.remove(owner);
                }
            }
        }
        for owner in now.difference(before) {
            self.named.entry(owner.clone()).or_default().insert(node.clone());
        }
    }

    /// Where a node stands among those that fit: 0, unless it is passed over for others; then the higher, the later.
    pub(in crate::scheduling) fn rank(&self, node: &str) -> usize {
        self.ranks.rank(node)
    }

    /// The nodes that are passed over for others, with their ranks.
    pub(in crate::scheduling) fn passed_over(&self) -> BTreeMap<NodeName, usize> {
        self.ranks.passed_over().clone()
    }

    /// Grows whenever a node is passed over or no longer is.
    pub(in crate::scheduling) fn changes(&self) -> u64 {
        self.ranks.changes()
    }

    /// Whether the node serves no pod and is not known to begin soon.
    pub(in crate::scheduling) fn is_held_up(&self, node: &str) -> bool {
        self.ranks.is_held_up(node)
    }

    /// Something has changed on a node: its flow may go on.
    pub(in crate::scheduling) fn touch(&mut self, node: &NodeName) {
        self.touched.insert(node.clone());
    }

    /// Every flow may go on.
    pub(in crate::scheduling) fn touch_all(&mut self) {
        self.touched.extend(self.flows.keys().cloned());
    }

    /// Looks once more at the nodes that are held up.
    pub(in crate::scheduling) fn touch_held_up(&mut self) {
        self.touched.extend(self.ranks.held_up().cloned());
    }

    /// Touches every node whose deadline has come.
    pub(in crate::scheduling) fn touch_due(&mut self, now: Timestamp) {
        let due = self.deadlines.iter().take_while(|(at, _)| *at <= now);
        self.touched.extend(due.map(|(_, node)| node.clone()));
        self.ranks.watch(now);
        self.watch_contest(now);
    }

    /// The nodes whose flows are to go on, each once.
    pub(in crate::scheduling) fn take_touched(&mut self) -> BTreeSet<NodeName> {
        std::mem::take(&mut self.touched)
    }

    /// When the next flow is to go on although nothing has happened.
    pub(in crate::scheduling) fn next_deadline(&self) -> Option<Timestamp> {
        let of_flows = self.deadlines.first().map(|(at, _)| *at);
        of_flows.into_iter().chain(self.contest.deadline()).chain(self.ranks.deadline()).min()
    }

    /// The nodes whose locks name this pod.
    pub(in crate::scheduling) fn locked_by(&self, owner: &LockOwner) -> Vec<NodeName> {
        self.named.get(owner).into_iter().flatten().cloned().collect()
    }

    /// Something is new about a pod that a lock may name: what is being read of it may be older. Returns the nodes whose locks name it.
    pub(in crate::scheduling) fn note_holder(&mut self, owner: &LockOwner) -> Vec<NodeName> {
        self.reads.note_holder(owner);
        self.locked_by(owner)
    }

    /// Whether the node locks or binds this pod.
    pub(in crate::scheduling) fn serves(&self, node: &str, uid: &Uid) -> bool {
        self.flows.get(node).is_some_and(|flow| flow.line.serves(uid))
    }

    /// Whether no node locks or binds a pod.
    pub(in crate::scheduling) fn serve_none(&self) -> bool {
        self.flows.values().all(|flow| flow.line.served.is_none())
    }

    /// When a pod that waits in the node's line joined it; `None`: how long it waited was measured already.
    pub(in crate::scheduling) fn joined(&self, node: &str, uid: &Uid) -> Option<Timestamp> {
        self.flows.get(node)?.line.joined(uid)
    }

    /// The pods in a node's line, the one that is served first.
    pub(in crate::scheduling) fn line(&self, node: &str) -> impl Iterator<Item = &Uid> {
        self.flows.get(node).into_iter().flat_map(|flow| flow.line.pods())
    }

    /// The pods in all lines.
    pub(in crate::scheduling) fn pods(&self) -> impl Iterator<Item = &Uid> {
        self.flows.values().flat_map(|flow| flow.line.pods())
    }

    /// How many pods stand in all lines.
    pub(in crate::scheduling) fn in_line(&self) -> usize {
        self.flows.values().map(|flow| flow.line.length()).sum()
    }

    /// Since when the head of a line has waited that has waited longest.
    pub(in crate::scheduling) fn longest_wait_since(&self) -> Option<Timestamp> {
        self.flows.values().filter_map(|flow| flow.line.waits_since()).min()
    }

    /// Until when device plugins may be at work for pods that are gone.
    pub(in crate::scheduling) fn vacated(&self) -> impl Iterator<Item = (&NodeName, Timestamp)> {
        self.flows.iter().filter_map(|(node, flow)| Some((node, flow.agent.vacated()?)))
    }

    /// Whether a device plugin of the charge's node is at work for this pod, by what the pod says or by what the node's lock does.
    pub(in crate::scheduling) fn is_in_flight(
        &self,
        uid: &Uid,
        charge: &Charge,
        view: &NodeView<'_>,
    ) -> bool {
        match self.flows.get(&charge.node) {
            Some(flow) => flow.locks.is_in_flight(uid, charge, view),
            None => NodeLocks::default().is_in_flight(uid, charge, view),
        }
    }

    /// Whether nothing goes on at any node.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// A pod was seen to go: reads that are under way do not bring it back.
    pub(in crate::scheduling) fn note_gone(&mut self, uid: &Uid) {
        self.reads.note_gone(uid);
    }

    /// All pods were listed: reads that are under way may be older.
    pub(in crate::scheduling) fn note_list(&mut self) {
        self.reads.note_list();
    }

    /// A node was read, and then these pods: whether what was read still counts, and those of the pods that were not seen to go.
    pub(in crate::scheduling) fn end_node_read(
        &mut self,
        node: &str,
        pods: Vec<PodInfo>,
    ) -> (Validity, Vec<PodInfo>) {
        let began = self.flows.get_mut(node).and_then(|flow| flow.reading.take());
        self.reads.end_node(began, pods)
    }

    /// The holder of a lock was read: whether what was read still counts, and the pod unless it has ended or was seen to go.
    pub(in crate::scheduling) fn end_holder_read(
        &mut self,
        owner: &LockOwner,
        since: Timestamp,
        pods: Vec<PodInfo>,
    ) -> (Validity, Vec<PodInfo>) {
        self.reads.end_holder(owner, since, pods)
    }
}
