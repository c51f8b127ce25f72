//! One node, its device plugin, its pods and the API server as they are; and a scheduler that sees them late and decides no more than
//! whether a pod fits.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    num::NonZeroU32,
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::super::{Course, Fit, NodeFlowInput, NodeFlowRequest, NodeFlows, NodeView, PodLister, owner_of};
use crate::{
    device::{
        Allocation, Answer, Assignment, Blend, CardPolicy, ContainerRequest, ContainerShares, CoreBudget,
        CoreRequest, CoreUnit, Cores, DeviceRequest, InitPhase, Lock, LockName, LockOwner, MemoryRequest,
        MiB, NodePolicy, PodRequest, Profile, ProfileName, Role, Selection, Share, ShareRequest,
        SlicesOfCard, Tie,
    },
    scheduling::{
        model::{
            footprint::Footprint,
            name::{NodeName, Uid},
            node::{NodeInfo, NodeLock, Offer, Signature},
            outcome::{BindOutcome, LockOutcome, REACH, ReleaseOutcome, Setback, WithdrawOutcome},
            pod::{
                Ask, Binding, Claim, Constraints, Holding, Importance, Placer, PodInfo, PodKey,
                PreemptionPolicy, Stage, is_older,
            },
            resources::ResourceAmounts,
        },
        world::{
            ledger::{Charge, Commitment, Ledger},
            node_state::Agent,
        },
    },
};

pub(in super::super) const NODE: &str = "n1";
pub(in super::super) const EXPIRY: SignedDuration = SignedDuration::from_mins(5);
/// For so long the plugin of a pod that was deleted by force may be at work for it.
const CLEARANCE: SignedDuration = SignedDuration::from_secs(15);

/// What becomes of a write. Reads are always carried out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Outcome {
    /// It is carried out, and its answer comes.
    Done,
    /// It is carried out, and its answer is lost.
    Lost,
    /// Its answer is lost, and it may yet be carried out.
    Delayed,
    /// The API server has too much to do.
    Throttled,
    /// The API server does not accept it.
    Refused,
}

/// An answer that the scheduler has not heard yet.
#[derive(Clone, Debug)]
enum Heard {
    Lock(PodKey, Vec<LockName>, LockOutcome),
    Unlock(ReleaseOutcome),
    Bind(PodKey, BindOutcome),
    Withdraw(PodKey, WithdrawOutcome),
    Pod(PodKey, Option<Box<PodInfo>>),
    Node(Box<NodeInfo>, Vec<PodInfo>),
    Holder(LockOwner, Timestamp, Option<Box<PodInfo>>),
}

/// The pods that the scheduler knows.
#[derive(Debug, Default)]
struct Seen(BTreeMap<Uid, PodInfo>);

impl PodLister for Seen {
    fn pod(&self, uid: &str) -> Option<&PodInfo> {
        self.0.get(uid)
    }

    fn named(&self, namespace: &str, name: &str) -> Option<&PodInfo> {
        self.0.values().find(|pod| *pod.key.namespace == *namespace && *pod.key.name == *name)
    }
}

/// What a watch shows next of a pod.
#[derive(Clone, Debug)]
enum Shown {
    Pod(Box<PodInfo>),
    Gone(Uid),
    Ended(Uid),
}

pub(in super::super) struct World {
    pub(in super::super) now: Timestamp,
    /// Of the last object that has changed.
    version: u64,
    node_version: u64,
    lock: Lock,
    /// The pods as they are.
    pods: BTreeMap<Uid, PodInfo>,
    nodes_to_show: VecDeque<NodeInfo>,
    pods_to_show: VecDeque<Shown>,
    /// Writes and reads under way.
    sent: Vec<NodeFlowRequest>,
    /// Writes whose answer is lost and that may yet be carried out.
    delayed: Vec<(NodeFlowRequest, Timestamp)>,
    to_hear: Vec<Heard>,
    /// Until when the plugin may be at work for pods that were deleted by force.
    at_work_until: Timestamp,

