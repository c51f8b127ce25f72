//! A scheduler with the objects that it is shown and the time that it is told.
//!
//! It is for cases about what becomes of objects: it reads them as the live binder does, answers locks and Bindings by itself, and looks at what users
//! are told who are told of their own objects alone. Cases about the order of single steps are unit tests, on `Play`.

use std::{collections::BTreeMap, sync::Arc};

use super::discreet::check;
use berth::{
    cluster::{
        Reader,
        read::{devices, reservation::reservation, share_templates},
    },
    config::Config,
    device::{Lock, LockOwner},
    scheduling::{
        Attempt, BindOutcome, Computed, Effect, Event, LockOutcome, Measure, NodeChange, NodeInfo,
        ObjectChange, PendingReason, PodChange, PodKey, QuotaChange, ReadAnswer, ReadRequest, Scheduler,
        TellOutcome,
        model::kind::{Kind, PodGroupKind},
        scheduler::Settings,
        world::object::Object,
    },
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// A scheduler that has seen empty lists, or the nodes given.
pub(crate) struct Machine {
    scheduler: Scheduler,
    reader: Reader,
    now: Timestamp,
    version: u64,
    /// The revocable zone that the Binding of a pod has stated.
    zones: BTreeMap<String, Option<Arc<str>>>,
}

/// Any time.
pub(crate) const START: i64 = 1_800_000_000;

impl Machine {
    pub(crate) fn new(config: &Config, nodes: &[Value], pods: &[Value]) -> Self {
        let mut machine = Self::begin(config, nodes, pods);
        for kind in Kind::STORAGE {
            machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
        }
        machine.serve_none(Kind::DEVICES_BY_TYPE);
        machine
    }

    /// A scheduler for which kube-scheduler chooses the nodes.
    pub(crate) fn directed(config: &Config, nodes: &[Value]) -> Self {
        let machine = Self::new(config, nodes, &[]);
        Self { scheduler: machine.scheduler.directed(), reader: machine.reader.judging_cards(), ..machine }
    }

    /// A scheduler to which volumes, claims, Devices and Reservations were not listed yet.
    pub(crate) fn without_storage(config: &Config, nodes: &[Value]) -> Self {
        Self::begin(config, nodes, &[])
    }

    /// A scheduler that places gangs, to which PodGroups were not listed yet.
    pub(crate) fn with_gangs(config: &Config, nodes: &[Value]) -> Self {
        let mut machine = Self::begin_with(config, config.scheduler_settings(), nodes, &[]);
        for kind in Kind::STORAGE {
            machine.tell(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
        }
        let unserved = Kind::POD_GROUPS.iter().filter(|kind| **kind != Kind::PodGroup(PodGroupKind::Volcano));
        machine.serve_none(unserved);
        machine
    }

    fn begin(config: &Config, nodes: &[Value], pods: &[Value]) -> Self {
        // PodGroups are listed only by the cases that are about their budgets.
        let settings = Settings { gangs: None, ..config.scheduler_settings() };
        Self::begin_with(config, settings, nodes, pods)
    }

    pub(crate) fn begin_with(config: &Config, settings: Settings, nodes: &[Value], pods: &[Value]) -> Self {
        let scheduler = Scheduler::new(settings);
        let now = Timestamp::from_second(START).unwrap();
        let mut machine =
            Self { scheduler, reader: config.reader(), now, version: 1, zones: BTreeMap::new() };
        let nodes = nodes.iter().map(|node| machine.reader.node(&parsed(node)).0).collect();
        let pods = pods.iter().map(|pod| machine.reader.pod(&parsed(pod)).0).collect();
        machine.tell(Event::Node(NodeChange::Listed(nodes)));
        machine.tell(Event::Quota(QuotaChange::Listed(Vec::new())));
        machine.tell(Event::Object(ObjectChange::Listed(Kind::Namespace, Vec::new())));
        machine.tell(Event::Pod(PodChange::Listed(pods)));
        machine
    }

    /// Lets so many seconds pass.
    pub(crate) fn pass(&mut self, seconds: i64) {
        self.wait(SignedDuration::from_secs(seconds));
    }

    /// Lets time pass.
    pub(crate) fn wait(&mut self, time: SignedDuration) {
        self.now += time;
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.scheduler.observe(event, self.now);
    }

    /// Shows a pod, newer than all that was shown before.
    pub(crate) fn show_pod(&mut self, pod: &Value) {
        let pod = self.newer(pod);
        let info = self.reader.pod(&parsed(&pod)).0;
        self.tell(Event::Pod(PodChange::Seen(Box::new(info))));
    }

    /// Shows a node, newer than all that was shown before.
    pub(crate) fn show_node(&mut self, node: &Value) {
        let node = self.newer(node);
        let info = self.reader.node(&parsed(&node)).0;
        self.tell(Event::Node(NodeChange::Seen(Box::new(info))));
    }

    /// Tells that the API server serves none of these kinds.
    pub(crate) fn serve_none<'k>(&mut self, kinds: impl IntoIterator<Item = &'k Kind>) {
        for kind in kinds {
            self.tell(Event::Object(ObjectChange::Unserved(*kind)));
        }
    }

    /// Shows the Device of a node; what of it can't be read.
    pub(crate) fn show_device(&mut self, device: &Value) -> Vec<String> {
        let (object, troubles) = device_object(device);
        self.tell(Event::Object(ObjectChange::Seen(object)));
        troubles
    }

    /// Shows the ConfigMap with the templates of shares.
    pub(crate) fn show_templates(&mut self, text: &str) {
        let metadata = json!({"namespace": "koordinator-system", "name": "gpu-shared-resource-templates"});
        let config_map = parsed(&json!({"metadata": metadata, "data": {"data.yaml": text}}));
        self.tell(Event::Object(ObjectChange::Seen(share_templates(&config_map).0)));
    }

    /// Shows a Reservation; what of it can't be read.
    pub(crate) fn show_reservation(&mut self, object: &Value) -> Vec<String> {
        let (object, troubles) = reservation(&parsed(object));
        self.tell(Event::Object(ObjectChange::Seen(object)));
        troubles.iter().map(ToString::to_string).collect()
    }

    fn newer(&mut self, object: &Value) -> Value {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        object
    }

    /// What is to be done now. Another mix of pods counts at once.
    pub(crate) fn settle(&mut self) -> Vec<Effect> {
        let mut effects = self.scheduler.settle(self.now);
        check(&self.scheduler, &effects);
        effects.retain(|effect| {
            let Effect::RenewMix(renewal) = effect else { return true };
            self.scheduler.observe(Event::Computed(Computed::Mix(renewal.clone().skip())), self.now);
            false
        });
        effects
    }

    /// When it is to be asked again although nothing happens.
    pub(crate) fn next_deadline(&self) -> Option<Timestamp> {
        self.scheduler.next_deadline()
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    pub(crate) fn scheduler_mut(&mut self) -> &mut Scheduler {
        &mut self.scheduler
    }

    /// How many decisions there were since this was last asked: with a node, and without one.
    pub(crate) fn take_decisions(&mut self) -> (usize, usize) {
        let measures = self.scheduler.take_measured().measures;
        let count = |attempt| measures.iter().filter(|one| **one == Measure::Attempt(attempt)).count();
        (count(Attempt::Scheduled), count(Attempt::Unschedulable))
    }

    /// How much work each turn took since this was last asked, in steps.
    pub(crate) fn take_steps(&mut self) -> Vec<u64> {
        let steps = |measure| if let Measure::Steps(steps) = measure { Some(steps) } else { None };
        self.scheduler.take_measured().measures.into_iter().filter_map(steps).collect()
    }

    /// Carries out locks, the reads that follow them and Bindings until nothing else is left to do; returns the other effects, and the
    /// pods bound, with their nodes.
    pub(crate) fn run(&mut self) -> (Vec<Effect>, Vec<(String, String)>) {
        let (mut others, mut bound, mut locked) = (Vec::new(), Vec::new(), BTreeMap::new());
        loop {
            let effects = self.settle();
            if effects.is_empty() && self.next_deadline().is_none_or(|at| at > self.now) {
                return (others, bound);
            }
            for effect in effects {
                match effect {
                    Effect::TakeLock { pod, node, locks, since, .. } => {
                        self.version += 1;
                        locked.insert(node.clone(), (pod.clone(), since));
                        let outcome = LockOutcome::Taken { resource_version: self.version.to_string() };
                        self.tell(Event::LockAnswered { pod, node, locks, outcome });
                    }
                    Effect::Bind { pod, node, zone, .. } => {
                        self.zones.insert(pod.name.to_string(), zone);
                        bound.push((pod.name.to_string(), node.to_string()));
                        self.tell(Event::BindAnswered { pod, node, outcome: BindOutcome::Bound });
                    }
                    Effect::Read(ReadRequest::Node(node)) if locked.contains_key(&node) => {
                        let (pod, since) = &locked[&node];
                        let found = Some(Box::new(self.locked(&node, pod, *since)));
                        self.tell(Event::Read(ReadAnswer::Node { node, found, pods: Vec::new() }));
                    }
                    other => others.push(other),
                }
            }
        }
    }

    /// The revocable zone that the Binding of this pod has stated.
    pub(crate) fn zone_of(&self, pod: &str) -> Option<Arc<str>> {
        self.zones.get(pod).expect("a Binding of the pod").clone()
    }

    /// The node as it is known, with its locks held by this pod.
    fn locked(&self, node: &str, pod: &PodKey, since: Timestamp) -> NodeInfo {
        let mut info = NodeInfo::clone(&self.scheduler.snapshot().node(node).unwrap().info);
        info.resource_version = self.version.to_string();
        for lock in &mut info.locks.needed {
            lock.state = Lock::Held { owner: LockOwner::parse(&pod.namespace, &pod.name), since };
        }
        info
    }
}

/// A message without the nearest miss that follows the counted reasons.
pub(crate) fn without_nearest(message: &str) -> &str {
    message.split_once(" nearest: ").map_or(message, |(counted, _)| counted)
}

/// Why a pod waits, without the nearest miss.
pub(crate) fn counted(reason: &PendingReason) -> String {
    without_nearest(&reason.message().full).to_owned()
}

/// The condition of a pod is written for this reason.
pub(crate) fn heard(pod: PodKey, reason: &PendingReason) -> Event {
    Event::Told { pod, message: reason.message().full, outcome: TellOutcome::Done }
}

/// The last message about the pod that waits.
pub(crate) fn told(effects: &[Effect], name: &str) -> String {
    let of_pod = |effect: &Effect| match effect {
        Effect::TellUnschedulable { pod, reason, .. } if *pod.name == *name => Some(counted(reason)),
        _ => None,
    };
    effects.iter().rev().find_map(of_pod).unwrap_or_default()
}

/// The Device of a node, and what of it can't be read.
pub(crate) fn device_object(device: &Value) -> (Object, Vec<String>) {
    let (offer, troubles) = devices(&parsed(device));
    let node = device["metadata"]["name"].as_str().unwrap().into();
    (Object::Device(node, Arc::new(offer)), troubles.iter().map(ToString::to_string).collect())
}

/// Pods and their nodes, as [`Machine::run`] returns those that were bound.
pub(crate) fn placed(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(pod, node)| ((*pod).to_owned(), (*node).to_owned())).collect()
}

/// The object that this JSON is.
pub(crate) fn parsed<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// A pod of one container with these limits, which Berth is to place; its uid is its name.
pub(crate) fn pod(name: &str, limits: &Value) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"},
        "spec": {"schedulerName": "berth", "containers": [{"name": "main", "resources": {"limits": limits}}]},
    })
}

/// The pod as it stands once it is bound to the node with these annotations.
pub(crate) fn bound(mut pod: Value, node: &str, annotations: Value) -> Value {
    pod["spec"]["nodeName"] = json!(node);
    pod["metadata"]["annotations"] = annotations;
    pod["status"]["phase"] = json!("Pending");
    pod
}

/// A node with these annotations and plenty of everything.
pub(crate) fn node(name: &str, annotations: &Value) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "annotations": annotations},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}},
    })
}

pub(crate) fn key(name: &str) -> PodKey {
    PodKey { uid: name.into(), namespace: "default".into(), name: name.into() }
}
