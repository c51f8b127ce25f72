//! What a scheduler that has just been started makes of the cluster as it stands: nothing that waits has a place, and each is told why.
//!
//! It shares Berth's judgement, not its memory: whatever a run has left in that must not matter in the end.

use std::sync::Arc;

use berth::{
    cluster::{
        informer::watch::read_namespace,
        read::{self, group::pod_group},
        write::tell::condition_text,
    },
    config::Config,
    object::{Device, Namespace, Node, Pod, Reservation, ResourceQuota},
    scheduling::{
        Details, Effect, Event, NodeChange, ObjectChange, PodChange, PodKey, QuotaChange, Scheduler,
        model::kind::{Kind, PodGroupKind},
        world::object::Object,
    },
};
use berth_sandbox::Sandbox;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{device_claims, devices, groups};

/// What it would do that has not been done.
pub(crate) fn look(sandbox: &Sandbox, config: &Config) -> Vec<String> {
    let (reader, now) = (config.reader(), sandbox.now());
    let mut scheduler = Scheduler::new(config.scheduler_settings());
    let pods = all::<Pod>(sandbox, "pods");
    let pods =
        pods.iter().filter(|pod| pod.status.phase != "Succeeded").map(|pod| reader.pod(pod).0).collect();
    let nodes = all::<Node>(sandbox, "nodes").iter().map(|node| reader.node(node).0).collect();
    let quotas = all::<ResourceQuota>(sandbox, "resourcequotas");
    let quotas = quotas.iter().map(|quota| reader.quota(quota).0).collect();
    scheduler.observe(Event::Node(NodeChange::Listed(nodes)), now);
    scheduler.observe(Event::Quota(QuotaChange::Listed(quotas)), now);
    let namespaces = all::<Namespace>(sandbox, "namespaces").into_iter();
    let namespaces = namespaces.map(|namespace| read_namespace(Arc::new(namespace))).collect();
    scheduler.observe(Event::Object(ObjectChange::Listed(Kind::Namespace, namespaces)), now);
    scheduler.observe(Event::Object(ObjectChange::Listed(Kind::PodDisruptionBudget, Vec::new())), now);
    let groups = sandbox.objects_of("scheduling.volcano.sh", "podgroups");
    let groups = groups.iter().map(|group| serde_json::from_value((**group).clone()).unwrap());
    let groups = groups.map(|group| pod_group(PodGroupKind::Volcano, &group)).collect();
    scheduler
        .observe(Event::Object(ObjectChange::Listed(Kind::PodGroup(PodGroupKind::Volcano), groups)), now);
    let of_kubernetes =
        [(PodGroupKind::Kubernetes, groups::Kind::Leaf), (PodGroupKind::Composite, groups::Kind::Composite)];
    for (kind, of) in of_kubernetes {
        let objects = sandbox.objects_of(groups::API, of.names()[2]).into_iter();
        let objects =
            objects.map(|group| pod_group(kind, &serde_json::from_value((*group).clone()).unwrap()));
        let listed = ObjectChange::Listed(Kind::PodGroup(kind), objects.collect());
        scheduler.observe(Event::Object(listed), now);
    }
    let others = [PodGroupKind::Coscheduling, PodGroupKind::KubernetesAlpha3, PodGroupKind::KubernetesAlpha2];
    for kind in others {
        scheduler.observe(Event::Object(ObjectChange::Unserved(Kind::PodGroup(kind))), now);
    }
    scheduler.observe(Event::Object(ObjectChange::Listed(Kind::Device, node_devices(sandbox))), now);
    scheduler.observe(Event::Object(ObjectChange::Listed(Kind::Reservation, reservations(sandbox))), now);
    for kind in Kind::STORAGE {
        scheduler.observe(Event::Object(ObjectChange::Listed(*kind, storage(sandbox, *kind))), now);
    }
    for kind in Kind::DEVICE_CLAIMS {
        scheduler.observe(Event::Object(ObjectChange::Listed(*kind, claimed(sandbox, *kind))), now);
    }
    scheduler.observe(Event::Pod(PodChange::Listed(pods)), now);
    let told = |pod: &PodKey| told(sandbox, pod);
    let is_of_group = |pod: &PodKey| is_of_group(sandbox, pod);
    scheduler
        .settle(now)
        .into_iter()
        .filter_map(|effect| differs(effect, config.messages.details, told, is_of_group))
        .collect()
}

fn node_devices(sandbox: &Sandbox) -> Vec<Object> {
    let offer = |device: &Arc<Value>| {
        let device: Device = serde_json::from_value((**device).clone()).unwrap();
        Object::Device(device.metadata.name.as_str().into(), Arc::new(read::devices(&device).0))
    };
    sandbox.objects_of(devices::GROUP, "devices").iter().map(offer).collect()
}

