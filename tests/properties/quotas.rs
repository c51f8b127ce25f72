//! Whatever comes, goes and is answered: no namespace beyond its quotas, and nobody waits for a quota that would have it.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use berth::{
    device::{
        Answer, Assignment, Blend, Card, CardPolicy, ContainerRequest, CoreBudget, Dimension, Health,
        InitPhase, Inventory, MemoryRequest, MiB, Mode, NodePolicy, Percent, PodRequest, Profile,
        ProfileName, Role, Selection, ShareRequest, Slicing, Tie,
    },
    scheduling::{
        Ask, BindOutcome, Claim, Constraints, Effect, Event, Holding, NodeInfo, Offer, PodInfo, PodKey,
        QuotaInfo, QuotaKey, ResourceAmounts, Scheduler, Stage, TellOutcome, Uid,
        pod::{Binding, Placer},
        quota::Bound,
        scheduler::Settings,
    },
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::worlds::{cards, pod, profile};

const NAMESPACES: [&str; 2] = ["one", "two"];

/// Something that happens in the cluster.
#[derive(Clone, Debug)]
enum Step {
    Come(usize, Box<PodRequest>),
    EndInit(usize),
    Go(usize),
    /// A quota of this number in a namespace: shares, GiB, tens of percent.
    Quota(usize, u8, [Option<u64>; 3]),
    NoQuota(usize, u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bound = || prop::option::of(0..40_u64);
    let quota = (0..2_usize, 0..2_u8, [bound(), bound(), bound()]);
    let step = prop_oneof![
        8 => (0..2_usize, pod()).prop_map(|(namespace, pod)| Step::Come(namespace, Box::new(pod))),
        2 => any::<usize>().prop_map(Step::EndInit),
        4 => any::<usize>().prop_map(Step::Go),
        3 => quota.prop_map(|(namespace, number, bounds)| Step::Quota(namespace, number, bounds)),
        1 => (0..2_usize, 0..2_u8).prop_map(|(namespace, number)| Step::NoQuota(namespace, number)),
    ];
    prop::collection::vec(step, 1..40)
}

/// The API server and the agents: what is bound is seen to be bound, and allocated at once.
struct World {
    scheduler: Scheduler,
    profile: Profile,
    now: Timestamp,
    pods: Vec<(PodInfo, PodRequest)>,
    quotas: BTreeMap<(usize, u8), [Option<u64>; 3]>,
    /// Refuses every so manieth Binding.
    refuse: u32,
    bindings: u32,
    drift: Vec<String>,
    /// Why pods wait, as it was said.
    told: Vec<String>,
}

impl World {
    fn new(profile: Profile, cards: &[Card], refuse: u32) -> Self {
        let settings = Settings { device_resources: [].into(), lock_expiry: SignedDuration::from_mins(5) };
        let (scheduler, now) = (Scheduler::new(settings), Timestamp::UNIX_EPOCH);
        let (pods, quotas, drift, told) = (Vec::new(), BTreeMap::new(), Vec::new(), Vec::new());
        let mut world = Self { scheduler, profile, now, pods, quotas, refuse, bindings: 0, drift, told };
        let (front, back) = cards.split_at(cards.len() / 2);
        let nodes =
            [("a", front), ("b", back)].map(|(name, cards)| node(name, world.profile.name.clone(), cards));
        for event in [Event::Nodes(nodes.into()), Event::Pods(vec![]), Event::Quotas(vec![])] {
            world.scheduler.observe(event, now);
        }
        world
    }

