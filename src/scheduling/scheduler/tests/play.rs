//! A scheduler with one node of one card, and short words for what happens to it and what it wants done.
//!
//! It is for cases about the order of single steps: the case itself answers each lock, Binding and read, when it wants to. What dialects make
//! of objects is not in it; those cases are in `tests/scheduler`, whose `Machine` reads objects as the live binder does.

mod gang;
mod lock;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::{
    device::{Allocation, Answer, Card, Lock, LockName, LockNeed},
    scheduling::{
        AgentFailure, Claim, Computed, Concern, Effect, Event, Finding, Lifetime, NodeChange, NodeInfo,
        ObjectChange, PodChange, PodInfo, PodList, QuotaChange, ReadAnswer, ReadRequest,
        event::{BindOutcome, Setback, TellOutcome},
        fixtures::{self, PROFILE, key},
        model::{
            group_condition::GroupOutcome,
            kind::Kind,
            node::{NodeLock, RequiredLocks, Signature},
            pod::Placer,
        },
        plan::preemption::Rules,
        scheduler::{Pace, Scheduler, Settings},
        world::ledger::Commitment,
    },
};

const NODE: &str = "n1";
pub(super) const EXPIRY: SignedDuration = SignedDuration::from_mins(5);

/// A pod that asks for so many MiB of a card.
pub(super) fn pod(name: &str, memory: u64, created: Timestamp) -> PodInfo {
    PodInfo {
        lifetime: Lifetime { created, leaving: None },
        ..fixtures::pod(name, Claim::Place(Arc::new(fixtures::ask(1, memory, 0))))
    }
}

