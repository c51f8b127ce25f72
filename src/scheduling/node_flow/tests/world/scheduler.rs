//! The scheduler of the world: it sees and hears late, and decides no more than whether a pod fits.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{
    super::super::{Course, Fit, NodeFlowInput, NodeFlowRequest, NodeFlows, NodeView, Validity, owner_of},
    EXPIRY, Heard, NODE, Outcome, Seen, Shown, World,
    objects::{charge, lock_name},
};
use crate::{
    device::{Answer, Lock},
    scheduling::{
        fixtures::key,
        model::{
            name::{NodeName, Uid},
            node::NodeInfo,
            outcome::{BindOutcome, LockOutcome, REACH},
            pod::{Claim, Placer, PodInfo, PodKey, is_older},
        },
        world::{
            ledger::{Commitment, Ledger},
            node_state::Agent,
            pod_lister::PodLister,
        },
    },
};

/// The scheduler.
impl World {
    fn advance(&mut self, input: NodeFlowInput<'_>) {
        let name: NodeName = NODE.into();
        let mut input = Some(input);
        while let Some(happened) = input.take() {
            let view = NodeView {
                name: &name,
                info: self.info.as_ref(),
                ledger: &self.ledger,
                pods: &self.seen,
                now: self.now,
                course: Course::Onward,
                lock_expiry: EXPIRY,
                contest: self.flows.contest(self.now),
            };
            for request in self.flows.handle(happened, &view) {
                assert!(input.is_none(), "a request that is answered at once is not the last");
                input = self.request(request);
            }
        }
    }