    /// Does all that there is to do; `check` is asked after every decision.
    fn settle(
        &mut self,
        check: &mut dyn FnMut(&Self) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        loop {
            let effects = self.scheduler.settle(self.now);
            check(self)?;
            if effects.is_empty() {
                return Ok(());
            }
            for effect in effects {
                self.act(effect);
            }
        }
    }

    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Bind { pod, node, assignment, .. } => {
                self.bindings += 1;
                if self.bindings.is_multiple_of(self.refuse) {
                    let outcome = BindOutcome::Refused("no".to_owned());
                    return self.observe(Event::BindAnswered { pod, node, outcome });
                }
                let profile = Some(self.profile.name.clone());
                let uid = pod.uid.clone();
                self.observe(Event::BindAnswered { pod, node: node.clone(), outcome: BindOutcome::Bound });
                if let Some((info, _)) = self.pods.iter_mut().find(|(info, _)| info.key.uid == uid) {
                    let (init, answer) = (InitPhase::Ahead, Answer::Succeeded);
                    let (assignment, binding) = (Some(assignment), Binding::Bound);
                    info.claim = Claim::None;
                    info.holding =
                        Some(Holding { node, profile, assignment, init, answer, takeable: None, binding });
                    let seen = Event::PodSeen(Box::new(info.clone()));
                    self.observe(seen);
                }
            }
            Effect::TellUnschedulable { pod, message, .. } => {
                self.told.push(message.clone());
                self.observe(Event::Told { pod, message, outcome: TellOutcome::Done });
            }
            Effect::ReportDrift { what, .. } => self.drift.push(what),
            Effect::TellScheduled { .. } => {}
            other => panic!("nothing else is to be done: {other:?}"),
        }
    }

    fn observe(&mut self, event: Event) {
        self.scheduler.observe(event, self.now);
    }

    fn step(&mut self, at: usize, step: Step) {
        match step {
            Step::Come(namespace, request) => {
                let info = arriving(at, NAMESPACES[namespace], self.profile.clone(), &request, self.now);
                self.pods.push((info.clone(), *request));
                self.observe(Event::PodSeen(Box::new(info)));
            }
            Step::EndInit(at) if !self.pods.is_empty() => {
                let at = at % self.pods.len();
                let (info, _) = &mut self.pods[at];
                if let Some(holding) = &mut info.holding {
                    holding.init = InitPhase::Done;
                    let seen = Event::PodSeen(Box::new(info.clone()));
                    self.observe(seen);
                }
            }
            Step::Go(at) if !self.pods.is_empty() => {
                let (gone, _) = self.pods.swap_remove(at % self.pods.len());
                self.observe(Event::PodGone(gone.key.uid));
            }
            Step::EndInit(_) | Step::Go(_) => {}
            Step::Quota(namespace, number, bounds) => {
                self.quotas.insert((namespace, number), bounds);
                let seen = Event::QuotaSeen(quota(namespace, number, bounds, &self.profile.name));
                self.observe(seen);
            }
            Step::NoQuota(namespace, number) => {
                self.quotas.remove(&(namespace, number));
                self.observe(Event::QuotaGone(key(namespace, number)));
            }
        }
    }

    /// What the pods of each namespace hold by the ledger, those that are being bound included: shares, MiB, percent.
    fn held(&self) -> [[u64; 3]; 2] {
        let mut held = [[0; 3]; 2];
        for (_, charge) in self.scheduler.snapshot().ledger().all() {
            let namespace = NAMESPACES.iter().position(|name| **name == *charge.namespace).unwrap();
            let peak = charge.assignment.as_ref().map_or([0; 3], |assignment| peak(assignment, charge.init));
            held[namespace] = [0, 1, 2].map(|at| held[namespace][at] + peak[at]);
        }
        held
    }

    /// Where a namespace holds more than before, it is within each of its quotas.
    fn check(&self, before: &mut [[u64; 3]; 2]) -> Result<(), TestCaseError> {
        let held = self.held();
        for ((namespace, number), bounds) in &self.quotas {
            for (at, bound) in in_units(*bounds).into_iter().enumerate() {
                let (now, before) = (held[*namespace][at], before[*namespace][at]);
                let within = bound.is_none_or(|bound| now <= bound || now <= before);
                prop_assert!(within, "quota {number} of {namespace}: {bound:?}, {before} before, {now} now");
            }
        }
        *before = held;
        Ok(())
    }
}

/// Shares, MiB and percent.
fn in_units(bounds: [Option<u64>; 3]) -> [Option<u64>; 3] {
    let [cards, memory, cores] = bounds;
    [cards, memory.map(|gib| gib * 1024), cores.map(|tens| tens * 10)]
}