/// What the scheduler wants done, and for which pod.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Sent<'a> {
    Lock(&'a str),
    Unlock,
    Bind(&'a str),
    Read(&'a str),
    ReadNode,
    ReadHolder,
    CompareClaims,
    Told(&'a str),
    Unschedulable(&'a str),
    FailedAllocation(&'a str),
    Silent(&'a str),
    Waiting(&'a str),
    Excess(&'a str),
    Unread(&'a str),
    Unassigned(&'a str),
    CountFindings,
    Prebind(&'a str),
    Evict(&'a str),
    EvictionPostponed(&'a str),
    RollBack(&'a str),
    Withdraw(&'a str),
    Nominate(&'a str, bool),
    Preempt(&'a str),
    Drift,
    Group(GroupOutcome),
}

fn lock_name() -> LockName {
    LockName { profile: PROFILE.into(), key: "lock".into() }
}

/// A failure after which the server asks to be left alone for so many seconds.
pub(super) fn setback(why: &str, wait: i64) -> Setback {
    Setback { why: why.to_owned(), wait: SignedDuration::from_secs(wait) }
}

/// With preemption and gangs.
fn settings() -> Settings {
    Settings {
        lock_expiry: EXPIRY,
        preemption: Some(Rules::default()),
        gangs: Some(SignedDuration::from_mins(10)),
        ..fixtures::settings()
    }
}

/// A scheduler and its world.
pub(super) struct Play {
    pub(super) scheduler: Scheduler,
    pub(super) now: Timestamp,
    version: u64,
    lock: Lock,
    signature: Signature,
    /// The version of the last request to give the lock back.
    release: Option<String>,
    effects: Vec<Effect>,
    /// Names that have been handed out.
    names: Vec<&'static str>,
}

impl Play {
    pub(super) fn new() -> Self {
        Self::of_locks(Signature::Time)
    }

    /// A scheduler whose locks say this when they are taken.
    pub(super) fn of_locks(signature: Signature) -> Self {
        let mut play = Self::unlisted(signature);
        for kind in Kind::ALL {
            play.happens(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
        }
        play
    }

    /// A scheduler that decides one pod after the other.
    pub(super) fn one_by_one() -> Self {
        let mut play = Self::of_locks(Signature::Time);
        let settings = Settings { pace: Pace::OneByOne, ..settings() };
        let known = play.scheduler.view().recount();
        play.scheduler = Scheduler::new(settings);
        for event in known {
            play.happens(event);
        }
        play
    }

    fn unlisted(signature: Signature) -> Self {
        let settings = settings();
        let mut play = Self {
            scheduler: Scheduler::new(settings),
            now: "2026-11-21T12:00:00Z".parse().unwrap(),
            version: 100,
            lock: Lock::Free,
            signature,
            release: None,
            effects: Vec::new(),
            names: Vec::new(),
        };
        let node = play.node();
        play.happens(Event::Pod(PodChange::Listed(PodList::default())));
        play.happens(Event::Node(NodeChange::Listed(vec![node])));
        play.happens(Event::Quota(QuotaChange::Listed(Vec::new())));
        play
    }

    pub(super) fn happens(&mut self, event: Event) {
        self.scheduler.observe(event, self.now);
        self.settle();
        for _ in 0..1000 {
            if self.scheduler.next_deadline().is_none_or(|at| at > self.now) {
                return;
            }
            self.settle();
        }
        panic!("its next deadline has passed, however often it settles");
    }

    fn settle(&mut self) {
        for effect in self.scheduler.settle(self.now) {
            if let Effect::ReleaseLock { resource_version, .. } = &effect {
                self.release = Some(resource_version.clone());
            }
            if let Effect::RenewMix(renewal) = effect {
                self.scheduler.observe(Event::Computed(Computed::Mix(renewal.skip())), self.now);
                continue;
            }
            self.effects.push(effect);
        }
    }

    /// Lets time run, second by second, as deadlines come.
    pub(super) fn wait(&mut self, time: SignedDuration) {
        for _ in 0..time.as_secs() {
            self.now += SignedDuration::from_secs(1);
            self.happens(Event::Tick);
        }
    }

    fn name(&mut self, name: &str) -> &'static str {
        if let Some(known) = self.names.iter().find(|known| **known == name) {
            return known;
        }
        let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
        self.names.push(leaked);
        leaked
    }

    /// What is to be done since this was last asked; the audit's reads of what is not seen are left out.
    pub(super) fn sent(&mut self) -> Vec<Sent<'static>> {
        let effects = std::mem::take(&mut self.effects);
        effects.iter().map(|effect| self.short(effect)).collect()
    }

    /// As [`Self::sent`], with `next` for that pod's name, and of that pod alone.
    pub(super) fn take_sent(&mut self, name: &str) -> Vec<Sent<'static>> {
        let of = |sent| match sent {
            Sent::Lock(pod) if pod == name => Some(Sent::Lock("next")),
            Sent::Unschedulable(pod) if pod == name => Some(Sent::Unschedulable("next")),
            _ => None,
        };
        self.sent().into_iter().filter_map(of).collect()
    }

    /// What pods are told that they wait for.
    pub(super) fn waiting(&mut self) -> Vec<String> {
        let effects = std::mem::take(&mut self.effects).into_iter();
        let message = |effect| match effect {
            Effect::TellWaiting { wait, .. } => Some(wait.message().full),
            _ => None,
        };
        effects.filter_map(message).collect()
    }

    fn short(&mut self, effect: &Effect) -> Sent<'static> {
        match effect {
            Effect::TakeLock { pod, .. } => Sent::Lock(self.name(&pod.name)),
            Effect::ReleaseLock { .. } => Sent::Unlock,
            Effect::Bind { pod, .. } => Sent::Bind(self.name(&pod.name)),
            Effect::Read(ReadRequest::Pod(pod)) => Sent::Read(self.name(&pod.name)),
            Effect::Read(ReadRequest::Node(_)) => Sent::ReadNode,
            Effect::Read(ReadRequest::Holder { .. }) => Sent::ReadHolder,
            Effect::CompareClaims(_) => Sent::CompareClaims,
            Effect::RenewMix(_) => unreachable!("it is answered at once"),
            Effect::TellScheduled { pod, .. } => Sent::Told(self.name(&pod.name)),
            Effect::TellUnschedulable { pod, .. } => Sent::Unschedulable(self.name(&pod.name)),
            Effect::TellAgent { pod, failure: AgentFailure::Allocation, .. } => {
                Sent::FailedAllocation(self.name(&pod.name))
            }
            Effect::TellAgent { pod, failure: AgentFailure::Silence, .. } => {
                Sent::Silent(self.name(&pod.name))
            }
            Effect::TellGroup(statement) => Sent::Group(statement.condition.outcome),
            Effect::TellWaiting { pod, .. } => Sent::Waiting(self.name(&pod.name)),
            Effect::ReportFinding { of, finding } => match (of, finding) {
                (Concern::Pod(pod), Finding::Overcommitted(_)) => Sent::Excess(self.name(&pod.name)),
                (Concern::Pod(pod), Finding::Unread(_)) => Sent::Unread(self.name(&pod.name)),
                (Concern::Pod(pod), Finding::Unassigned(_)) => Sent::Unassigned(self.name(&pod.name)),
                _ => Sent::Drift,
            },
            Effect::CountFindings { .. } => Sent::CountFindings,
            Effect::Withdraw { pod, .. } => Sent::Withdraw(self.name(&pod.name)),
            Effect::Nominate { pod, node, .. } => Sent::Nominate(self.name(&pod.name), node.is_some()),
            Effect::Preempt { pod, .. } => Sent::Preempt(self.name(&pod.name)),
            Effect::EvictFromZone { eviction } => Sent::Evict(self.name(&eviction.pod.name)),
            Effect::RollBack { pod, .. } => Sent::RollBack(self.name(&pod.name)),
            Effect::TellEvictionPostponed { postponed } => {
                Sent::EvictionPostponed(self.name(&postponed.eviction.pod.name))
            }
            Effect::Prebind { pod, .. } => Sent::Prebind(self.name(&pod.name)),
        }
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    fn node(&mut self) -> NodeInfo {
        let version = self.next_version();
        self.node_of(version, self.lock.clone())
    }

    fn node_of(&self, resource_version: String, lock: Lock) -> NodeInfo {
        let card = Card { slots: 8, ..fixtures::card("GPU-0", 0, 10_000) };
        NodeInfo {
            resource_version,
            locks: RequiredLocks {
                needed: vec![NodeLock {
                    name: lock_name(),
                    state: lock,
                    signature: self.signature,
                    expiry: EXPIRY,
                    need: LockNeed::Always,
                }],
                ..RequiredLocks::default()
            },
            ..fixtures::node_offering(NODE, vec![fixtures::offer(PROFILE, vec![card])])
        }
    }

    fn sees_node(&mut self, lock: Lock) {
        self.lock = lock;
        let node = self.node();
        self.happens(Event::Node(NodeChange::Seen(Box::new(node))));
    }

    /// A node from before everything arrives late.
    pub(super) fn old_node(&mut self) {
        let node = self.node_of("1".to_owned(), Lock::Free);
        self.happens(Event::Node(NodeChange::Seen(Box::new(node))));
    }

    /// A pod that wants a little.
    pub(super) fn pod(&self, name: &str) -> PodInfo {
        pod(name, 1000, self.now)
    }

    /// That pod, bound.
    pub(super) fn bound_pod(&self, name: &str, answer: Answer) -> PodInfo {
        let uid = name.into();
        let held = self.scheduler.snapshot().ledger().get(&uid).map(|charge| charge.allocations.to_vec());
        let answered = |held| Allocation { answer, ..held };
        let holding = fixtures::holding(NODE, held.into_iter().flatten().map(answered).collect());
        PodInfo { claim: Claim::None, holding: Some(holding), ..self.pod(name) }
    }

    pub(super) fn create(&mut self, name: &str) {
        let pod = self.pod(name);
        self.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }

    /// A pod that fits nowhere.
    pub(super) fn create_large(&mut self, name: &str) {
        let pod = pod(name, 99_000, self.now);
        self.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }

    /// The pod is seen, changed like this.
    pub(super) fn changed(&mut self, name: &str, change: impl FnOnce(&mut PodInfo)) {
        let mut pod = self.pod(name);
        change(&mut pod);
        self.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }

    pub(super) fn gone(&mut self, name: &str) {
        self.happens(Event::Pod(PodChange::Gone(name.into())));
    }

    /// Another scheduler's pod is seen, bound here with so much of the card.
    pub(super) fn foreign(&mut self, name: &str, memory: u64) {
        let pod = self.foreign_pod(name, memory);
        self.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }

    /// Another scheduler's pod, bound here with so much of the card.
    pub(super) fn foreign_pod(&self, name: &str, memory: u64) -> PodInfo {
        let share = fixtures::share("GPU-0", memory, 0);
        let holding = fixtures::holding(NODE, vec![fixtures::allocation(PROFILE, share, Answer::Succeeded)]);
        let pod = self.pod(name);
        PodInfo { placer: Placer::Another, claim: Claim::None, holding: Some(holding), ..pod }
    }

    pub(super) fn ended(&mut self, name: &str) {
        self.happens(Event::Pod(PodChange::Ended(name.into())));
    }

    /// The node's agent has answered for the pod, which is still starting.
    pub(super) fn served(&mut self, name: &str, answer: Answer) {
        let pod = self.bound_pod(name, answer);
        self.happens(Event::Pod(PodChange::Seen(Box::new(pod))));
    }

    pub(super) fn node_read(&mut self) {
        self.node_read_with(Vec::new());
    }

    /// The node is read, and then these pods on it.
    pub(super) fn node_read_with(&mut self, pods: Vec<PodInfo>) {
        let node = self.node();
        self.happens(Event::Read(ReadAnswer::Node { node: NODE.into(), found: Some(Box::new(node)), pods }));
    }

    /// These are all pods that there are.
    pub(super) fn listed(&mut self, pods: Vec<PodInfo>) {
        self.happens(Event::Pod(PodChange::Listed(pods.into_iter().collect())));
    }

    pub(super) fn bind_answered(&mut self, name: &str, outcome: BindOutcome) {
        self.happens(Event::BindAnswered { pod: key(name), node: NODE.into(), outcome });
    }

    /// The pod is created, locked and bound, and all that was sent for it is forgotten.
    pub(super) fn bind(&mut self, name: &str) {
        self.create(name);
        self.lock_taken(name);
        self.bind_answered(name, BindOutcome::Bound);
        self.served(name, Answer::Awaited);
        assert!(self.sent().contains(&Sent::Told(self.name(name))));
    }

    pub(super) fn read(&mut self, name: &str, found: PodInfo) {
        self.happens(Event::Read(ReadAnswer::Pod { pod: key(name), found: Some(Box::new(found)) }));
    }

    pub(super) fn read_gone(&mut self, name: &str) {
        self.happens(Event::Read(ReadAnswer::Pod { pod: key(name), found: None }));
    }

    pub(super) fn told(&mut self, name: &str, outcome: TellOutcome) {
        self.happens(Event::Told { pod: key(name), message: String::new(), outcome });
    }

    pub(super) fn is_charged(&self, name: &str, commitment: Commitment) -> bool {
        let charge = self.scheduler.snapshot().ledger().get(&name.into());
        charge.is_some_and(|charge| charge.commitment == commitment)
    }

    /// Whether nothing is assumed of the pod any more.
    pub(super) fn is_settled(&self, name: &str) -> bool {
        !self.is_charged(name, Commitment::Assumed)
    }
}
