//! A cluster that is a few values: an API server, its nodes and a scheduler, whose writes are carried out, refused or lost.
//!
//! What must hold is judged by the pods that the API server has; the scheduler's own accounts are not asked.

#[path = "cluster/writes.rs"]
mod writes;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use berth::{
    device::{Allocation, Card},
    scheduling::{
        Claim, Computed, Effect, Event, Finding, Importance, Lifetime, NodeChange, NodeInfo, ObjectChange,
        PodChange, PodGroups, PodInfo, QuotaChange, ReadRequest, Scheduler, Stage, WaitingPodStatus,
        model::{
            gang::{Gang, GangName, Group, Member, Policy},
            kept_room::{RoomStatus, RoomTerms},
            kind::{Kind, PodGroupKind},
            pod::Deletion,
        },
        plan::preemption::Rules,
        scheduler::Settings,
        world::object::Object,
    },
};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::fixtures::{self, PROFILE, ask};

/// What is equal of all nodes, and what the scheduler is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) nodes: usize,
    pub(crate) cards: u32,
    pub(crate) slots: usize,
    pub(crate) memory: u64,
    /// For how many nodes in a row the label `rack` has one value.
    pub(crate) rack: usize,
    pub(crate) preemption: Option<Rules>,
    /// From when and for how long room is kept for pods that wait.
    pub(crate) rooms: Option<RoomTerms>,
    /// For how long the bound pods of a gang wait for the others.
    pub(crate) gangs: Option<SignedDuration>,
    /// Whether all groups are in one CompositePodGroup, [`ROOT`], and how many of them it asks for.
    pub(crate) tree: Option<usize>,
}

/// What the CompositePodGroup of all groups is called.
pub(crate) const ROOT: &str = "root";

/// A pod as the API server has it.
#[derive(Clone, Debug)]
pub(crate) struct Pod {
    pub(crate) memory: u64,
    pub(crate) priority: i32,
    pub(crate) gang: Option<String>,
    kind: PodGroupKind,
    created: Timestamp,
    version: u64,
    pub(crate) nominated: Option<Arc<str>>,
    pub(crate) room: Option<RoomStatus>,
    pub(crate) bound: Option<(Arc<str>, Vec<Allocation>)>,
    /// Whether its containers run, once it is bound.
    pub(crate) started: bool,
    pub(crate) deletion: Deletion,
}

/// The API server, its nodes, and the scheduler.
pub(crate) struct Cluster {
    pub(crate) shape: Shape,
    pub(crate) scheduler: Scheduler,
    pub(crate) now: Timestamp,
    version: u64,
    created: usize,
    pub(crate) pods: BTreeMap<String, Pod>,
    pub(crate) groups: BTreeMap<String, Gang>,
    /// The groups that were bound as a whole, and have had a pod since then.
    pub(crate) whole: BTreeSet<String>,
    pub(crate) cordoned: Vec<bool>,
    pub(crate) absent: Vec<bool>,
    pub(crate) under_way: Vec<Effect>,
    /// What the scheduler's audit has found.
    pub(crate) drifts: Vec<String>,
}

pub(crate) fn node_name(at: usize) -> Arc<str> {
    format!("node-{at}").into()
}

impl Pod {
    pub(crate) fn is_leaving(&self) -> bool {
        self.deletion != Deletion::None
    }

    fn info(&self, name: &str) -> PodInfo {
        let wants = self.bound.is_none() && !self.is_leaving();
        let holding =
            self.bound.as_ref().map(|(node, allocations)| fixtures::holding(node, allocations.clone()));
        let of_group = |group: &String| {
            let group = format!("default/{group}").into();
            Member { gang: GangName { api: self.kind.api(), group }, task: None }
        };
        let claim = if wants { Claim::Place(Arc::new(ask(1, self.memory, 0))) } else { Claim::None };
        PodInfo {
            resource_version: self.version.to_string().into(),
            importance: Importance {
                priority: self.priority,
                started: self.bound.as_ref().map(|_| self.created),
                deletion: self.deletion,
                ..Importance::default()
            },
            lifetime: Lifetime {
                created: self.created,
                leaving: self.is_leaving().then(|| self.created.into()),
            },
            status: Arc::new(WaitingPodStatus {
                nominated: self.nominated.clone(),
                room: self.room,
                ..WaitingPodStatus::default()
            }),
            stage: if self.bound.is_some() && self.started { Stage::Running } else { Stage::Pending },
            holding,
            groups: PodGroups::of(self.gang.as_ref().map(of_group), None),
            ..fixtures::pod(name, claim)
        }
    }
}

impl Shape {
    fn scheduler(&self) -> Scheduler {
        let (preemption, rooms, gangs) = (self.preemption, self.rooms, self.gangs);
        Scheduler::new(Settings { preemption, rooms, gangs, ..fixtures::settings() })
    }