    pub(in super::super) flows: NodeFlows,
    ledger: Ledger,
    info: Option<NodeInfo>,
    seen: Seen,
    in_line: BTreeSet<Uid>,
    queue: BTreeSet<Uid>,
    /// Whether the node has no room for any pod that is decided.
    pub(in super::super) full: bool,
    /// Whether pods stay in the queue.
    pub(in super::super) hold_queue: bool,
    pub(in super::super) agent: Agent,
    pub(in super::super) told: Vec<String>,
    /// What must never be.
    pub(in super::super) faults: Vec<String>,
}

pub(in super::super) fn setback(wait: i64) -> Setback {
    Setback { why: "500".to_owned(), wait: SignedDuration::from_secs(wait) }
}

fn profile() -> ProfileName {
    "test".into()
}

fn lock_name() -> LockName {
    LockName { profile: profile(), key: "lock".into() }
}

fn key(name: &str) -> PodKey {
    let (namespace, short) = name.split_once('/').unwrap_or(("default", name));
    PodKey { uid: name.into(), namespace: namespace.into(), name: short.into() }
}

fn ask() -> Ask {
    let share = ShareRequest {
        cards: NonZeroU32::MIN,
        memory: MemoryRequest::Exact(MiB::new(1)),
        cores: CoreRequest::NONE,
    };
    let request = PodRequest {
        containers: vec![ContainerRequest { role: Role::App, share: Some(share) }],
        selection: Selection::default(),
        choice: CardPolicy::Spread.into(),
        node_policy: NodePolicy::Binpack,
        marks: BTreeSet::new(),
        shuns: BTreeSet::new(),
    };
    let profile = Profile {
        name: profile(),
        blend: Blend::Even,
        tie: Tie::Highest,
        core_budget: CoreBudget::Registered,
        slices: SlicesOfCard::Several,
    };
    Ask {
        devices: vec![DeviceRequest { profile, request, joint: None, by_class: None }],
        resources: ResourceAmounts::default(),
        constraints: Constraints::default(),
    }
}

fn holding(answer: Answer) -> Holding {
    let share = Share { card: "GPU-0".into(), memory: MiB::new(1), cores: Cores::NONE, slice: None };
    let shares = ContainerShares { role: Role::App, shares: vec![share] };
    let assignment = Assignment { containers: vec![shares], ..Assignment::default() };
    Holding {
        node: NODE.into(),
        allocations: vec![Allocation::new(profile(), Arc::new(assignment), answer)],
        unassigned: Vec::new(),
        init: InitPhase::Done,
        takeable: Vec::new(),
        binding: Binding::Bound,
    }
}

fn charge(pod: &PodInfo, commitment: Commitment, since: Timestamp) -> Charge {
    let allocations = match &pod.holding {
        Some(holding) => holding.allocations.clone(),
        None => holding(Answer::Awaited).allocations,
    };
    Charge {
        node: NODE.into(),
        namespace: pod.key.namespace.clone(),
        allocations,
        init: InitPhase::Done,
        footprint: pod.footprint.clone(),
        steps: Vec::new(),
        importance: pod.importance,
        placer: pod.placer,
        commitment,
        stage: pod.stage,
        since,
    }
}

fn is_awaited(pod: &PodInfo) -> bool {
    let holding = pod.holding.as_ref();
    holding.is_some_and(|holding| holding.allocations.iter().any(|one| one.answer == Answer::Awaited))
}

/// The world as it is.
impl World {
    pub(in super::super) fn new() -> Self {
        let mut world = Self {
            now: "2026-11-21T12:00:00Z".parse().unwrap(),
            version: 100,
            node_version: 100,
            lock: Lock::Free,
            pods: BTreeMap::new(),
            nodes_to_show: VecDeque::new(),
            pods_to_show: VecDeque::new(),
            sent: Vec::new(),
            delayed: Vec::new(),
            to_hear: Vec::new(),
            at_work_until: Timestamp::MIN,
            flows: NodeFlows::default(),
            ledger: Ledger::default(),
            info: None,
            seen: Seen::default(),
            in_line: BTreeSet::new(),
            queue: BTreeSet::new(),
            full: false,
            hold_queue: false,
            agent: Agent::Answering,
            told: Vec::new(),
            faults: Vec::new(),
        };
        let node = world.node();
        world.see_node(node);
        world.settle();
        world
    }

