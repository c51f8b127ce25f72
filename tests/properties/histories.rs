//! Whatever happens, and in whichever order writes are answered: no card is given away while a victim still holds it, a pod for which
//! others were deleted gets a place, and none waits behind a nomination that helps no pod.
//!
//! The API server and its nodes are a few values that are changed by what the scheduler wants done; the scheduler's own accounts are not
//! asked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use berth::{
    device::{Allocation, Answer, Card, CoreUnit, Cores, Health, InitPhase, Inventory, MiB, Mode, Slicing},
    scheduling::{
        BindOutcome, Claim, Effect, Event, Footprint, Holding, Importance, NodeInfo, Offer, PodInfo, PodKey,
        PreemptionPolicy, Scheduler, Setback, Stage, WriteOutcome,
        object::Kind,
        pod::{Binding, Deletion, Placer},
        preemption::Rules,
        scheduler::Settings,
        score::ScoreWeights,
        tdm::RevocableZones,
    },
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::worlds::ask;

const PROFILE: &str = "test";
const NODES: usize = 2;
const CARDS: u32 = 2;
const SLOTS: usize = 4;
const MEMORY: u64 = 10;

/// Something that happens. Numbers choose among what there is, modulo its count.
#[derive(Clone, Debug)]
enum Step {
    /// A pod is created: so much memory of one card, and its priority.
    Create(u64, i32),
    /// A user deletes a pod, which takes its time to end if it is bound.
    Delete(usize),
    /// A pod that is being deleted has ended.
    End(usize),
    /// A write is carried out and answered.
    Answer(usize),
    /// A write is not carried out, and its answer says so.
    Refuse(usize),
    /// A write is carried out, and its answer is lost.
    Lose(usize),
    Cordon(usize, bool),
    Pass(i64),
    /// The scheduler is started again; each write that is under way is carried out or not.
    Restart(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (2..=MEMORY, 0..4_i32).prop_map(|(memory, priority)| Step::Create(memory, priority)),
        2 => any::<usize>().prop_map(Step::Delete),
        3 => any::<usize>().prop_map(Step::End),
        12 => any::<usize>().prop_map(Step::Answer),
        2 => any::<usize>().prop_map(Step::Refuse),
        2 => any::<usize>().prop_map(Step::Lose),
        1 => (0..NODES, any::<bool>()).prop_map(|(node, to)| Step::Cordon(node, to)),
        3 => (1..12_i64).prop_map(Step::Pass),
        1 => any::<u64>().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 10..80)
}

/// A pod as the API server has it.
#[derive(Clone, Debug)]
struct Pod {
    memory: u64,
    priority: i32,
    created: Timestamp,
    version: u64,
    nominated: Option<Arc<str>>,
    bound: Option<(Arc<str>, Vec<Allocation>)>,
    deletion: Deletion,
}

/// The API server, its nodes, and the scheduler.
struct World {
    scheduler: Scheduler,
    now: Timestamp,
    version: u64,
    created: usize,
    pods: BTreeMap<String, Pod>,
    cordoned: [bool; NODES],
    under_way: Vec<Effect>,
}

fn node_name(at: usize) -> Arc<str> {
    format!("node-{at}").into()
}

fn key(name: &str) -> PodKey {
    PodKey { uid: name.into(), namespace: "default".into(), name: name.into() }
}

fn setback() -> Setback {
    Setback { why: "busy".to_owned(), wait: SignedDuration::ZERO }
}

fn scheduler() -> Scheduler {
    Scheduler::new(Settings {
        device_resources: BTreeSet::new(),
        lock_expiry: SignedDuration::from_mins(5),
        weights: ScoreWeights::default(),
        preemption: Some(Rules::default()),
        zones: RevocableZones::default(),
        gangs: None,
    })
}

impl Pod {
    fn is_leaving(&self) -> bool {
        self.deletion != Deletion::None
    }

