//! Nodes' flows: feeding them what happens, and carrying out what they request.
//!
//! What goes on at a node is decided in [`node_flow`](crate::scheduling::node_flow), and nowhere here.

use jiff::Timestamp;

use super::{PodProgress, Scheduler, decide::assumed};
use crate::{
    device::{Answer, LockOwner},
    scheduling::{
        decide::Decision,
        effect::{Effect, ReadRequest},
        model::{
            message::Message,
            name::{NodeName, Uid},
            node::NodeInfo,
            pod::{Claim, Demand, PodInfo, PodKey, Stage},
        },
        node_flow::{Fit, NodeFlowInput, NodeFlowRequest, NodeView, owner_of},
        plan::Plan,
        world::{
            ledger::{Charge, Commitment},
            node_state::Agent,
        },
    },
};

impl Scheduler {
    /// Feeds a node's flow with what happened, and carries out what it requests.
    pub(super) fn advance(&mut self, node: &NodeName, input: NodeFlowInput<'_>) {
        let mut input = Some(input);
        while let Some(happened) = input.take() {
            let view = NodeView {
                name: node,
                info: self.snapshot.node(node).map(|state| &*state.info),
                ledger: self.snapshot.ledger(),
                pods: &self.pods,
                now: self.snapshot.now(),
                course: self.duty.course,
                lock_expiry: self.flows.lock_expiry,
            };
            for request in self.flows.handle(happened, &view) {
                // Only the last of them is answered at once.
                input = self.carry_out(node, request);
            }
        }
    }