    fn node(&self) -> NodeInfo {
        NodeInfo {
            name: NODE.into(),
            resource_version: self.node_version.to_string(),
            offers: vec![Offer { core_unit: CoreUnit::Percent, profile: profile(), inventory: None }],
            locks: vec![NodeLock {
                name: lock_name(),
                state: self.lock.clone(),
                signature: Signature::Pod,
                expiry: EXPIRY,
            }],
            ..NodeInfo::default()
        }
    }

    fn set_lock(&mut self, lock: Lock) {
        self.lock = lock;
        self.version += 1;
        self.node_version = self.version;
        self.nodes_to_show.push_back(self.node());
    }

    fn set_pod(&mut self, mut pod: PodInfo) {
        self.version += 1;
        pod.resource_version = self.version.to_string();
        self.pods_to_show.push_back(Shown::Pod(Box::new(pod.clone())));
        self.pods.insert(pod.key.uid.clone(), pod);
    }

    fn create_for(&mut self, name: &str, placer: Placer, claim: Claim) {
        let key = key(name);
        let footprint = Footprint { namespace: key.namespace.clone(), ..Footprint::default() };
        self.set_pod(PodInfo {
            key,
            resource_version: String::new(),
            importance: Importance::default(),
            preemption_policy: PreemptionPolicy::default(),
            created: self.now,
            nominated: None,
            placer,
            leaving: None,
            stage: Stage::Pending,
            claim,
            holding: None,
            footprint: Arc::new(footprint),
            origin: None,
            served: None,
            gang: None,
            member: None,
            told: None,
        });
    }

    pub(in super::super) fn create(&mut self, name: &str) {
        self.create_for(name, Placer::Berth, Claim::Place(Arc::new(ask())));
    }

    /// The names of the pods that are there.
    pub(in super::super) fn names(&self) -> Vec<Uid> {
        self.pods.keys().cloned().collect()
    }

    /// A user deletes the pod: it ends later if it is bound.
    pub(in super::super) fn delete(&mut self, name: &str) {
        let Some(mut pod) = self.pods.get(name).cloned() else { return };
        if pod.holding.is_none() {
            self.pods.remove(name);
            self.pods_to_show.push_back(Shown::Gone(name.into()));
        } else if pod.leaving.is_none() {
            pod.leaving = Some(self.now + SignedDuration::from_secs(30));
            pod.claim = Claim::None;
            self.set_pod(pod);
        }
    }

    /// A pod that is being deleted has ended: its node is done with it.
    pub(in super::super) fn end(&mut self, name: &str) {
        if self.pods.get(name).is_some_and(|pod| pod.leaving.is_some()) {
            self.pods.remove(name);
            self.pods_to_show.push_back(Shown::Ended(name.into()));
        }
    }

    /// The pod is deleted by force: its node's device plugin may still be at work for it.
    pub(in super::super) fn kill(&mut self, name: &str) {
        let Some(pod) = self.pods.remove(name) else { return };
        if is_awaited(&pod) {
            self.at_work_until = self.at_work_until.max(self.now + CLEARANCE);
        }
        self.pods_to_show.push_back(Shown::Gone(name.into()));
    }

    /// The node's device plugin answers for a pod.
    pub(in super::super) fn serve(&mut self, name: &str, answer: Answer) {
        if let Some(pod) = self.pods.get(name).cloned().filter(is_awaited) {
            self.set_pod(PodInfo { holding: Some(holding(answer)), ..pod });
        }
    }

    /// The device plugin frees the lock of a pod that it has answered for.
    pub(in super::super) fn free_lock(&mut self) {
        if self.owner().is_some_and(|pod| pod.holding.is_some() && !is_awaited(pod)) {
            self.set_lock(Lock::Free);
        }
    }