/// The most that a pod holds at a moment, over all its cards; written anew, moment by moment.
fn peak(assignment: &Assignment, init: InitPhase) -> [u64; 3] {
    let mut most = [0; 3];
    for moment in 0..=assignment.containers.len() {
        let turn = assignment.containers.get(moment);
        if turn.is_some_and(|turn| turn.role != Role::Init || init == InitPhase::Done) {
            continue;
        }
        let before = assignment.containers[..moment].iter().filter(|container| container.role != Role::Init);
        let mut now = [0; 3];
        for share in before.chain(turn).flat_map(|container| &container.shares) {
            now = [now[0] + 1, now[1] + share.memory.get(), now[2] + u64::from(share.cores.get())];
        }
        most = [0, 1, 2].map(|at| most[at].max(now[at]));
    }
    most
}

fn key(namespace: usize, number: u8) -> QuotaKey {
    QuotaKey { namespace: NAMESPACES[namespace].into(), name: format!("quota-{number}").into() }
}

fn quota(namespace: usize, number: u8, bounds: [Option<u64>; 3], profile: &ProfileName) -> QuotaInfo {
    let kinds = [(Dimension::Cards, 1), (Dimension::Memory, 1024), (Dimension::Cores, 10)];
    let bound = |(hard, (dimension, unit)): (Option<u64>, (Dimension, u32))| {
        Some(Bound {
            profile: profile.clone(),
            dimension,
            key: format!("{dimension:?}").into(),
            hard: hard?,
            unit,
        })
    };
    QuotaInfo {
        key: key(namespace, number),
        bounds: bounds.into_iter().zip(kinds).filter_map(bound).collect(),
    }
}

fn node(name: &str, profile: ProfileName, cards: &[Card]) -> NodeInfo {
    NodeInfo {
        name: name.into(),
        uid: name.into(),
        resource_version: "1".to_owned(),
        labels: BTreeMap::new(),
        taints: Vec::new(),
        cordoned: false,
        allocatable: ResourceAmounts::default(),
        offers: vec![Offer { profile, inventory: Some(Inventory::new(cards.to_vec())) }],
        aliases: Vec::new(),
        expiries: Vec::new(),
        locks: Vec::new(),
    }
}