    /// The kind of the groups of pods.
    fn groups(&self) -> PodGroupKind {
        if self.tree.is_some() { PodGroupKind::Kubernetes } else { PodGroupKind::Volcano }
    }

    pub(crate) fn rack_of(&self, at: usize) -> usize {
        at / self.rack
    }
}

impl Cluster {
    pub(crate) fn new(shape: Shape, groups: BTreeMap<String, Gang>) -> Self {
        let mut cluster = Self {
            shape,
            scheduler: shape.scheduler(),
            now: Timestamp::UNIX_EPOCH,
            version: 1,
            created: 0,
            pods: BTreeMap::new(),
            groups,
            whole: BTreeSet::new(),
            cordoned: vec![false; shape.nodes],
            absent: vec![false; shape.nodes],
            under_way: Vec::new(),
            drifts: Vec::new(),
        };
        cluster.begin();
        cluster
    }

    fn node(&self, at: usize) -> NodeInfo {
        let card = |index: u32| Card {
            slots: u32::try_from(self.shape.slots).unwrap(),
            ..fixtures::card(&format!("GPU-{at}-{index}"), index, self.shape.memory)
        };
        let offer = fixtures::offer(PROFILE, (0..self.shape.cards).map(card).collect());
        NodeInfo {
            resource_version: self.version.to_string(),
            cordoned: self.cordoned[at],
            labels: [("rack".to_owned(), self.shape.rack_of(at).to_string())].into(),
            ..fixtures::node_offering(&node_name(at), vec![offer])
        }
    }

    fn present(&self) -> impl Iterator<Item = usize> {
        (0..self.shape.nodes).filter(|at| !self.absent[*at])
    }

    /// The nodes that take pods.
    pub(crate) fn open(&self) -> impl Iterator<Item = usize> {
        self.present().filter(|at| !self.cordoned[*at])
    }

    /// A scheduler begins, and is shown everything.
    fn begin(&mut self) {
        self.scheduler = self.shape.scheduler();
        self.tell(Event::Node(NodeChange::Listed(self.present().map(|at| self.node(at)).collect())));
        self.tell(Event::Quota(QuotaChange::Listed(Vec::new())));
        for kind in Kind::ALL {
            let parent: Option<Arc<str>> = self.shape.tree.map(|_| format!("default/{ROOT}").into());
            let group = |of: PodGroupKind, name: &str, gang: &Gang, parent: Option<Arc<str>>| {
                let group = Group { parent, ..Group::of(Policy::Gang(Arc::new(gang.clone()))) };
                Object::PodGroup(of, format!("default/{name}").into(), Arc::new(group))
            };
            let of = self.shape.groups();
            let groups = self.groups.iter().filter(|_| *kind == Kind::PodGroup(of));
            let groups = groups.map(|(name, gang)| group(of, name, gang, parent.clone()));
            let root = self.shape.tree.filter(|_| *kind == Kind::PodGroup(PodGroupKind::Composite));
            let root =
                root.map(|min| group(PodGroupKind::Composite, ROOT, &Gang { min, ..Gang::default() }, None));
            self.tell(Event::Object(ObjectChange::Listed(*kind, groups.chain(root).collect())));
        }
        self.tell(Event::Pod(PodChange::Listed(
            self.pods.iter().map(|(name, pod)| pod.info(name)).collect(),
        )));
    }

    /// The scheduler dies; what was under way is carried out where the bits of this number say so. Another one begins.
    pub(crate) fn restart(&mut self, carried_out: u64) {
        for (at, effect) in std::mem::take(&mut self.under_way).into_iter().enumerate() {
            if carried_out >> (at % 64) & 1 == 1 {
                self.carry_out(&effect);
            }
        }
        self.begin();
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.look_at_groups();
        self.scheduler.observe(event, self.now);
        for _ in 0..1000 {
            for effect in self.scheduler.settle(self.now) {
                match effect {
                    Effect::ReportFinding { of, finding: Finding::Drift(drift) } => {
                        self.drifts.push(format!("{of:?}: {drift}"));
                    }
                    Effect::RenewMix(renewal) => {
                        self.scheduler.observe(Event::Computed(Computed::Mix(renewal.skip())), self.now);
                    }
                    effect if is_awaited(&effect) => self.under_way.push(effect),
                    _ => {}
                }
            }
            if self.scheduler.next_deadline().is_none_or(|at| at > self.now) {
                return;
            }
        }
        panic!("its next deadline has passed, however often it settles");
    }