    /// Another scheduler locks the node for a pod of its own, or frees it again, or its pod goes and leaves the lock.
    pub(in super::super) fn intrude(&mut self, round: usize) {
        let own = self.owner().is_some_and(|pod| pod.placer == Placer::Another);
        match (&self.lock, round % 3) {
            (Lock::Free, _) => {
                let name = format!("other/{}", self.version);
                self.create_for(&name, Placer::Another, Claim::None);
                let owner = Some(owner_of(&key(&name)));
                self.set_lock(Lock::Held { owner, since: self.now });
            }
            (_, 0) if own => self.set_lock(Lock::Free),
            (_, 1) => self.abandon(),
            _ => {}
        }
    }

    /// The pod of another scheduler that holds the lock goes, and leaves the lock.
    pub(in super::super) fn abandon(&mut self) {
        let intruder = self.owner().filter(|pod| pod.placer == Placer::Another);
        if let Some(uid) = intruder.map(|pod| pod.key.uid.clone()) {
            self.kill(&uid);
        }
    }

    /// The pod that the lock names.
    fn owner(&self) -> Option<&PodInfo> {
        let Lock::Held { owner: Some(owner), .. } = &self.lock else { return None };
        self.pods.values().find(|pod| owner_of(&pod.key) == *owner)
    }

    pub(in super::super) fn is_unlocked(&self) -> bool {
        self.lock == Lock::Free
    }

    /// Carries out one of the requests under way, so.
    pub(in super::super) fn carry_out(&mut self, at: usize, outcome: Outcome) {
        if self.sent.is_empty() {
            return;
        }
        let request = self.sent.remove(at % self.sent.len());
        if outcome == Outcome::Delayed {
            self.delayed.push((request.clone(), self.now));
        }
        let heard = match request {
            NodeFlowRequest::TakeLock { ref pod, ref locks, .. } => {
                let pod = pod.clone();
                let locks = locks.clone();
                let taken = matches!(outcome, Outcome::Done | Outcome::Lost) && self.take_effect(&request);
                let outcome = match outcome {
                    Outcome::Done if taken => {
                        LockOutcome::Taken { resource_version: self.node_version.to_string() }
                    }
                    Outcome::Done => LockOutcome::Stale,
                    Outcome::Lost | Outcome::Delayed => LockOutcome::Failed(setback(0)),
                    Outcome::Throttled => LockOutcome::Throttled(setback(1)),
                    Outcome::Refused => LockOutcome::Refused("403".to_owned()),
                };
                Heard::Lock(pod, locks, outcome)
            }
            NodeFlowRequest::ReleaseLock { .. } => {
                let freed = matches!(outcome, Outcome::Done | Outcome::Lost) && self.take_effect(&request);
                let wait = SignedDuration::ZERO;
                let done = outcome == Outcome::Done && freed;
                Heard::Unlock(if done { ReleaseOutcome::Done } else { ReleaseOutcome::Failed { wait } })
            }
            NodeFlowRequest::Bind(ref uid) => {
                let pod = key(uid);
                let bound = matches!(outcome, Outcome::Done | Outcome::Lost) && self.take_effect(&request);
                let outcome = match outcome {
                    Outcome::Done if bound => BindOutcome::Bound,
                    Outcome::Done | Outcome::Lost | Outcome::Delayed => BindOutcome::Doubtful(setback(0)),
                    Outcome::Throttled => BindOutcome::Throttled(setback(1)),
                    Outcome::Refused => BindOutcome::Refused("403".to_owned()),
                };
                Heard::Bind(pod, outcome)
            }
            NodeFlowRequest::Withdraw { pod, .. } => Heard::Withdraw(pod, WithdrawOutcome::Done),
            NodeFlowRequest::ReadPod(pod) => {
                let found = self.pods.get(&pod.uid).cloned();
                Heard::Pod(pod, found.map(Box::new))
            }
            NodeFlowRequest::ReadNode => {
                let pods = self.pods.values().filter(|pod| pod.holding.is_some()).cloned().collect();
                Heard::Node(Box::new(self.node()), pods)
            }
            NodeFlowRequest::ReadHolder { owner, since } => {
                let found = self.pods.values().find(|pod| owner_of(&pod.key) == owner).cloned();
                Heard::Holder(owner, since, found.map(Box::new))
            }
            request => unreachable!("{request:?} is not sent"),
        };
        self.to_hear.push(heard);
    }

