//! A pod that asks for cards of two dialects: decided as a whole, locked in one write, bound once, served by two agents.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::play;
use crate::{
    device::{Allocation, Answer, Card, Dimension, Lock, LockName, LockNeed, LockOwner},
    scheduling::{
        Ask, Claim, Effect, Event, NodeChange, NodeInfo, PodChange, PodInfo, QuotaChange, ReadAnswer,
        ReadRequest,
        event::{BindOutcome, LockOutcome},
        fixtures,
        model::{
            node::{NodeLock, RequiredLocks, Signature},
            pod::Placer,
        },
        scheduler::{Scheduler, Settings},
        world::quota::{Bound, QuotaInfo, QuotaKey},
    },
};

const GPU: &str = "gpu";
const NIC: &str = "nic";

/// What stands under the lock of each dialect.
type Locked = [(&'static str, Lock); 2];

struct World {
    scheduler: Scheduler,
    now: Timestamp,
    version: u64,
}

impl World {
    /// A cluster of one node with these cards, by dialect.
    fn new(offers: &[(&str, u64)]) -> Self {
        let settings = Settings {
            lock_expiry: play::EXPIRY,
            gangs: Some(SignedDuration::from_mins(10)),
            ..fixtures::settings()
        };
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        let mut world = Self { scheduler: Scheduler::new(settings), now, version: 1 };
        for event in fixtures::lists(vec![node(offers, FREE, "1")]) {
            world.scheduler.observe(event, now);
        }
        world
    }

    fn tell(&mut self, event: Event) -> Vec<Effect> {
        self.scheduler.observe(event, self.now);
        self.scheduler.settle(self.now)
    }

    fn create(&mut self, name: &str) -> Vec<Effect> {
        self.tell(Event::Pod(PodChange::Seen(Box::new(pod(name, self.now)))))
    }

    /// Both locks of the node, as they are seen from now on.
    fn locked(&mut self, locks: Locked) -> Vec<Effect> {
        self.version += 1;
        let version = self.version.to_string();
        self.tell(Event::Node(NodeChange::Seen(Box::new(node(&BOTH, locks, &version)))))
    }

    fn locks_answered(&mut self, name: &str) -> Vec<Effect> {
        self.version += 1;
        let outcome = LockOutcome::Taken { resource_version: self.version.to_string() };
        let (pod, locks) = (pod(name, self.now).key, vec![lock_of(GPU), lock_of(NIC)]);
        self.tell(Event::LockAnswered { pod, node: "n1".into(), locks, outcome })
    }

    fn bound(&mut self, name: &str) -> Vec<Effect> {
        let (pod, outcome) = (pod(name, self.now).key, BindOutcome::Bound);
        self.tell(Event::BindAnswered { pod, node: "n1".into(), outcome })
    }

    /// The pod is seen, bound, with these answers of its agents.
    fn answered(&mut self, name: &str, answers: [Answer; 2]) -> Vec<Effect> {
        let held = self.scheduler.snapshot().ledger().get(&name.into()).unwrap().allocations.to_vec();
        let answered = held.into_iter().zip(answers).map(|(held, answer)| Allocation { answer, ..held });
        let holding = fixtures::holding("n1", answered.collect());
        let seen = PodInfo { claim: Claim::None, holding: Some(holding), ..pod(name, self.now) };
        self.tell(Event::Pod(PodChange::Seen(Box::new(seen))))
    }
}

const BOTH: [(&str, u64); 2] = [(GPU, 10_000), (NIC, 10_000)];
const FREE: Locked = [(GPU, Lock::Free), (NIC, Lock::Free)];

fn lock_of(dialect: &str) -> LockName {
    LockName { profile: dialect.into(), key: dialect.into() }
}

fn node(offers: &[(&str, u64)], locks: Locked, version: &str) -> NodeInfo {
    let offer = |(dialect, memory): &(&str, u64)| {
        let card = Card { slots: 8, ..fixtures::card(&format!("{dialect}-0"), 0, *memory) };
        fixtures::offer(dialect, vec![card])
    };
    let lock = |(dialect, state): (&str, Lock)| NodeLock {
        name: lock_of(dialect),
        state,
        signature: Signature::Pod,
        expiry: play::EXPIRY,
        need: LockNeed::Always,
    };
    NodeInfo {
        resource_version: version.to_owned(),
        locks: RequiredLocks { needed: locks.into_iter().map(lock).collect(), ..RequiredLocks::default() },
        ..fixtures::node_offering("n1", offers.iter().map(offer).collect())
    }
}

/// A pod that asks for 1000 MiB of a card of each dialect.
fn pod(name: &str, created: Timestamp) -> PodInfo {
    let one = play::pod(name, 1000, created);
    let Claim::Place(ask) = &one.claim else { unreachable!("it asks for a share") };
    let mut ask = Ask::clone(ask);
    let request = ask.devices.pop().expect("it asks for a share");
    for dialect in [GPU, NIC] {
        let mut request = request.clone();
        request.profile.name = dialect.into();
        ask.devices.push(request);
    }
    PodInfo { claim: Claim::Place(Arc::new(ask)), ..one }
}

fn held_by(name: &str, since: Timestamp) -> Lock {
    Lock::Held { owner: LockOwner::parse("default", name), since }
}

fn unschedulable(effects: &[Effect]) -> String {
    let message = effects.iter().find_map(|effect| match effect {
        Effect::TellUnschedulable { reason, .. } => Some(reason.message().full),
        _ => None,
    });
    message.unwrap_or_else(|| panic!("nothing is said: {effects:?}"))
}

#[test]
fn both_locks_are_taken_in_one_write_and_one_binding_carries_both_allocations() {
    let mut world = World::new(&BOTH);
    let effects = world.create("a");
    let [Effect::TakeLock { locks, .. }] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(*locks, [lock_of(GPU), lock_of(NIC)]);
    let effects = world.locks_answered("a");
    let [Effect::Bind { allocations, .. }] = &effects[..] else { panic!("{effects:?}") };
    let shares = allocations.iter().flat_map(|one| one.assignment.shares());
    let cards: Vec<_> = shares.map(|share| share.card.as_str()).collect();
    assert_eq!(cards, ["gpu-0", "nic-0"]);
    assert_eq!(allocations.iter().map(|one| one.profile.as_str()).collect::<Vec<_>>(), [GPU, NIC]);
}

#[test]
fn a_node_that_lacks_the_cards_of_one_dialect_is_not_taken() {
    let effects = World::new(&[(GPU, 10_000)]).create("a");
    assert!(unschedulable(&effects).starts_with("0/1 nodes are available: "), "{effects:?}");
    let effects = World::new(&[(GPU, 10_000), (NIC, 500)]).create("a");
    let message = unschedulable(&effects);
    assert!(message.contains("nearest: n1 lacks 500 MiB on nic-0; fits with at most 500 MiB"), "{message}");
}

#[test]
fn while_one_lock_is_held_neither_is_taken() {
    let mut world = World::new(&BOTH);
    let holder = PodInfo { claim: Claim::None, placer: Placer::Another, ..pod("other", world.now) };
    world.tell(Event::Pod(PodChange::Seen(Box::new(holder))));
    let held = held_by("other", world.now);
    world.locked([(GPU, Lock::Free), (NIC, held)]);
    assert_eq!(world.create("a"), []);
    let effects = world.locked(FREE);
    assert!(matches!(&effects[..], [Effect::TakeLock { locks, .. }] if locks.len() == 2), "{effects:?}");
}

#[test]
fn a_pod_that_has_lost_one_of_its_locks_takes_both_again() {
    let mut world = World::new(&BOTH);
    world.create("a");
    let own = held_by("a", world.now);
    world.locked([(GPU, own), (NIC, Lock::Free)]);
    let effects = world.tell(Event::LockAnswered {
        pod: pod("a", world.now).key,
        node: "n1".into(),
        locks: vec![lock_of(GPU), lock_of(NIC)],
        outcome: LockOutcome::Taken { resource_version: "1".to_owned() },
    });
    assert!(matches!(&effects[..], [Effect::TakeLock { locks, .. }] if locks.len() == 2), "{effects:?}");
}

#[test]
fn the_next_pod_goes_once_both_agents_have_answered() {
    let mut world = World::new(&BOTH);
    world.create("a");
    world.locks_answered("a");
    world.bound("a");
    world.answered("a", [Answer::Awaited; 2]);
    assert_eq!(world.create("b"), []);
    world.locked(FREE);
    assert_eq!(world.answered("a", [Answer::Succeeded, Answer::Awaited]), []);
    let effects = world.answered("a", [Answer::Succeeded; 2]);
    assert!(matches!(&effects[..], [Effect::TakeLock { pod, .. }] if *pod.name == *"b"), "{effects:?}");
}

#[test]
fn locks_of_a_dead_holder_are_given_back_in_one_write() {
    let mut world = World::new(&BOTH);
    let (one, other) = (held_by("gone", world.now), held_by("gone", world.now));
    let effects = world.locked([(GPU, one), (NIC, other)]);
    let [Effect::Read(ReadRequest::Holder { owner, since })] = &effects[..] else { panic!("{effects:?}") };
    let effects =
        world.tell(Event::Read(ReadAnswer::Holder { owner: owner.clone(), since: *since, found: None }));
    assert!(matches!(&effects[..], [Effect::ReleaseLock { locks, .. }] if locks.len() == 2), "{effects:?}");
}

#[test]
fn the_quota_of_either_dialect_bounds_the_pod() {
    for dialect in [GPU, NIC] {
        let mut world = World::new(&BOTH);
        let bound = Bound {
            profile: dialect.into(),
            dimension: Dimension::Memory,
            key: format!("limits.{dialect}").into(),
            hard: 999,
            unit: 1,
        };
        let key = QuotaKey { namespace: "default".into(), name: "team".into() };
        world.tell(Event::Quota(QuotaChange::Seen(QuotaInfo { key, bounds: vec![bound] })));
        let message = unschedulable(&world.create("a"));
        assert!(message.contains("exceeded quota: team, requested: limits."), "{message}");
        world.now += SignedDuration::from_secs(1);
    }
}