    fn info(&self, name: &str) -> PodInfo {
        let wants = self.bound.is_none() && !self.is_leaving();
        let holding = self.bound.as_ref().map(|(node, allocations)| Holding {
            node: node.clone(),
            allocations: allocations.clone(),
            unassigned: Vec::new(),
            init: InitPhase::Done,
            takeable: Vec::new(),
            binding: Binding::Bound,
        });
        PodInfo {
            key: key(name),
            resource_version: self.version.to_string(),
            importance: Importance {
                priority: self.priority,
                started: self.bound.as_ref().map(|_| self.created),
                deletion: self.deletion,
                ..Importance::default()
            },
            preemption_policy: PreemptionPolicy::default(),
            created: self.created,
            nominated: self.nominated.clone(),
            placer: Placer::Berth,
            leaving: self.is_leaving().then_some(self.created),
            stage: if self.bound.is_some() { Stage::Running } else { Stage::Pending },
            claim: if wants { Claim::Place(Arc::new(ask(PROFILE, 1, self.memory))) } else { Claim::None },
            holding,
            footprint: Arc::new(Footprint { namespace: "default".into(), ..Footprint::default() }),
            origin: None,
            gang: None,
            member: None,
            told: None,
        }
    }
}

impl World {
    fn new() -> Self {
        let now = Timestamp::UNIX_EPOCH;
        let mut world = Self {
            scheduler: scheduler(),
            now,
            version: 1,
            created: 0,
            pods: BTreeMap::new(),
            cordoned: [false; NODES],
            under_way: Vec::new(),
        };
        world.begin();
        world
    }

    fn node(&self, at: usize) -> NodeInfo {
        let card = |index: u32| Card {
            id: format!("GPU-{at}-{index}").as_str().into(),
            index,
            slots: u32::try_from(SLOTS).unwrap(),
            memory: MiB::new(MEMORY),
            cores: Cores::WHOLE,
            model: "NVIDIA A100".into(),
            numa: 0,
            mode: Mode::Soft,
            slicing: Slicing::Unknown,
            health: Health::Healthy,
        };
        let inventory = Some(Inventory::new((0..CARDS).map(card).collect()));
        let offer = Offer { core_unit: CoreUnit::Percent, profile: PROFILE.into(), inventory };
        let (name, cordoned) = (node_name(at), self.cordoned[at]);
        NodeInfo {
            name,
            resource_version: self.version.to_string(),
            cordoned,
            offers: vec![offer],
            ..NodeInfo::default()
        }
    }

    /// A scheduler begins, and is shown everything.
    fn begin(&mut self) {
        self.scheduler = scheduler();
        self.tell(Event::Nodes((0..NODES).map(|at| self.node(at)).collect()));
        self.tell(Event::Quotas(Vec::new()));
        for kind in Kind::ALL {
            self.tell(Event::Listed(*kind, Vec::new()));
        }
        self.tell(Event::Pods(self.pods.iter().map(|(name, pod)| pod.info(name)).collect()));
    }