    /// What a write does at the API server; returns whether it was accepted.
    fn take_effect(&mut self, request: &NodeFlowRequest) -> bool {
        match request {
            NodeFlowRequest::TakeLock { pod, resource_version, since, .. } => {
                let current = *resource_version == self.node_version.to_string();
                if current {
                    self.set_lock(Lock::Held { owner: Some(owner_of(pod)), since: *since });
                }
                current
            }
            NodeFlowRequest::ReleaseLock { resource_version, .. } => {
                let current = *resource_version == self.node_version.to_string();
                if current {
                    if let Some(owner) = self.owner().filter(|pod| is_awaited(pod)) {
                        self.faults.push(format!("5: {} lost its lock while it is being served", owner.key));
                    }
                    self.set_lock(Lock::Free);
                }
                current
            }
            NodeFlowRequest::Bind(uid) => {
                let pod = self.pods.get(uid).filter(|pod| pod.holding.is_none()).cloned();
                let found = pod.is_some();
                if let Some(pod) = pod {
                    self.set_pod(PodInfo {
                        claim: Claim::None,
                        holding: Some(holding(Answer::Awaited)),
                        ..pod
                    });
                }
                found
            }
            _ => false,
        }
    }

    /// Writes whose answers were lost are carried out after all, as far as they still can be.
    pub(in super::super) fn carry_out_delayed(&mut self) {
        for (request, sent) in std::mem::take(&mut self.delayed) {
            if self.now < sent + REACH {
                self.take_effect(&request);
            }
        }
    }

    /// Whether a Binding of this pod may still arrive.
    fn may_be_bound(&self, uid: &Uid) -> bool {
        let is_it = |request: &NodeFlowRequest| matches!(request, NodeFlowRequest::Bind(of) if of == uid);
        let open = self.pods.get(uid).is_some_and(|pod| pod.holding.is_none());
        let delayed = self.delayed.iter().filter(|(_, sent)| self.now < *sent + REACH);
        open && (self.sent.iter().any(is_it) || delayed.into_iter().any(|(request, _)| is_it(request)))
    }

