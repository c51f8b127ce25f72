//! Nodes' flows: feeding them what happens, and carrying out what they request.
//!
//! What goes on at a node is decided in [`node_flow`](crate::scheduling::node_flow), and nowhere here.

use std::sync::Arc;

use jiff::Timestamp;

use super::BindingCycle;
use crate::scheduling::{
    decide::Decision,
    effect::{AgentFailure, Effect, ReadRequest},
    model::{
        name::{NodeName, Uid},
        pod::{Demand, PodInfo, PodKey},
        tenure::Tenure,
        workload::Workload,
    },
    node_flow::{Fit, NodeFlowInput, NodeFlowRequest, owner_of},
    plan::Plan,
    scheduler::scheduling_cycle::{decide::assumed, scheduling_queue::PodProgress, views::node_view},
    world::{
        ledger::{Charge, Commitment},
        node_state::Agent,
    },
};

impl BindingCycle {
    /// Feeds a node's flow with what happened, and carries out what it requests.
    pub(in crate::scheduling::scheduler) fn advance(&mut self, node: &NodeName, input: NodeFlowInput<'_>) {
        let mut input = Some(input);
        while let Some(happened) = input.take() {
            let view = node_view(&self.cycle, node, &self.flows);
            for request in self.flows.handle(happened, &view) {
                // Only the last of them is answered at once.
                input = self.carry_out(node, request);
            }
        }
    }

    fn carry_out(&mut self, node: &NodeName, request: NodeFlowRequest) -> Option<NodeFlowInput<'static>> {
        let now = self.cycle.snapshot.now();
        match request {
            NodeFlowRequest::Decide(uid) => {
                let fit = self.decide_again(&uid, node, now).map_or(Fit::Rejected, |()| Fit::Fits);
                return Some(NodeFlowInput::Decided(uid, fit));
            }
            NodeFlowRequest::Judge(uid) => {
                let fit = if self.cycle.is_still_decided(&uid, node) { Fit::Fits } else { Fit::Rejected };
                return Some(NodeFlowInput::Decided(uid, fit));
            }
            NodeFlowRequest::ConfirmBound(uid) => self.confirm_bound(&uid, now),
            NodeFlowRequest::Forget(uid) => self.forget(&uid),
            NodeFlowRequest::Requeue(uid) => {
                if self.cycle.queue.turn.turned_away.note(&uid) {
                    self.forget(&uid);
                    self.cycle.enqueue_if_wanted(&uid);
                } else {
                    self.back_off(&uid, now);
                }
            }
            NodeFlowRequest::BackOff(uid, why) => {
                self.back_off(&uid, now);
                if let Some(failure) = why {
                    self.cycle.tell_unschedulable(&uid, failure);
                }
            }
            NodeFlowRequest::FindOtherNodes(pods) => self.find_other_nodes(&pods, node, now),
            NodeFlowRequest::SetAgent(agent) => {
                if self.cycle.snapshot.set_agent(node, agent) != agent && agent == Agent::Answering {
                    self.wake(node);
                }
            }
            NodeFlowRequest::Measure(measure) => self.cycle.outbox.measures.push(measure),
            NodeFlowRequest::TellWaiting(uid, message) => self.cycle.tell_waiting(&uid, node, message),
            NodeFlowRequest::Bind(uid) => {
                let binding = self.cycle.binding(&uid, node.clone());
                self.cycle.outbox.effects.extend(binding);
            }
            request => self.cycle.outbox.effects.extend(effect(node.clone(), request)),
        }
        None
    }

    /// Decides a pod once more, on the node in whose line it stands as that now is; `None`: the node would no longer have it, or its gang
    /// lost a place before any of its pods was bound.
    fn decide_again(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) -> Option<()> {
        if self.gang_view().is_of_broken_gang(uid) {
            return None;
        }
        let info = &self.cycle.pods.get(uid)?.info;
        let demand = info.demand()?;
        let mut plan = Plan::new(&mut self.cycle.snapshot);
        let start = plan.mark();
        let mut before = plan.evict_beside_kept(uid);
        let mut judged = self.cycle.classes.judge(&demand, node, &plan);
        if judged.is_none() {
            // Beside this pod, a nominated pod may have chosen cards that it shares with it once its victims are gone, and not before. Without it
            // they choose as they had when it was decided: else it would be decided for this node and turned away there without end.
            plan.undo(start);
            before = plan.evict(uid);
            judged = self.cycle.classes.judge(&demand, node, &plan);
        }
        let allocations = judged?;
        let is_as_before = |before: &Charge| before.steps.is_empty() && before.gives(&allocations);
        if !before.as_deref().is_some_and(is_as_before) {
            plan.place(uid, assumed(info, node.clone(), allocations, Vec::new(), now));
            plan.commit();
            // Cards that it was to have and no longer is are there for others.
            let namespace = info.key.namespace.clone();
            self.wake(node);
            self.cycle.wake_within_quota(&namespace);
        }
        Some(())
    }

    /// The Binding is written: the node's device plugin owes an answer from now on.
    fn confirm_bound(&mut self, uid: &Uid, now: Timestamp) {
        let charge = self.cycle.snapshot.ledger().get(uid);
        if let Some(charge) = charge.filter(|charge| charge.commitment == Commitment::Assumed) {
            let tenure = self.cycle.pods.get(uid).map(|entry| Arc::new(begun(&entry.info, now)));
            let charge = Charge { commitment: Commitment::Bound, since: now, tenure, ..charge.clone() };
            self.cycle.snapshot.charge(uid.clone(), charge);
            self.cycle.measure_bound(uid, now);
        }
        self.cycle.queue.set_progress(uid, PodProgress::Idle);
        self.end_marks(uid);
        if let Some(entry) = self.cycle.pods.get(uid) {
            self.cycle.gangs.touch_gang_of(&entry.info);
        }
    }

    /// Sends pods that wait in the line of a node that is held up to nodes that are not and would have them; the others keep their places.
    fn find_other_nodes(&mut self, pods: &[Uid], node: &NodeName, now: Timestamp) {
        if self.cycle.duty.directed {
            return;
        }
        let mut stay: Vec<Demand> = Vec::new();
        for uid in pods {
            let Some(demand) = self.cycle.pods.get(uid).and_then(|entry| entry.info.demand()) else {
                continue;
            };
            // Its gang shares a domain, which a node elsewhere may not be in.
            if self.gang_view().shares_topology(uid) {
                continue;
            }
            if !stay.iter().any(|other| other.is_alike(&demand)) && !self.move_on(uid, node, now) {
                stay.push(demand);
            }
        }
    }

    /// Sends a pod to the line of a better node, if there is one.
    fn move_on(&mut self, uid: &Uid, from: &NodeName, now: Timestamp) -> bool {
        let Some(info) = self.cycle.pods.get(uid).map(|entry| &entry.info) else { return false };
        let Some(demand) = info.demand() else { return false };
        let mut plan = Plan::new(&mut self.cycle.snapshot);
        if plan.evict(uid).is_none() {
            return false;
        }
        let flows = &self.flows;
        let better = self.cycle.classes.decide(&demand, &plan, |node| flows.rank(node)).ok();
        let ready = |found: &Decision| found.steps.is_empty() && !flows.is_held_up(&found.node);
        let Some(Decision { node, allocations, .. }) = better.filter(ready) else { return false };
        plan.place(uid, assumed(info, node.clone(), allocations, Vec::new(), now));
        plan.commit();
        let namespace = info.key.namespace.clone();
        let since = self.flows.joined(from, uid);
        self.advance(from, NodeFlowInput::Left(uid));
        self.cycle.queue.set_progress(uid, PodProgress::InLine(node.clone()));
        self.advance(&node, NodeFlowInput::Joined { pod: uid.clone(), since });
        // The node was judged without the pod already, and that woke no waiting pod.
        if let Some(slot) = self.cycle.snapshot.nodes.slot(from) {
            self.cycle.classes.forget(slot);
        }
        self.wake(from);
        self.cycle.wake_within_quota(&namespace);
        true
    }

    /// Something is new about a pod that a lock may name.
    pub(in crate::scheduling::scheduler) fn note_holder(&mut self, pod: &PodKey) {
        let owner = owner_of(pod);
        for node in self.flows.note_holder(&owner) {
            self.advance(&node, NodeFlowInput::HolderSeen(&owner));
        }
    }
}

