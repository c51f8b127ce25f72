//! One node, its device plugin, its pods and the API server as they are; and a scheduler that sees them late and decides no more than
//! whether a pod fits.

mod objects;
mod scheduler;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use super::super::{NodeFlowRequest, NodeFlows, owner_of};
use crate::{
    device::{Answer, CoreUnit, Lock, LockName, LockNeed, LockOwner},
    scheduling::{
        fixtures::{PROFILE, key, pod},
        model::{
            name::Uid,
            node::{NodeInfo, NodeLock, Offer, OfferedDevices, RequiredLocks, Signature},
            other_schedulers::OtherSchedulers,
            outcome::{BindOutcome, LockOutcome, REACH, ReleaseOutcome, Setback, WithdrawOutcome},
            pod::{Claim, Lifetime, Placer, PodInfo, PodKey, Stage},
        },
        world::{ledger::Ledger, node_state::Agent, pod_lister::PodLister},
    },
};
use objects::{ask, holding, is_awaited, is_taken_without_lock, lock_name};

pub(in super::super) const NODE: &str = "n1";
pub(in super::super) const EXPIRY: SignedDuration = SignedDuration::from_mins(5);
/// For so long the plugin of a pod that was deleted by force may be at work for it.
const CLEARANCE: SignedDuration = SignedDuration::from_secs(15);

/// So long what is reported of other schedulers is relied on.
const REPORT: SignedDuration = SignedDuration::from_secs(6);
/// So many seconds another scheduler takes to start.
const START: usize = 20;

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
    Unlock(String, Vec<LockName>, ReleaseOutcome),
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
    need: LockNeed,
    rival: Rival,

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

/// Another scheduler that takes locks, as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Rival {
    /// There is none; one may have been until then.
    Absent(Timestamp),
    /// Its pod is there, and it takes no lock yet.
    Starting,
    /// It takes locks.
    Locking,
}

pub(in super::super) fn setback(wait: i64) -> Setback {
    Setback { why: "500".to_owned(), wait: SignedDuration::from_secs(wait) }
}

/// The world as it is.
impl World {
    pub(in super::super) fn new() -> Self {
        Self::needing(LockNeed::Always)
    }