    fn carry_out(&mut self, node: &NodeName, request: NodeFlowRequest) -> Option<NodeFlowInput<'static>> {
        let now = self.snapshot.now();
        match request {
            NodeFlowRequest::Decide(uid) => {
                let fit = self.decide_again(&uid, node, now).map_or(Fit::Rejected, |()| Fit::Fits);
                return Some(NodeFlowInput::Decided(uid, fit));
            }
            NodeFlowRequest::Judge(uid) => {
                let fit = if self.is_still_decided(&uid, node) { Fit::Fits } else { Fit::Rejected };
                return Some(NodeFlowInput::Decided(uid, fit));
            }
            NodeFlowRequest::ConfirmBound(uid) => self.confirm_bound(&uid, now),
            NodeFlowRequest::Forget(uid) => self.forget(&uid),
            NodeFlowRequest::Requeue(uid) => {
                self.forget(&uid);
                self.enqueue_if_wanted(&uid);
            }
            NodeFlowRequest::BackOff(uid, why) => {
                self.back_off(&uid, now);
                if let Some((blame, message)) = why {
                    self.tell_unschedulable(&uid, blame, message);
                }
            }
            NodeFlowRequest::FindOtherNodes(pods) => self.find_other_nodes(&pods, node, now),
            NodeFlowRequest::SetAgent(agent) => {
                if self.snapshot.set_agent(node, agent) != agent && agent == Agent::Answering {
                    self.wake(node);
                }
            }
            NodeFlowRequest::Measure(measure) => self.outbox.measures.push(measure),
            NodeFlowRequest::TellWaiting(uid, message) => self.tell_waiting(&uid, node, message),
            request => {
                let effect = self.effect(node.clone(), request);
                self.outbox.effects.extend(effect);
            }
        }
        None
    }

    /// What is to be done at the API server for a request that asks for no more.
    fn effect(&self, node: NodeName, request: NodeFlowRequest) -> Option<Effect> {
        let effect = match request {
            NodeFlowRequest::TakeLock { pod, resource_version, locks, since } => {
                Effect::TakeLock { pod, node, resource_version, locks, since }
            }
            NodeFlowRequest::ReleaseLock { resource_version, locks } => {
                Effect::ReleaseLock { node, resource_version, locks }
            }
            NodeFlowRequest::Bind(uid) => return self.binding(&uid, node),
            NodeFlowRequest::Withdraw { pod, profiles } => Effect::Withdraw { pod, node, profiles },
            NodeFlowRequest::ReadPod(pod) => Effect::Read(ReadRequest::Pod(pod)),
            NodeFlowRequest::ReadNode => Effect::Read(ReadRequest::Node(node)),
            NodeFlowRequest::ReadHolder { owner, since } => {
                Effect::Read(ReadRequest::Holder { owner, since })
            }
            NodeFlowRequest::TellScheduled(pod) => Effect::TellScheduled { pod, node },
            NodeFlowRequest::TellSilent(pod) => Effect::TellSilent { pod, node },
            NodeFlowRequest::TellFailedAllocation(pod) => Effect::TellFailedAllocation { pod, node },
            NodeFlowRequest::Decide(_)
            | NodeFlowRequest::Judge(_)
            | NodeFlowRequest::ConfirmBound(_)
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

    /// The Binding of a pod with what it is charged with.
    fn binding(&self, uid: &Uid, node: NodeName) -> Option<Effect> {
        let (info, ledger) = (&self.pods.get(uid)?.info, self.snapshot.ledger());
        let allocations = ledger.dated(&ledger.get(uid)?.allocations, &node);
        let state = self.snapshot.node(&node);
        let devices = state.and_then(|state| state.info.devices.place(&info.claim));
        let zone = state.and_then(|state| Some(state.zone.as_ref()?.zone.clone()));
        Some(Effect::Bind { pod: info.key.clone(), node, allocations, devices, zone })
    }

    fn tell_waiting(&mut self, uid: &Uid, node: &NodeName, message: Message) {
        let waits = matches!(self.queue.progress(uid), PodProgress::InLine(line) if line == node);
        let entry = self.pods.get(uid).filter(|_| waits);
        if let Some(pod) = entry.map(|entry| entry.info.key.clone()) {
            let message = self.worded(&pod, message);
            self.outbox.effects.push(Effect::TellWaiting { pod, message });
        }
    }

    /// Decides a pod once more, on the node in whose line it stands as that now is; `None`: the node would no longer have it, or its gang
    /// lost a place before any of its pods was bound.
    fn decide_again(&mut self, uid: &Uid, node: &NodeName, now: Timestamp) -> Option<()> {
        if self.gang_view().is_of_broken_gang(uid) {
            return None;
        }
        let info = &self.pods.get(uid)?.info;
        let demand = info.demand()?;
        let mut plan = Plan::new(&mut self.snapshot);
        let start = plan.mark();
        let mut before = plan.evict_beside_kept(uid);
        let mut judged = self.classes.judge(&demand, node, &plan);
        if judged.is_none() {
            // Beside this pod, a nominated pod may have chosen cards that it shares with it once its victims are gone, and not before. Without it
            // they choose as they had when it was decided: else it would be decided for this node and turned away there without end.
            plan.undo(start);
            before = plan.evict(uid);
            judged = self.classes.judge(&demand, node, &plan);
        }
        let allocations = judged?;
        let is_as_before = |before: &Charge| before.steps.is_empty() && before.gives(&allocations);
        if !before.as_ref().is_some_and(is_as_before) {
            plan.place(uid, assumed(info, node.clone(), allocations, Vec::new(), now));
            plan.commit();
            // Cards that it was to have and no longer is are there for others.
            self.wake(node);
            self.wake_within_quota_of(uid);
        }
        Some(())
    }

    /// Whether the node would give the pod just what it is charged with.
    fn is_still_decided(&mut self, uid: &Uid, node: &NodeName) -> bool {
        let Some(demand) = self.pods.get(uid).and_then(|entry| entry.info.demand()) else { return false };
        let mut plan = Plan::new(&mut self.snapshot);
        let Some(before) = plan.evict(uid) else { return false };
        let judged = self.classes.judge(&demand, node, &plan);
        judged.is_some_and(|allocations| before.gives(&allocations))
    }

    /// The Binding is written: the node's device plugin owes an answer from now on.
    fn confirm_bound(&mut self, uid: &Uid, now: Timestamp) {
        let charge = self.snapshot.ledger().get(uid);
        if let Some(charge) = charge.filter(|charge| charge.commitment == Commitment::Assumed) {
            let charge = Charge { commitment: Commitment::Bound, since: now, ..charge.clone() };
            self.snapshot.charge(uid.clone(), charge);
            self.measure_bound(uid, now);
        }
        self.queue.set_progress(uid, PodProgress::Idle);
        self.end_marks(uid);
        if let Some(entry) = self.pods.get(uid) {
            self.gangs.touch_gang_of(&entry.info);
        }
    }

    /// Sends pods that wait in the line of a node that is held up to nodes that are not and would have them; the others keep their places.
    fn find_other_nodes(&mut self, pods: &[Uid], node: &NodeName, now: Timestamp) {
        if self.duty.directed {
            return;
        }
        let mut stay: Vec<Demand> = Vec::new();
        for uid in pods {
            let Some(demand) = self.pods.get(uid).and_then(|entry| entry.info.demand()) else { continue };
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
        let Some(info) = self.pods.get(uid).map(|entry| &entry.info) else { return false };
        let Some(demand) = info.demand() else { return false };
        let mut plan = Plan::new(&mut self.snapshot);
        if plan.evict(uid).is_none() {
            return false;
        }
        let flows = &self.flows;
        let better = self.classes.decide(&demand, &plan, |node| flows.rank(node)).ok();
        let ready = |found: &Decision| found.steps.is_empty() && !flows.is_held_up(&found.node);
        let Some(Decision { node, allocations, .. }) = better.filter(ready) else { return false };
        plan.place(uid, assumed(info, node.clone(), allocations, Vec::new(), now));
        plan.commit();
        let since = self.flows.joined(from, uid);
        self.advance(from, NodeFlowInput::Left(uid));
        self.queue.set_progress(uid, PodProgress::InLine(node.clone()));
        self.advance(&node, NodeFlowInput::Joined { pod: uid.clone(), since });
        // The node was judged without the pod already, and that woke no waiting pod.
        if let Some(slot) = self.snapshot.nodes.slot(from) {
            self.classes.forget(slot);
        }
        self.wake(from);
        self.wake_within_quota_of(uid);
        true
    }

    /// A node was read, and these pods after it: they are taken in, unless what is known of them is newer.
    pub(super) fn node_read(
        &mut self,
        node: &NodeName,
        found: Option<Box<NodeInfo>>,
        pods: Vec<PodInfo>,
        now: Timestamp,
    ) {
        let (validity, pods) = self.flows.end_node_read(node, pods);
        for pod in pods {
            self.see_pod(pod, now);
        }
        match found {
            Some(found) => self.see_node(*found, now),
            None => self.lose_node(node),
        }
        self.advance(node, NodeFlowInput::NodeRead(validity));
    }

    /// A pod was read: what it holds is adopted, whoever bound it.
    pub(super) fn pod_read(&mut self, pod: &PodKey, found: Option<Box<PodInfo>>, now: Timestamp) {
        if !self.pods.contains(&pod.uid) {
            // It was seen to go after it was read.
            return;
        }
        let Some(found) = found.filter(|found| found.key.uid == pod.uid) else {
            self.miss_pod(&pod.uid);
            return;
        };
        self.see_pod(*found, now);
        if let PodProgress::InLine(node) = self.queue.progress(&pod.uid).clone() {
            self.advance(&node, NodeFlowInput::PodRead(&pod.uid));
        }
    }

    /// The holder of a lock was read, of which nothing was seen.
    pub(super) fn holder_read(
        &mut self,
        owner: &LockOwner,
        since: Timestamp,
        found: Option<Box<PodInfo>>,
        now: Timestamp,
    ) {
        let alive = found.as_ref().is_some_and(|pod| pod.stage != Stage::Ended);
        let pods = found.into_iter().map(|pod| *pod).collect();
        // What it holds counts from now on: its lock may be gone before the watch shows it.
        for pod in self.flows.end_holder_read(owner, pods) {
            self.see_pod(pod, now);
        }
        for node in self.flows.locked_by(owner) {
            self.advance(&node, NodeFlowInput::HolderRead { owner, since, alive });
        }
    }

    /// Something is new about a pod that a lock may name.
    pub(super) fn note_holder(&mut self, pod: &PodKey) {
        let owner = owner_of(pod);
        for node in self.flows.locked_by(&owner) {
            self.advance(&node, NodeFlowInput::HolderSeen(&owner));
        }
    }

    /// Whether the node locks or binds this pod.
    pub(super) fn is_served(&self, node: &NodeName, uid: &Uid) -> bool {
        self.flows.serves(node, uid)
    }

    /// What the node's device plugins have made of the pod, by what it says and by what the node's lock does.
    pub fn answer(&self, uid: &Uid, charge: &Charge) -> Answer {
        let view = NodeView {
            name: &charge.node,
            info: self.snapshot.node(&charge.node).map(|state| &*state.info),
            ledger: self.snapshot.ledger(),
            pods: &self.pods,
            now: self.snapshot.now(),
            course: self.duty.course,
            lock_expiry: self.flows.lock_expiry,
        };
        let to_come = charge.commitment != Commitment::Bound && charge.has_answer(Answer::ByLock);
        let in_flight = || self.flows.is_in_flight(uid, charge, &view);
        if to_come || in_flight() { Answer::Awaited } else { charge.answer() }
    }

    /// A pod that is in no line goes back to the queue, if it is to be decided.
    pub(super) fn enqueue_if_wanted(&mut self, uid: &Uid) {
        if self.pods.get(uid).is_some_and(|entry| entry.info.claim != Claim::None) {
            self.enqueue(uid);
        }
    }
}