    /// Invariant 6, as things are: of all pods one at most is between its Binding and its device plugin's answer.
    pub(in super::super) fn judge(&mut self) {
        let at_once = self.pods.values().filter(|pod| is_awaited(pod) || self.may_be_bound(&pod.key.uid));
        let at_once: Vec<_> = at_once.map(|pod| pod.key.to_string()).collect();
        if at_once.len() > 1 {
            self.faults.push(format!("6: {} are being served at once", at_once.join(" and ")));
        }
    }
}

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
                if self.now < self.at_work_until {
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
    pub(in super::super) fn schedule(&mut self) {
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

    fn settle(&mut self) {
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
        if !self.flows.locked_by(&owner).is_empty() {
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

    fn see_node(&mut self, node: NodeInfo) {
        let known = self.info.as_ref().map(|info| info.resource_version.clone());
        if known.is_none_or(|known| !is_older(&node.resource_version, &known)) {
            let before = self.info.replace(node);
            self.advance(NodeFlowInput::NodeSeen { before: before.as_ref() });
        }
    }

    /// What the watch of nodes shows next.
    pub(in super::super) fn show_node(&mut self) {
        if let Some(node) = self.nodes_to_show.pop_front() {
            self.see_node(node);
        }
        self.settle();
    }

    /// What the watch of pods shows next.
    pub(in super::super) fn show_pod(&mut self) {
        match self.pods_to_show.pop_front() {
            Some(Shown::Pod(pod)) => self.see_pod(*pod),
            Some(Shown::Gone(uid)) => self.miss_pod(&uid),
            Some(Shown::Ended(uid)) => self.lose_pod(&uid),
            None => {}
        }
        self.settle();
    }

    pub(in super::super) fn show_all(&mut self) {
        while !self.pods_to_show.is_empty() {
            self.show_pod();
        }
        while !self.nodes_to_show.is_empty() {
            self.show_node();
        }
    }

    /// The scheduler hears an answer; that to a write may come twice.
    pub(in super::super) fn hear(&mut self, at: usize, twice: bool) {
        if self.to_hear.is_empty() {
            return;
        }
        let heard = self.to_hear.remove(at % self.to_hear.len());
        if twice && matches!(heard, Heard::Lock(..) | Heard::Unlock(_) | Heard::Bind(..)) {
            self.take_in(heard.clone());
        }
        self.take_in(heard);
    }

    fn take_in(&mut self, heard: Heard) {
        match heard {
            Heard::Lock(pod, locks, outcome) => {
                self.advance(NodeFlowInput::LockAnswered { pod: &pod, locks, outcome });
            }
            Heard::Unlock(outcome) => self.advance(NodeFlowInput::LockReleased(outcome)),
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
                let alive = found.is_some();
                for pod in self.flows.end_holder_read(&owner, found.into_iter().map(|pod| *pod).collect()) {
                    self.see_pod(pod);
                }
                self.advance(NodeFlowInput::HolderRead { owner: &owner, since, alive });
            }
        }
        self.settle();
    }

    /// All that is under way is carried out so and answered, what follows from that not.
    pub(in super::super) fn answer_all(&mut self, outcome: Outcome) {
        for _ in 0..self.sent.len() {
            self.carry_out(0, outcome);
        }
        for _ in 0..self.to_hear.len() {
            self.hear(0, false);
        }
    }

    pub(in super::super) fn answer_lock_again(&mut self, pod: &str, outcome: LockOutcome) {
        self.take_in(Heard::Lock(key(pod), vec![lock_name()], outcome));
    }

    pub(in super::super) fn answer_binding_again(&mut self, pod: &str, outcome: BindOutcome) {
        self.take_in(Heard::Bind(key(pod), outcome));
    }

    /// Time passes, second by second.
    pub(in super::super) fn pass(&mut self, time: SignedDuration) {
        for _ in 0..time.as_secs() {
            self.now += SignedDuration::from_secs(1);
            self.settle();
        }
    }

    /// The scheduler is started again once nothing that it has sent can arrive any more; what is under way is carried out or not.
    pub(in super::super) fn restart(&mut self, carried_out: u64) {
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
    pub(in super::super) fn come_to_rest(&mut self) {
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

    pub(in super::super) fn is_idle(&self) -> bool {
        self.flows.is_empty()
    }

    /// What is under way, in short.
    pub(in super::super) fn sent(&self) -> Vec<String> {
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

    pub(in super::super) fn line(&self) -> Vec<&str> {
        self.flows.line(NODE).map(|uid| &**uid).collect()
    }

    pub(in super::super) fn stands_in_line(&self, name: &str) -> bool {
        self.line().contains(&name)
    }

    pub(in super::super) fn is_charged_as_bound(&self, name: &str) -> bool {
        self.ledger.get(&name.into()).is_some_and(|charge| charge.commitment == Commitment::Bound)
    }

    /// The pods of ours that wait although nothing goes on any more, and the lock that has been left behind.
    pub(in super::super) fn left(&self) -> Vec<String> {
        let waits = |pod: &&PodInfo| pod.placer == Placer::Berth && pod.holding.is_none();
        let pods = self.pods.values().filter(waits).map(|pod| format!("{} waits", pod.key));
        let dead = matches!(self.lock, Lock::Held { .. }) && self.owner().is_none();
        pods.chain(dead.then(|| format!("{:?} stays", self.lock))).collect()
    }
}
