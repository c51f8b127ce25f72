//! Berth's scheduler without an API server: pods are decided one after the other, and what is to be written is answered at once.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use berth::{
    cluster::Reader,
    config::Config,
    object::{Node, Pod, ResourceClaim, resource_claim::ConsumerReference},
    scheduling::{
        BindOutcome, Effect, Event, NodeChange, NodeInfo, ObjectChange, PodChange, PodInfo, PodKey,
        QuotaChange,
        effect::PrebindWrite,
        event::{Computed, WriteOutcome},
        model::{claim_use::FINALIZER, kind::Kind},
        scheduler::{Pace, Scheduler, Settings},
        world::object::Object,
    },
};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::Cluster;

/// The name that pods give to Berth.
const SCHEDULER: &str = "berth";

/// A scheduler that has listed a cluster, and the pods that it does not know yet.
pub(crate) struct Berth {
    reader: Reader,
    scheduler: Scheduler,
    waiting: Vec<Value>,
    version: u64,
    now: Timestamp,
}

impl Berth {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let config = Config::default();
        let reader = config.reader();
        let settings = Settings {
            device_resources: reader.device_resources(),
            lock_expiry: jiff::SignedDuration::from_mins(5),
            weights: config.scheduling.score_weights(),
            arguments: config.plugin_arguments(),
            preemption: None,
            rooms: None,
            zones: berth::scheduling::model::tdm::RevocableZones::default(),
            gangs: None,
            held_percent: 50,
            claims: berth::scheduling::model::claim_use::DeviceClaims::Served,
            pace: Pace::Shared,
        };
        let now = Timestamp::UNIX_EPOCH;
        let scheduler = Scheduler::new(settings);
        let mut berth = Self { reader, scheduler, waiting: Vec::new(), version: 1_000_000, now };
        berth.list(cluster.objects(SCHEDULER));
        berth
    }

    /// Lets the scheduler list everything but the pods that wait.
    fn list(&mut self, objects: Vec<Value>) {
        let (mut pods, mut nodes, mut others): (Vec<PodInfo>, Vec<NodeInfo>, Vec<Object>) =
            Default::default();
        for object in objects {
            match object["kind"].as_str().unwrap() {
                "Pod" if object["spec"]["nodeName"].is_null() => self.waiting.push(object),
                "Pod" => pods.push(self.pod(object)),
                "Node" => nodes.push(self.reader.node(&read::<Node>(object)).0),
                "ResourceSlice" => others.push(Object::ResourceSlice(Arc::new(read(object)))),
                "ResourceClaim" => others.push(Object::ResourceClaim(Arc::new(read(object)))),
                "DeviceClass" => others.push(Object::DeviceClass(Arc::new(read(object)))),
                _ => {}
            }
        }
        let events = [
            Event::Pod(PodChange::Listed(pods.into_iter().collect())),
            Event::Node(NodeChange::Listed(nodes)),
            Event::Quota(QuotaChange::Listed(Vec::new())),
        ];
        let listed = |kind: &Kind| {
            let of_kind = others.iter().filter(|object| object.kind() == *kind).cloned();
            Event::Object(ObjectChange::Listed(*kind, of_kind.collect()))
        };
        for event in events.into_iter().chain(Kind::ALL.iter().map(listed)) {
            self.scheduler.observe(event, self.now);
        }
        assert!(self.scheduler.settle(self.now).is_empty(), "nothing is to be done yet");
        assert!(self.scheduler.view().is_synced());
    }

    fn pod(&self, pod: Value) -> PodInfo {
        self.reader.pod(&read::<Pod>(pod)).0
    }

    /// Decides every pod that waits, in the order of the list: how long each took, from the event that shows the pod to the effect that
    /// writes for its claim, with what the program compares beside its decisions. The pod is bound before the next comes, which is not timed.
    pub(crate) fn decide_all(&mut self) -> Vec<Duration> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().map(|pod| self.decide(&pod)).collect()
    }

    fn decide(&mut self, pod: &Value) -> Duration {
        let event = Event::Pod(PodChange::Seen(Box::new(self.pod(pod.clone()))));
        let started = Instant::now();
        self.scheduler.observe(event, self.now);
        let mut effects = self.scheduler.settle(self.now);
        while let Some(at) = effects.iter().position(|effect| matches!(effect, Effect::CompareClaims(_))) {
            if let Effect::CompareClaims(comparison) = effects.swap_remove(at) {
                let compared = comparison.run(|_| ControlFlow::Continue(()));
                self.scheduler.observe(Event::Computed(Computed::Claims(compared)), self.now);
                effects.extend(self.scheduler.settle(self.now));
            }
        }
        let took = started.elapsed();
        let writes = effects.iter().filter(|effect| matches!(effect, Effect::Prebind { .. }));
        assert_eq!(writes.count(), 1, "{effects:?}");
        self.bind(pod, effects);
        took
    }

    /// Answers what is to be done until the pod is bound.
    fn bind(&mut self, pod: &Value, mut effects: Vec<Effect>) {
        let mut bound = false;
        while !effects.is_empty() {
            for effect in effects {
                match effect {
                    Effect::Prebind { pod, write } => self.write(pod, write),
                    Effect::Bind { pod: key, node, .. } => {
                        bound = true;
                        let mut pod = pod.clone();
                        pod["spec"]["nodeName"] = json!(*node);
                        pod["metadata"]["resourceVersion"] = json!("2");
                        let seen = Event::Pod(PodChange::Seen(Box::new(self.pod(pod))));
                        let answered = Event::BindAnswered { pod: key, node, outcome: BindOutcome::Bound };
                        self.scheduler.observe(answered, self.now);
                        self.scheduler.observe(seen, self.now);
                    }
                    _ => {}
                }
            }
            effects = self.scheduler.settle(self.now);
        }
        assert!(bound, "{pod}");
    }

    /// The claim as the API server has it after this write is seen, and the write is answered.
    fn write(&mut self, pod: PodKey, write: PrebindWrite) {
        self.version += 1;
        let resource_version = self.version.to_string();
        let mut claim: ResourceClaim = match &write {
            PrebindWrite::ProtectClaim { claim } | PrebindWrite::ReserveClaim { claim, .. } => {
                (**claim).clone()
            }
            other => panic!("a claim of devices needs no {other:?}"),
        };
        claim.metadata.resource_version.clone_from(&resource_version);
        match &write {
            PrebindWrite::ReserveClaim { allocation, .. } => {
                claim.status.allocation = allocation.as_deref().cloned();
                let (name, uid) = (pod.name.to_string(), pod.uid.to_string());
                claim.status.reserved_for = vec![ConsumerReference {
                    resource: "pods".to_owned(),
                    name,
                    uid,
                    ..ConsumerReference::default()
                }];
            }
            _ => claim.metadata.finalizers.push(FINALIZER.into()),
        }
        self.scheduler
            .observe(Event::Object(ObjectChange::Seen(Object::ResourceClaim(Arc::new(claim)))), self.now);
        let outcome = WriteOutcome::Written { resource_version };
        self.scheduler.observe(Event::Prebound { pod, write, outcome }, self.now);
    }
}

fn read<T: DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).unwrap()
}