    fn look_at_groups(&mut self) {
        for (name, gang) in &self.groups {
            let bound = |pod: &&Pod| pod.bound.is_some() && pod.gang.as_ref() == Some(name);
            match self.pods.values().filter(bound).count() {
                0 => drop(self.whole.remove(name)),
                bound if bound >= gang.min => drop(self.whole.insert(name.clone())),
                _ => {}
            }
        }
        let Some(least) = self.shape.tree else { return };
        let count = |name: &String| {
            self.pods.values().filter(|pod| pod.bound.is_some() && pod.gang.as_ref() == Some(name)).count()
        };
        if self.groups.keys().all(|name| count(name) == 0) {
            self.whole.remove(ROOT);
        } else if self.groups.iter().filter(|(name, gang)| count(name) >= gang.min).count() >= least {
            self.whole.insert(ROOT.to_owned());
        }
    }

    /// A pod is created; its name.
    pub(crate) fn create(&mut self, memory: u64, priority: i32, gang: Option<String>) -> String {
        self.created += 1;
        self.version += 1;
        let name = format!("pod-{}", self.created);
        let pod = Pod {
            memory,
            priority,
            gang,
            kind: self.shape.groups(),
            created: self.now,
            version: self.version,
            nominated: None,
            room: None,
            bound: None,
            started: false,
            deletion: Deletion::None,
        };
        self.pods.insert(name.clone(), pod);
        self.show(&name);
        name
    }

    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut Pod)) -> String {
        self.version += 1;
        if let Some(pod) = self.pods.get_mut(name) {
            change(pod);
            pod.version = self.version;
        }
        self.version.to_string()
    }

    pub(crate) fn show(&mut self, name: &str) {
        if let Some(pod) = self.pods.get(name) {
            let info = pod.info(name);
            self.tell(Event::Pod(PodChange::Seen(Box::new(info))));
        }
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.pods.remove(name);
        self.tell(Event::Pod(PodChange::Ended(name.into())));
    }

    /// A user deletes a pod, which takes its time to end if it is bound.
    pub(crate) fn delete(&mut self, at: usize) {
        let Some(name) = self.pods.keys().nth(at % self.pods.len().max(1)).cloned() else { return };
        if self.pods[&name].bound.is_none() {
            return self.remove(&name);
        }
        self.change(&name, |pod| pod.deletion = Deletion::Requested);
        self.show(&name);
    }

    /// A pod that is being deleted has ended.
    pub(crate) fn end(&mut self, at: usize) {
        let leaving = self.leaving();
        if let Some(name) = leaving.get(at % leaving.len().max(1)) {
            self.remove(name);
        }
    }

    pub(crate) fn cordon(&mut self, at: usize, to: bool) {
        self.cordoned[at] = to;
        self.show_node(at);
    }

    fn show_node(&mut self, at: usize) {
        self.version += 1;
        if !self.absent[at] {
            let node = self.node(at);
            self.tell(Event::Node(NodeChange::Seen(Box::new(node))));
        }
    }

    /// A node vanishes with its pods.
    pub(crate) fn lose_node(&mut self, at: usize) {
        self.absent[at] = true;
        self.tell(Event::Node(NodeChange::Gone(node_name(at))));
        let there = |pod: &Pod| pod.bound.as_ref().is_some_and(|(node, _)| *node == node_name(at));
        let gone: Vec<_> =
            self.pods.iter().filter(|(_, pod)| there(pod)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            self.pods.remove(&name);
            self.tell(Event::Pod(PodChange::Gone(name.as_str().into())));
        }
    }

    pub(crate) fn restore_node(&mut self, at: usize) {
        self.absent[at] = false;
        self.show_node(at);
    }

    pub(crate) fn leaving(&self) -> Vec<String> {
        let leaving = self.pods.iter().filter(|(_, pod)| pod.is_leaving());
        leaving.map(|(name, _)| name.clone()).collect()
    }

    /// What is held of each card by these pods: slots and memory.
    pub(crate) fn used(&self, counts: impl Fn(&Pod) -> bool) -> BTreeMap<String, (usize, u64)> {
        let mut used: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        let bound = self.pods.values().filter(|pod| counts(pod)).filter_map(|pod| pod.bound.as_ref());
        for share in bound.flat_map(|(_, held)| held).flat_map(|one| one.assignment.shares()) {
            let (slots, memory) = used.entry(share.card.to_string()).or_default();
            *slots += 1;
            *memory += share.memory.get();
        }
        used
    }

    pub(crate) fn judge_cards(&self) -> Result<(), TestCaseError> {
        for (card, (slots, memory)) in self.used(|_| true) {
            prop_assert!(
                slots <= self.shape.slots && memory <= self.shape.memory,
                "{card} has {memory} MiB given away in {slots} slots"
            );
        }
        Ok(())
    }
}

/// Whether it is a write or a read that has a consequence here.
fn is_awaited(effect: &Effect) -> bool {
    matches!(
        effect,
        Effect::Bind { .. }
            | Effect::Nominate { .. }
            | Effect::Preempt { .. }
            | Effect::RollBack { .. }
            | Effect::Read(ReadRequest::Pod(_) | ReadRequest::Node(_))
    )
}