    fn tell(&mut self, event: Event) {
        self.scheduler.observe(event, self.now);
        for _ in 0..1000 {
            let wanted = self.scheduler.settle(self.now).into_iter();
            self.under_way.extend(wanted.filter(|effect| is_write(effect) || is_read(effect)));
            if self.scheduler.next_deadline().is_none_or(|at| at > self.now) {
                return;
            }
        }
        panic!("its next deadline has passed, however often it settles");
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Pod)) -> String {
        self.version += 1;
        if let Some(pod) = self.pods.get_mut(name) {
            change(pod);
            pod.version = self.version;
        }
        self.version.to_string()
    }

    fn show(&mut self, name: &str) {
        if let Some(pod) = self.pods.get(name) {
            let info = pod.info(name);
            self.tell(Event::PodSeen(Box::new(info)));
        }
    }

    fn remove(&mut self, name: &str) {
        self.pods.remove(name);
        self.tell(Event::PodEnded(name.into()));
    }

    fn take(&mut self, at: usize) -> Option<Effect> {
        (!self.under_way.is_empty()).then(|| self.under_way.remove(at % self.under_way.len()))
    }

    /// Carries a write out, as the API server does; returns the version that the pod has since then.
    fn carry_out(&mut self, effect: &Effect) -> String {
        match effect {
            Effect::Bind { pod, node, allocations, .. } => {
                let answered = |one: &Allocation| Allocation { answer: Answer::Succeeded, ..one.clone() };
                let allocations = allocations.iter().map(answered).collect();
                let is_free = |one: &Pod| one.bound.is_none() && !one.is_leaving();
                if self.pods.get(&*pod.name).is_some_and(is_free) {
                    return self.change(&pod.name, |one| one.bound = Some((node.clone(), allocations)));
                }
                String::new()
            }
            Effect::Nominate { pod, node } => self.change(&pod.name, |one| one.nominated.clone_from(node)),
            Effect::Preempt { pod, .. } => self.change(&pod.name, |one| one.deletion = Deletion::Preempted),
            _ => String::new(),
        }
    }

    /// The answer to a write or a read: of one that was carried out, of one that was refused, or none.
    fn answer(&mut self, effect: Effect, how: &How) {
        let written = |version| match how {
            How::Done(_) => WriteOutcome::Written { resource_version: version },
            How::Refused => WriteOutcome::Refused("no".to_owned()),
            How::Lost => WriteOutcome::Failed(setback()),
        };
        let version = if let How::Done(version) = how { version.clone() } else { String::new() };
        let name = match effect {
            Effect::Bind { pod, node, .. } => {
                let is_bound = self.pods.get(&*pod.name).is_some_and(|one| one.bound.is_some());
                let outcome = match how {
                    How::Done(_) if is_bound => BindOutcome::Bound,
                    How::Lost => BindOutcome::Doubtful(setback()),
                    How::Done(_) | How::Refused => BindOutcome::Refused("no".to_owned()),
                };
                let name = pod.name.clone();
                self.tell(Event::BindAnswered { pod, node, outcome });
                name
            }
            Effect::Nominate { pod, node } => {
                let name = pod.name.clone();
                self.tell(Event::Nominated { pod, node, outcome: written(version) });
                name
            }
            Effect::Preempt { pod, preemptor, .. } => {
                let name = pod.name.clone();
                self.tell(Event::Preempted { pod, preemptor, outcome: written(version) });
                name
            }
            Effect::ReadPod { pod } => {
                let found = self.pods.get(&*pod.name).map(|one| Box::new(one.info(&pod.name)));
                let name = pod.name.clone();
                self.tell(Event::PodRead { pod, found });
                name
            }
            Effect::ReadNode { node } => {
                let at = (0..NODES).find(|at| node_name(*at) == node).unwrap();
                let here = |pod: &Pod| pod.bound.as_ref().is_some_and(|(bound, _)| *bound == node);
                let pods = self.pods.iter().filter(|(_, pod)| here(pod));
                let pods = pods.map(|(name, pod)| pod.info(name)).collect();
                let found = Some(Box::new(self.node(at)));
                return self.tell(Event::NodeRead { node, found, pods });
            }
            _ => return,
        };
        self.show(&name);
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Create(memory, priority) => {
                self.created += 1;
                self.version += 1;
                let name = format!("pod-{}", self.created);
                let (created, version) = (self.now, self.version);
                let (nominated, bound, deletion) = (None, None, Deletion::None);
                let pod = Pod { memory, priority, created, version, nominated, bound, deletion };
                self.pods.insert(name.clone(), pod);
                self.show(&name);
            }
            Step::Delete(at) => {
                let Some(name) = self.pods.keys().nth(at % self.pods.len().max(1)).cloned() else { return };
                if self.pods[&name].bound.is_none() {
                    return self.remove(&name);
                }
                self.change(&name, |pod| pod.deletion = Deletion::Requested);
                self.show(&name);
            }
            Step::End(at) => {
                let leaving: Vec<_> = self.leaving().collect();
                if let Some(name) = leaving.get(at % leaving.len().max(1)) {
                    self.remove(name);
                }
            }
            Step::Answer(at) => {
                let Some(effect) = self.take(at) else { return };
                let version = self.carry_out(&effect);
                self.answer(effect, &How::Done(version));
            }
            Step::Refuse(at) => {
                if let Some(effect) = self.take(at) {
                    self.answer(effect, &How::Refused);
                }
            }
            Step::Lose(at) => {
                let Some(effect) = self.take(at) else { return };
                self.carry_out(&effect);
                self.answer(effect, &How::Lost);
            }
            Step::Cordon(at, to) => {
                self.cordoned[at] = to;
                self.version += 1;
                let node = self.node(at);
                self.tell(Event::NodeSeen(Box::new(node)));
            }
            Step::Pass(seconds) => {
                self.pass(seconds);
            }
            Step::Restart(carried_out) => {
                for (at, effect) in std::mem::take(&mut self.under_way).into_iter().enumerate() {
                    if carried_out >> (at % 64) & 1 == 1 {
                        self.carry_out(&effect);
                    }
                }
                self.begin();
            }
        }
    }

    fn leaving(&self) -> impl Iterator<Item = String> {
        let leaving = self.pods.iter().filter(|(_, pod)| pod.is_leaving());
        leaving.map(|(name, _)| name.clone()).collect::<Vec<_>>().into_iter()
    }

    /// Lets time run from deadline to deadline, until there is something to answer; whether all of it has run.
    fn pass(&mut self, seconds: i64) -> bool {
        let end = self.now + SignedDuration::from_secs(seconds);
        let answered = self.under_way.len();
        while self.now < end && self.under_way.len() <= answered {
            let due = self.scheduler.next_deadline().filter(|due| *due > self.now);
            self.now = due.unwrap_or(end).min(end);
            self.tell(Event::Tick);
        }
        self.now >= end
    }

    /// Every write is answered, and every pod that is being deleted ends, until nothing is left to do for three minutes.
    fn come_to_rest(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..200 {
            let idle = self.under_way.is_empty() && self.pass(180) && self.under_way.is_empty();
            while let Some(effect) = self.take(0) {
                let version = self.carry_out(&effect);
                self.answer(effect, &How::Done(version));
                self.judge_cards()?;
            }
            let leaving: Vec<_> = self.leaving().collect();
            for name in &leaving {
                self.remove(name);
            }
            if idle && leaving.is_empty() {
                return Ok(());
            }
        }
        Err(TestCaseError::fail("it does not come to rest"))
    }

    /// What is held of each card by these pods: slots and memory.
    fn used(&self, counts: impl Fn(&Pod) -> bool) -> BTreeMap<String, (usize, u64)> {
        let mut used: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        let bound = self.pods.values().filter(|pod| counts(pod)).filter_map(|pod| pod.bound.as_ref());
        for share in bound.flat_map(|(_, held)| held).flat_map(|one| one.assignment.shares()) {
            let (slots, memory) = used.entry(share.card.to_string()).or_default();
            *slots += 1;
            *memory += share.memory.get();
        }
        used
    }

    fn judge_cards(&self) -> Result<(), TestCaseError> {
        for (card, (slots, memory)) in self.used(|_| true) {
            prop_assert!(
                slots <= SLOTS && memory <= MEMORY,
                "{card} has {memory} MiB given away in {slots} slots"
            );
        }
        Ok(())
    }

    /// At rest: no pod waits that could be where only pods of lower priority, or a nomination, are in its way.
    fn judge_rest(&self) -> Result<(), TestCaseError> {
        for (name, pod) in self.pods.iter().filter(|(_, pod)| pod.bound.is_none()) {
            let used = self.used(|other| other.priority >= pod.priority);
            for at in (0..NODES).filter(|at| !self.cordoned[*at]) {
                let has_room = |index: u32| {
                    let card = format!("GPU-{at}-{index}");
                    let (slots, memory) = used.get(&card).copied().unwrap_or_default();
                    slots < SLOTS && memory + pod.memory <= MEMORY
                };
                prop_assert!(!(0..CARDS).any(has_room), "{name} waits, and node-{at} could have it");
            }
        }
        Ok(())
    }
}

/// What came of a write.
enum How {
    /// It was carried out, and the pod has this version.
    Done(String),
    Refused,
    Lost,
}

fn is_write(effect: &Effect) -> bool {
    matches!(effect, Effect::Bind { .. } | Effect::Nominate { .. } | Effect::Preempt { .. })
}

fn is_read(effect: &Effect) -> bool {
    matches!(effect, Effect::ReadPod { .. } | Effect::ReadNode { .. })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn preemption_deletes_no_pod_in_vain_and_keeps_no_pod_waiting(steps in steps()) {
        let mut world = World::new();
        for step in &steps {
            world.run(step);
            world.judge_cards()?;
        }
        for at in 0..NODES {
            world.run(&Step::Cordon(at, false));
        }
        world.come_to_rest()?;
        world.judge_rest()?;
    }
}