/// What is to be done at the API server for a request that asks for no more.
fn effect(node: NodeName, request: NodeFlowRequest) -> Option<Effect> {
    let effect = match request {
        NodeFlowRequest::TakeLock { pod, resource_version, locks, since } => {
            Effect::TakeLock { pod, node, resource_version, locks, since }
        }
        NodeFlowRequest::ReleaseLock { resource_version, locks } => {
            Effect::ReleaseLock { node, resource_version, locks }
        }
        NodeFlowRequest::Withdraw { pod, profiles } => Effect::Withdraw { pod, node, profiles },
        NodeFlowRequest::ReadPod(pod) => Effect::Read(ReadRequest::Pod(pod)),
        NodeFlowRequest::ReadNode => Effect::Read(ReadRequest::Node(node)),
        NodeFlowRequest::ReadHolder { owner, since } => Effect::Read(ReadRequest::Holder { owner, since }),
        NodeFlowRequest::TellScheduled(pod) => Effect::TellScheduled { pod, node },
        NodeFlowRequest::TellSilent(pod) => Effect::TellAgent { pod, node, failure: AgentFailure::Silence },
        NodeFlowRequest::TellFailedAllocation(pod) => {
            Effect::TellAgent { pod, node, failure: AgentFailure::Allocation }
        }
        NodeFlowRequest::Decide(_)
        | NodeFlowRequest::Judge(_)
        | NodeFlowRequest::ConfirmBound(_)
        | NodeFlowRequest::Bind(_)
        | NodeFlowRequest::Forget(_)
        | NodeFlowRequest::Requeue(_)
        | NodeFlowRequest::BackOff(..)
        | NodeFlowRequest::FindOtherNodes(_)
        | NodeFlowRequest::SetAgent(_)
        | NodeFlowRequest::Measure(_)
        | NodeFlowRequest::TellWaiting(..) => return None,
    };
    Some(effect)
}

/// Since when a pod holds its shares that was bound now and not seen since.
fn begun(pod: &PodInfo, now: Timestamp) -> Tenure {
    let workload = Workload::of(pod.origin.as_deref(), &pod.footprint.labels);
    let bare = || Workload { kind: "Pod".into(), name: pod.key.name.clone() };
    Tenure { workload: Arc::new(workload.unwrap_or_else(bare)), since: now }
}