    /// A world whose plugin needs its lock so.
    pub(in super::super) fn needing(need: LockNeed) -> Self {
        let mut world = Self {
            need,
            rival: match need {
                LockNeed::Always => Rival::Locking,
                LockNeed::WhereContested => Rival::Absent(Timestamp::MIN),
            },
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
            devices: OfferedDevices {
                offers: vec![Offer {
                    core_unit: CoreUnit::Percent,
                    profile: PROFILE.into(),
                    inventory: None,
                }],
                ..OfferedDevices::default()
            },
            locks: RequiredLocks {
                needed: vec![NodeLock {
                    name: lock_name(),
                    state: self.lock.clone(),
                    signature: Signature::Pod,
                    expiry: EXPIRY,
                    need: self.need,
                }],
                ..RequiredLocks::default()
            },
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
        pod.resource_version = self.version.to_string().into();
        self.pods_to_show.push_back(Shown::Pod(Box::new(pod.clone())));
        self.pods.insert(pod.key.uid.clone(), pod);
    }

    fn create_for(&mut self, name: &str, placer: Placer, claim: Claim) {
        self.set_pod(PodInfo {
            lifetime: Lifetime { created: self.now, leaving: None },
            placer,
            ..pod(name, claim)
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
        } else if pod.lifetime.leaving.is_none() {
            pod.lifetime.leaving = Some(Box::new(self.now + SignedDuration::from_secs(30)));
            pod.claim = Claim::None;
            self.set_pod(pod);
        }
    }

    /// A pod that is being deleted has ended: its node is done with it.
    pub(in super::super) fn end(&mut self, name: &str) {
        if self.pods.get(name).is_some_and(|pod| pod.lifetime.leaving.is_some()) {
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

    /// The node's device plugin answers for a pod: for the one that the lock names, or else for the first that has an assignment and has not
    /// started.
    pub(in super::super) fn serve(&mut self, name: &str, answer: Answer) {
        if let Some(pod) = self.pods.get(name).cloned().filter(is_awaited) {
            let unlocked = self.lock == Lock::Free;
            let found: Vec<_> = if unlocked {
                self.pods.values().filter(|pod| is_taken_without_lock(pod)).collect()
            } else {
                self.owner().into_iter().collect()
            };
            if found.iter().any(|found| found.key != pod.key) || (self.need == LockNeed::Always && unlocked) {
                let found: Vec<_> = found.iter().map(|pod| pod.key.to_string()).collect();
                self.faults
                    .push(format!("6: the plugin is asked for {name}, and finds {}", found.join(" or ")));
            }
            self.set_pod(PodInfo { holding: Some(holding(answer)), ..pod });
        }
    }

    /// A pod that has been served starts.
    pub(in super::super) fn start(&mut self, name: &str) {
        let pod = self.pods.get(name).filter(|pod| pod.holding.is_some() && !is_awaited(pod)).cloned();
        if let Some(pod) = pod {
            self.set_pod(PodInfo { stage: Stage::Running, ..pod });
        }
    }

    /// The pod of another scheduler is created.
    pub(in super::super) fn rival_comes(&mut self) {
        if matches!(self.rival, Rival::Absent(_)) {
            self.rival = Rival::Starting;
        }
    }

    /// The other scheduler has started, and takes the lock if it is free. Meanwhile the scheduler has heard of it and of what it has asked for.
    pub(in super::super) fn rival_starts(&mut self) {
        if self.rival != Rival::Starting {
            return;
        }
        for _ in 0..START {
            self.carry_out_delayed();
            self.report();
            self.show_all();
            self.answer_all(Outcome::Done);
            self.pass(SignedDuration::from_secs(1));
        }
        self.rival = Rival::Locking;
        if self.is_unlocked() {
            self.intrude(0);
        }
    }

    /// The other scheduler and its pod are gone, and what it has written was seen for long.
    pub(in super::super) fn rival_goes(&mut self) {
        if self.need == LockNeed::WhereContested && self.rival == Rival::Locking {
            self.abandon();
            self.rival = Rival::Absent(self.now + EXPIRY);
            self.show_all();
            self.pass(EXPIRY);
        }
    }

    /// What is known of other schedulers is reported.
    pub(in super::super) fn report(&mut self) {
        let others = match self.rival {
            Rival::Absent(until) if until <= self.now => OtherSchedulers::NoneUntil(self.now + REPORT),
            _ => OtherSchedulers::MayRun,
        };
        self.flows.note_other_schedulers(others, self.now);
        self.settle();
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
            (Lock::Free, _) if self.rival != Rival::Locking => {}
            (Lock::Free, _) => {
                let unlocked =
                    self.pods.values().find(|pod| is_awaited(pod) || self.may_be_bound(&pod.key.uid));
                // Before its lock, no Binding of Berth's is sent that needs one.
                let unlocked = unlocked.filter(|_| self.need == LockNeed::WhereContested);
                if let Some(pod) = unlocked {
                    self.faults.push(format!(
                        "5: another scheduler takes the lock while {} is being served",
                        pod.key
                    ));
                }
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

    /// Another scheduler has the lock for a pod that is not seen.
    pub(in super::super) fn lock_for_another(&mut self) {
        self.set_lock(Lock::Held { owner: Some(owner_of(&key("other/unseen"))), since: self.now });
    }

    pub(in super::super) fn is_unlocked(&self) -> bool {
        self.lock == Lock::Free
    }

    /// How many answers the scheduler has not heard.
    pub(in super::super) fn to_hear(&self) -> usize {
        self.to_hear.len()
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
            NodeFlowRequest::ReleaseLock { ref resource_version, ref locks } => {
                let (version, locks) = (resource_version.clone(), locks.clone());
                let freed = matches!(outcome, Outcome::Done | Outcome::Lost) && self.take_effect(&request);
                let wait = SignedDuration::ZERO;
                let done = outcome == Outcome::Done && freed;
                let outcome = if done { ReleaseOutcome::Done } else { ReleaseOutcome::Failed { wait } };
                Heard::Unlock(version, locks, outcome)
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