fn reservations(sandbox: &Sandbox) -> Vec<Object> {
    let object = |object: &Arc<Value>| {
        let read: Reservation = serde_json::from_value((**object).clone()).unwrap();
        read::reservation::reservation(&read).0
    };
    sandbox.objects_of(devices::GROUP, "reservations").iter().map(object).collect()
}

fn differs(
    effect: Effect,
    details: Details,
    told: impl Fn(&PodKey) -> String,
    is_of_group: impl Fn(&PodKey) -> bool,
) -> Option<String> {
    match effect {
        Effect::TakeLock { pod, node, .. } | Effect::Bind { pod, node, .. } => {
            Some(format!("{pod} waits ({}), and a fresh look gives it a place on {node}", told(&pod)))
        }
        Effect::Nominate { pod, node, .. } => {
            Some(format!("{pod} waits ({}), and a fresh look nominates it to {node:?}", told(&pod)))
        }
        Effect::Preempt { pod, preemptor, .. } => {
            Some(format!("{pod} stays, and a fresh look preempts it for {preemptor}"))
        }
        Effect::Prebind { pod, .. } => {
            Some(format!("{pod} waits ({}), and a fresh look binds its claims", told(&pod)))
        }
        Effect::TellUnschedulable { pod, reason, .. } => {
            let message = condition_text(&reason, details).0;
            // How much of a quota is used changes too often to be told to all who wait for it.
            let said = told(&pod);
            let quota = |text: &str| {
                text.split(", ").next().filter(|head| head.starts_with("exceeded quota: ")).map(str::to_owned)
            };
            let same = said == message || (quota(&said).is_some() && quota(&said) == quota(&message));
            // Which pod of a tree finds no room depends on the order in which pods of one second are seen.
            let of_tree = |text: &str| text.split_once("; ").map(|(head, _)| head.to_owned());
            let same = same
                || (is_of_group(&pod) && of_tree(&said).is_some() && of_tree(&said) == of_tree(&message));
            (!same).then(|| format!("{pod} is told `{said}`, and a fresh look says `{message}`"))
        }
        _ => None,
    }
}

/// The objects of this kind; kinds that no run has are empty.
fn storage(sandbox: &Sandbox, kind: Kind) -> Vec<Object> {
    match kind {
        Kind::PersistentVolume => read(&sandbox.objects("persistentvolumes"), Object::PersistentVolume),
        Kind::PersistentVolumeClaim => {
            read(&sandbox.objects("persistentvolumeclaims"), Object::PersistentVolumeClaim)
        }
        Kind::StorageClass => {
            read(&sandbox.objects_of("storage.k8s.io", "storageclasses"), Object::StorageClass)
        }
        _ => Vec::new(),
    }
}

/// The objects that decide on claims of devices.
fn claimed(sandbox: &Sandbox, kind: Kind) -> Vec<Object> {
    let of = |plural| sandbox.objects_of(device_claims::GROUP, plural);
    match kind {
        Kind::ResourceClaim => read(&of("resourceclaims"), Object::ResourceClaim),
        Kind::ResourceSlice => read(&of("resourceslices"), Object::ResourceSlice),
        Kind::DeviceTaintRule(version) => {
            read(&of("devicetaintrules"), |rule| Object::DeviceTaintRule(version, rule))
        }
        _ => read(&of("deviceclasses"), Object::DeviceClass),
    }
}

fn read<T: DeserializeOwned>(objects: &[Arc<Value>], kind: impl Fn(Arc<T>) -> Object) -> Vec<Object> {
    objects.iter().map(|object| kind(Arc::new(serde_json::from_value((**object).clone()).unwrap()))).collect()
}

fn all<T: DeserializeOwned>(sandbox: &Sandbox, plural: &str) -> Vec<T> {
    let objects = sandbox.objects(plural);
    objects.iter().map(|object| serde_json::from_value((**object).clone()).unwrap()).collect()
}

/// Whether the pod is in a PodGroup of Kubernetes.
fn is_of_group(sandbox: &Sandbox, pod: &PodKey) -> bool {
    let pods = sandbox.objects("pods");
    let pod = pods.iter().find(|object| object["metadata"]["uid"] == *pod.uid);
    pod.is_some_and(|pod| pod["spec"].get("schedulingGroup").is_some())
}

fn told(sandbox: &Sandbox, pod: &PodKey) -> String {
    let pods = sandbox.objects("pods");
    let pod = pods.iter().find(|object| object["metadata"]["uid"] == *pod.uid);
    let conditions = pod.and_then(|pod| pod["status"]["conditions"].as_array().cloned()).unwrap_or_default();
    let said = conditions.iter().find(|condition| condition["type"] == "PodScheduled");
    said.and_then(|said| said["message"].as_str()).unwrap_or("nothing is said").to_owned()
}