    fn request(&mut self, request: NodeFlowRequest) -> Option<NodeFlowInput<'static>> {
        match request {
            NodeFlowRequest::Decide(uid) | NodeFlowRequest::Judge(uid) => {
                let wants = self.seen.pod(&uid).is_some_and(|pod| matches!(pod.claim, Claim::Place(_)));
                let fit = if wants && !self.full { Fit::Fits } else { Fit::Rejected };
                return Some(NodeFlowInput::Decided(uid, fit));
            }
            NodeFlowRequest::ConfirmBound(uid) => {
                self.in_line.remove(&uid);
                if let Some(pod) = self.seen.pod(&uid) {
                    self.ledger.charge(uid, charge(pod, Commitment::Bound, self.now));
                }
            }
            NodeFlowRequest::Forget(uid) => self.give_up(&uid),
            NodeFlowRequest::Requeue(uid) | NodeFlowRequest::BackOff(uid, _) => {
                self.give_up(&uid);
                self.enqueue(&uid);
            }
            NodeFlowRequest::SetAgent(agent) => self.agent = agent,
            NodeFlowRequest::TellWaiting(uid, _) => self.told.push(format!("waits {uid}")),
            NodeFlowRequest::TellSilent(pod) => self.told.push(format!("silent {}", pod.uid)),
            NodeFlowRequest::TellScheduled(pod) => self.told.push(format!("scheduled {}", pod.uid)),
            NodeFlowRequest::TellFailedAllocation(pod) => self.told.push(format!("failed {}", pod.uid)),
            NodeFlowRequest::FindOtherNodes(_) | NodeFlowRequest::Measure(_) => {}
            NodeFlowRequest::Bind(ref uid) => {
                // The Binding of a pod that is gone has no effect: its uid is a precondition.
                if self.now < self.at_work_until && self.pods.contains_key(uid) {
                    self.faults.push(format!("6: {uid} is bound while the plugin may serve a deleted pod"));
                }
                self.sent.push(request);
            }
            request => self.sent.push(request),
        }
        None
    }

    /// The flow gives a pod up: invariant 4.
    fn give_up(&mut self, uid: &Uid) {
        if self.may_be_bound(uid) {
            self.faults.push(format!("4: {uid} is given up while its Binding may arrive"));
        }
        if self.pods.get(uid).is_some_and(|pod| pod.holding.is_some()) {
            self.faults.push(format!("4: {uid} is given up and is bound"));
        }
        self.forget(uid);
    }

    fn forget(&mut self, uid: &Uid) {
        if self.ledger.get(uid).is_some_and(|charge| charge.commitment == Commitment::Assumed) {
            self.ledger.release(uid);
            self.flows.touch(&NODE.into());
        }
        if self.in_line.remove(uid) {
            self.advance(NodeFlowInput::Left(uid));
        }
    }

    fn enqueue(&mut self, uid: &Uid) {
        let wants = self.seen.pod(uid).is_some_and(|pod| matches!(pod.claim, Claim::Place(_)));
        if wants && !self.in_line.contains(uid) && self.ledger.get(uid).is_none() {
            self.queue.insert(uid.clone());
        }
    }

    /// The pods of the queue join the line.
    pub(in super::super::super) fn schedule(&mut self) {
        if self.agent == Agent::Answering && !self.hold_queue {
            for uid in std::mem::take(&mut self.queue) {
                let Some(pod) = self.seen.pod(&uid) else { continue };
                self.ledger.charge(uid.clone(), charge(pod, Commitment::Assumed, self.now));
                self.in_line.insert(uid.clone());
                self.advance(NodeFlowInput::Joined { pod: uid, since: Some(self.now) });
            }
        }
        self.settle();
    }

    pub(super) fn settle(&mut self) {
        self.flows.touch_due(self.now);
        for _ in 0..100 {
            if self.flows.take_touched().is_empty() {
                return;
            }
            self.advance(NodeFlowInput::Touched);
        }
        panic!("the flow goes on without end");
    }

    fn news_of(&mut self, pod: &PodKey) {
        let owner = owner_of(pod);
        if !self.flows.note_holder(&owner).is_empty() {
            self.advance(NodeFlowInput::HolderSeen(&owner));
        }
    }

    fn see_pod(&mut self, pod: PodInfo) {
        let uid = pod.key.uid.clone();
        let known = self.seen.pod(&uid);
        if known.is_some_and(|known| is_older(&pod.resource_version, &known.resource_version)) {
            return;
        }
        self.news_of(&pod.key);
        if pod.holding.is_some() {
            let before = self.ledger.get(&uid).cloned();
            let bound = before.as_ref().filter(|before| before.commitment == Commitment::Bound);
            let since = bound.map_or(self.now, |before| before.since);
            let charge = charge(&pod, Commitment::Bound, since);
            self.advance(NodeFlowInput::Charged { pod: &pod, before: before.as_ref(), charge: &charge });
            self.ledger.charge(uid.clone(), charge);
            self.queue.remove(&uid);
            if self.in_line.remove(&uid) {
                self.advance(NodeFlowInput::Left(&uid));
            }
        }
        self.seen.0.insert(uid.clone(), pod);
        self.advance(NodeFlowInput::HoldingSeen(&uid));
        self.enqueue(&uid);
    }

    fn lose_pod(&mut self, uid: &Uid) {
        self.flows.note_gone(uid);
        let Some(pod) = self.seen.0.get(uid).cloned() else { return };
        self.queue.remove(uid);
        self.forget(uid);
        self.ledger.release(uid);
        self.seen.0.remove(uid);
        self.advance(NodeFlowInput::PodGone(uid));
        self.news_of(&pod.key);
    }

    fn miss_pod(&mut self, uid: &Uid) {
        self.advance(NodeFlowInput::PodMissed(uid));
        self.lose_pod(uid);
    }

    pub(super) fn see_node(&mut self, node: NodeInfo) {
        let known = self.info.as_ref().map(|info| info.resource_version.clone());
        if known.is_none_or(|known| !is_older(&node.resource_version, &known)) {
            let before = self.info.replace(node);
            self.advance(NodeFlowInput::NodeSeen { before: before.as_ref() });
        }
    }

    /// What the watch of nodes shows next.
    pub(in super::super::super) fn show_node(&mut self) {
        if let Some(node) = self.nodes_to_show.pop_front() {
            self.see_node(node);
        }
        self.settle();
    }

    /// What the watch of pods shows next.
    pub(in super::super::super) fn show_pod(&mut self) {
        match self.pods_to_show.pop_front() {
            Some(Shown::Pod(pod)) => self.see_pod(*pod),
            Some(Shown::Gone(uid)) => self.miss_pod(&uid),
            Some(Shown::Ended(uid)) => self.lose_pod(&uid),
            None => {}
        }
        self.settle();
    }

    pub(in super::super::super) fn show_all(&mut self) {
        while !self.pods_to_show.is_empty() {
            self.show_pod();
        }
        while !self.nodes_to_show.is_empty() {
            self.show_node();
        }
    }

    /// The scheduler hears an answer; that to a write may come twice.
    pub(in super::super::super) fn hear(&mut self, at: usize, twice: bool) {
        if self.to_hear.is_empty() {
            return;
        }
        let heard = self.to_hear.remove(at % self.to_hear.len());
        if twice && matches!(heard, Heard::Lock(..) | Heard::Unlock(..) | Heard::Bind(..)) {
            self.take_in(heard.clone());
        }
        self.take_in(heard);
    }

    fn take_in(&mut self, heard: Heard) {
        match heard {
            Heard::Lock(pod, locks, outcome) => {
                self.advance(NodeFlowInput::LockAnswered { pod: &pod, locks, outcome });
            }
            Heard::Unlock(resource_version, locks, outcome) => {
                self.advance(NodeFlowInput::LockReleased { resource_version, locks, outcome });
            }
            Heard::Bind(pod, outcome) => self.advance(NodeFlowInput::BindAnswered { pod: &pod, outcome }),
            Heard::Withdraw(pod, outcome) => self.advance(NodeFlowInput::Withdrawn { pod: &pod, outcome }),
            Heard::Pod(pod, _) if self.seen.pod(&pod.uid).is_none() => {}
            Heard::Pod(pod, None) => self.miss_pod(&pod.uid),
            Heard::Pod(pod, Some(found)) => {
                self.see_pod(*found);
                if self.in_line.contains(&pod.uid) {
                    self.advance(NodeFlowInput::PodRead(&pod.uid));
                }
            }
            Heard::Node(found, pods) => {
                let (validity, pods) = self.flows.end_node_read(NODE, pods);
                for pod in pods {
                    self.see_pod(pod);
                }
                self.see_node(*found);
                self.advance(NodeFlowInput::NodeRead(validity));
            }
            Heard::Holder(owner, since, found) => {
                let pods = found.into_iter().map(|pod| *pod).collect();
                let (validity, pods) = self.flows.end_holder_read(&owner, since, pods);
                let alive = !pods.is_empty();
                for pod in pods {
                    self.see_pod(pod);
                }
                self.advance(match validity {
                    Validity::Fresh => NodeFlowInput::HolderRead { owner: &owner, since, alive },
                    Validity::Overtaken => NodeFlowInput::HolderSeen(&owner),
                });
            }
        }
        self.settle();
    }

    /// All that is under way is carried out so and answered, what follows from that not.
    pub(in super::super::super) fn answer_all(&mut self, outcome: Outcome) {
        for _ in 0..self.sent.len() {
            self.carry_out(0, outcome);
        }
        for _ in 0..self.to_hear.len() {
            self.hear(0, false);
        }
    }

    pub(in super::super::super) fn answer_lock_again(&mut self, pod: &str, outcome: LockOutcome) {
        self.take_in(Heard::Lock(key(pod), vec![lock_name()], outcome));
    }

    pub(in super::super::super) fn answer_binding_again(&mut self, pod: &str, outcome: BindOutcome) {
        self.take_in(Heard::Bind(key(pod), outcome));
    }

    /// Time passes, second by second.
    pub(in super::super::super) fn pass(&mut self, time: SignedDuration) {
        for _ in 0..time.as_secs() {
            self.now += SignedDuration::from_secs(1);
            self.settle();
        }
    }

    /// The scheduler is started again once nothing that it has sent can arrive any more; what is under way is carried out or not.
    pub(in super::super::super) fn restart(&mut self, carried_out: u64) {
        for (at, request) in std::mem::take(&mut self.sent).into_iter().enumerate() {
            if carried_out >> (at % 64) & 1 == 1 {
                self.take_effect(&request);
            }
        }
        self.delayed.clear();
        self.to_hear.clear();
        self.now += REACH;
        // What was seen of pods that were deleted by force is lost.
        self.at_work_until = Timestamp::MIN;
        (self.flows, self.ledger, self.seen) = (NodeFlows::default(), Ledger::default(), Seen::default());
        (self.in_line, self.queue, self.agent) = (BTreeSet::new(), BTreeSet::new(), Agent::Answering);
        self.info = None;
        self.nodes_to_show.clear();
        self.pods_to_show.clear();
        for pod in self.pods.values().cloned().collect::<Vec<_>>() {
            self.see_pod(pod);
        }
        let node = self.node();
        self.see_node(node);
        self.settle();
    }

    /// Everything is shown, carried out, answered and served, until nothing goes on any more.
    pub(in super::super::super) fn come_to_rest(&mut self) {
        self.full = false;
        self.carry_out_delayed();
        for _ in 0..700 {
            self.show_all();
            self.schedule();
            self.answer_all(Outcome::Done);
            for name in self.names() {
                self.serve(&name, Answer::Succeeded);
                self.end(&name);
            }
            self.free_lock();
            self.judge();
            let quiet = self.sent.is_empty() && self.queue.is_empty() && self.in_line.is_empty();
            let shown = self.nodes_to_show.is_empty() && self.pods_to_show.is_empty();
            if quiet && shown && self.flows.next_deadline().is_none() {
                return;
            }
            self.pass(SignedDuration::from_secs(1));
        }
    }

    pub(in super::super::super) fn is_idle(&self) -> bool {
        self.flows.is_empty()
    }

    /// What is under way, in short.
    pub(in super::super::super) fn sent(&self) -> Vec<String> {
        let short = |request: &NodeFlowRequest| match request {
            NodeFlowRequest::TakeLock { pod, .. } => format!("lock {}", pod.uid),
            NodeFlowRequest::ReleaseLock { .. } => "unlock".to_owned(),
            NodeFlowRequest::Bind(uid) => format!("bind {uid}"),
            NodeFlowRequest::ReadPod(pod) => format!("read {}", pod.uid),
            NodeFlowRequest::ReadNode => "read node".to_owned(),
            NodeFlowRequest::ReadHolder { owner, .. } => format!("read holder {}", owner.name),
            other => format!("{other:?}"),
        };
        self.sent.iter().map(short).collect()
    }

    pub(in super::super::super) fn line(&self) -> Vec<&str> {
        self.flows.line(NODE).map(|uid| &**uid).collect()
    }

    pub(in super::super::super) fn stands_in_line(&self, name: &str) -> bool {
        self.line().contains(&name)
    }

    pub(in super::super::super) fn is_charged_as_bound(&self, name: &str) -> bool {
        self.ledger.get(&name.into()).is_some_and(|charge| charge.commitment == Commitment::Bound)
    }

    /// The pods of ours that wait although nothing goes on any more, and the lock that has been left behind.
    pub(in super::super::super) fn left(&self) -> Vec<String> {
        let waits = |pod: &&PodInfo| pod.placer == Placer::Berth && pod.holding.is_none();
        let pods = self.pods.values().filter(waits).map(|pod| format!("{} waits", pod.key));
        let dead = matches!(self.lock, Lock::Held { .. }) && self.owner().is_none();
        pods.chain(dead.then(|| format!("{:?} stays", self.lock))).collect()
    }
}
