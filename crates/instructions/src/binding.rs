//! The binding of a pod without an API server: what is to be done is answered at once, until the pod is said to be bound.

use std::{collections::BTreeMap, ops::ControlFlow};

use berth::{
    cluster::Reader,
    config::Config,
    device::{Lock, LockOwner},
    object::{Node, Pod},
    scheduling::{
        BindOutcome, Computed, Effect, Event, LockOutcome, NodeChange, NodeInfo, ObjectChange, PodChange,
        PodInfo, PodKey, PodList, QuotaChange, ReadAnswer, ReadRequest, Scheduler, model::kind::Kind,
        scheduler::Settings,
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::asked;

/// A scheduler that knows a cluster, and a pod that it does not know yet.
pub(crate) struct BindingCycle {
    scheduler: Scheduler,
    pod: Option<Box<PodInfo>>,
    now: Timestamp,
    version: u64,
    /// Where the pod was bound.
    node: Option<String>,
    told: bool,
}

/// A scheduler that has listed so many nodes of eight cards, and a pod with a share.
pub(crate) fn waiting(nodes: usize) -> Box<BindingCycle> {
    let config = Config::default();
    let reader = config.reader();
    // PodGroups are not listed.
    let settings = Settings { gangs: None, ..config.scheduler_settings() };
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    let mut scheduler = Scheduler::new(settings);
    let nodes = (0..nodes).map(|at| node(at, &reader)).collect();
    let first = [
        Event::Pod(PodChange::Listed(PodList::default())),
        Event::Node(NodeChange::Listed(nodes)),
        Event::Quota(QuotaChange::Listed(Vec::new())),
    ];
    let others = Kind::ALL.iter().map(|kind| Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    for event in first.into_iter().chain(others) {
        scheduler.observe(event, now);
    }
    assert!(scheduler.settle(now).is_empty(), "nothing is to be done yet");
    let mut cycle = BindingCycle { scheduler, pod: None, now, version: 1, node: None, told: false };
    // One pod of the class was bound before, and its device plugin has answered.
    cycle.pod = Some(Box::new(pod("first", None, &reader)));
    let mut cycle = cycle.run_through();
    let served = pod("first", cycle.node.take().as_deref(), &reader);
    cycle.observe(Event::Pod(PodChange::Seen(Box::new(served))));
    for effect in cycle.scheduler.settle(now) {
        let Effect::RenewMix(renewal) = effect else { panic!("nothing is to be done for a pod that runs") };
        cycle.observe(Event::Computed(Computed::Mix(renewal.run(|| ControlFlow::Continue(())))));
    }
    cycle.told = false;
    cycle.pod = Some(Box::new(pod("second", None, &reader)));
    Box::new(cycle)
}

fn node(at: usize, reader: &Reader) -> NodeInfo {
    let card = |index: u32| {
        json!({"id": format!("GPU-{at:04}-{index}"), "index": index, "count": 10, "devmem": 81920, "devcore": 100,
            "type": "NVIDIA-NVIDIA A100-SXM4-80GB", "mode": "hami-core", "health": true})
    };
    let register = Value::Array((0..8).map(card).collect()).to_string();
    let name = format!("node-{at:05}");
    let node = json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1",
            "annotations": {"hami.io/node-nvidia-register": register}},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}},
    });
    reader.node(&serde_json::from_value::<Node>(node).unwrap()).0
}

/// The pod of the reviews, as the webhook leaves it to Berth, or with a share of the first card of a node.
fn pod(name: &str, node: Option<&str>, reader: &Reader) -> PodInfo {
    let mut pod = asked::pod();
    for (field, value) in [("name", name), ("uid", name), ("resourceVersion", "1")] {
        pod["metadata"][field] = json!(value);
    }
    pod["spec"]["schedulerName"] = json!("berth");
    pod["spec"]["volumes"] = json!([]);
    if let Some(node) = node {
        let card = format!("GPU-{}-0,NVIDIA,8000,30:;", node.trim_start_matches("node-0"));
        pod["spec"]["nodeName"] = json!(node);
        for (key, value) in
            [("vgpu-node", node), ("vgpu-devices-allocated", &card), ("bind-phase", "success")]
        {
            pod["metadata"]["annotations"][format!("hami.io/{key}")] = json!(value);
        }
    }
    reader.pod(&serde_json::from_value::<Pod>(pod).unwrap()).0
}

impl BindingCycle {
    /// Whether the pod was said to be bound.
    pub(crate) fn is_told(&self) -> bool {
        self.told
    }

    /// From the event that shows the pod to the effect that says that it is bound.
    pub(crate) fn run(self: Box<Self>) -> Box<Self> {
        Box::new(self.run_through())
    }

    fn run_through(mut self) -> Self {
        let pod = self.pod.take().expect("a pod waits");
        let mut locked = BTreeMap::new();
        self.observe(Event::Pod(PodChange::Seen(pod)));
        loop {
            let effects = self.scheduler.settle(self.now);
            if effects.is_empty() {
                return self;
            }
            for effect in effects {
                match effect {
                    Effect::TakeLock { pod, node, locks, since, .. } => {
                        self.version += 1;
                        locked.insert(node.clone(), (pod.clone(), since));
                        let outcome = LockOutcome::Taken { resource_version: self.version.to_string() };
                        self.observe(Event::LockAnswered { pod, node, locks, outcome });
                    }
                    Effect::Read(ReadRequest::Node(node)) => {
                        let (pod, since) = &locked[&node];
                        let found = Some(Box::new(self.locked(&node, pod, *since)));
                        self.observe(Event::Read(ReadAnswer::Node { node, found, pods: Vec::new() }));
                    }
                    Effect::Bind { pod, node, .. } => {
                        self.node = Some(node.to_string());
                        self.observe(Event::BindAnswered { pod, node, outcome: BindOutcome::Bound });
                    }
                    Effect::TellScheduled { .. } => self.told = true,
                    other => panic!("{other:?} is no part of a binding"),
                }
            }
        }
    }

    fn observe(&mut self, event: Event) {
        self.scheduler.observe(event, self.now);
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