fn arriving(at: usize, namespace: &str, profile: Profile, request: &PodRequest, now: Timestamp) -> PodInfo {
    let uid: Uid = format!("pod-{at}").into();
    let ask = Ask {
        profile,
        request: request.clone(),
        resources: ResourceAmounts::default(),
        constraints: Constraints::default(),
    };
    PodInfo {
        key: PodKey { uid: uid.clone(), namespace: namespace.into(), name: uid },
        resource_version: "1".to_owned(),
        priority: 0,
        placer: Placer::Berth,
        created: now,
        stage: Stage::Pending,
        leaving: None,
        claim: Claim::Place(Arc::new(ask)),
        holding: None,
        resources: Arc::default(),
        told: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_namespace_is_put_beyond_its_quota(
        cards in cards(),
        profile in profile(),
        steps in steps(),
        refuse in 2..9_u32,
    ) {
        let mut world = World::new(profile, &cards, refuse);
        let mut before = world.held();
        for (at, step) in steps.into_iter().enumerate() {
            world.step(at, step);
            world.settle(&mut |world| world.check(&mut before))?;
        }
        // Long enough for what was refused to be tried again, and for the audit, which asks of every pod that waits whether it must.
        for _ in 0..8 {
            world.now += SignedDuration::from_secs(70);
            world.observe(Event::Tick);
            world.settle(&mut |world| world.check(&mut before))?;
        }
        prop_assert_eq!(&world.drift, &Vec::<String>::new());
    }
}

#[test]
fn a_quota_in_units_is_left_in_mebibytes() {
    let profile: ProfileName = "even".into();
    let mut snapshot = berth::scheduling::Snapshot::default();
    snapshot.set_quota(quota(0, 0, [None, Some(4), None], &profile));
    let left = snapshot.quotas().left("one", &profile);
    assert_eq!((left.memory, left.cards, left.cores), (Some(MiB::new(4096)), None, None));
    assert_eq!(snapshot.quotas().left("two", &profile).memory, None);
}

/// A node of two large cards, and nobody whose Binding is refused.
fn roomy() -> World {
    let card = |index: u32| Card {
        id: format!("GPU-{index}").into(),
        index,
        slots: 10,
        memory: MiB::new(40_960),
        cores: Percent::WHOLE,
        model: "NVIDIA A100".into(),
        numa: 0,
        mode: Mode::Soft,
        slicing: Slicing::Unknown,
        health: Health::Healthy,
    };
    let profile = Profile {
        name: "even".into(),
        blend: Blend::Even,
        tie: Tie::Highest,
        core_budget: CoreBudget::Registered,
    };
    World::new(profile, &[card(0), card(1)], u32::MAX)
}

/// Each container by its role and its memory.
fn asking(containers: &[(Role, MemoryRequest)]) -> Box<PodRequest> {
    let container = |&(role, memory): &(Role, MemoryRequest)| ContainerRequest {
        role,
        share: Some(ShareRequest { cards: NonZeroU32::MIN, memory, cores: Percent::NONE }),
    };
    Box::new(PodRequest {
        containers: containers.iter().map(container).collect(),
        selection: Selection::default(),
        choice: CardPolicy::Binpack.into(),
        node_policy: NodePolicy::Binpack,
        marks: [].into(),
        shuns: [].into(),
    })
}

fn gib(gib: u64) -> MemoryRequest {
    MemoryRequest::Exact(MiB::new(gib * 1024))
}

impl World {
    fn go(&mut self, steps: impl IntoIterator<Item = Step>) {
        for step in steps {
            let at = self.pods.len();
            self.step(at, step);
            self.settle(&mut |_| Ok(())).unwrap();
        }
    }

    fn bound(&self) -> usize {
        self.pods.iter().filter(|(info, _)| info.holding.is_some()).count()
    }
}

#[test]
fn what_init_containers_give_back_is_there_for_the_next_pod() {
    let mut world = roomy();
    let first = asking(&[(Role::Init, gib(4)), (Role::App, gib(1))]);
    let second = asking(&[(Role::App, gib(4))]);
    world.go([Step::Quota(0, 0, [None, Some(5), None]), Step::Come(0, first), Step::Come(0, second)]);
    assert_eq!(world.bound(), 1);
    assert_eq!(
        world.told,
        ["exceeded quota: quota-0, requested: Memory=4, used: Memory=4, limited: Memory=5".to_owned()]
    );
    world.go([Step::EndInit(0)]);
    assert_eq!(world.bound(), 2);
}

#[test]
fn a_quota_binds_its_own_namespace_and_only_while_it_is_there() {
    let mut world = roomy();
    let pod = || asking(&[(Role::App, gib(4))]);
    world.go([Step::Quota(0, 0, [None, Some(4), None]), Step::Quota(0, 1, [Some(9), None, None])]);
    world.go([Step::Come(0, pod()), Step::Come(0, pod()), Step::Come(1, pod())]);
    assert_eq!(world.bound(), 2, "one of each namespace");
    world.go([Step::Quota(0, 0, [None, Some(3), None]), Step::Go(2)]);
    assert_eq!(world.bound(), 1, "a quota that shrinks takes nothing away");
    world.go([Step::NoQuota(0, 0)]);
    assert_eq!(world.bound(), 2);
}

#[test]
fn a_part_of_a_card_counts_by_the_card_that_serves() {
    let mut world = roomy();
    let half = || asking(&[(Role::App, MemoryRequest::Part(Percent::new(50)))]);
    world.go([Step::Quota(0, 0, [None, Some(30), None]), Step::Come(0, half()), Step::Come(0, half())]);
    assert_eq!(world.bound(), 1);
    assert_eq!(
        world.told,
        [
            "0/2 nodes are available: 2 GPU quota of the namespace exceeded. Quota quota-0: Memory=20 of 30 used."
        ]
    );
    world.go([Step::Quota(0, 0, [None, Some(40), None])]);
    assert_eq!(world.bound(), 2);
}
