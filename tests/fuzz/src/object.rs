//! Objects of kinds that other projects define, whose definitions may have no schema: each is read, or named as one that can't be, and a
//! binder that sees it goes on placing pods.

use std::sync::Arc;

use berth::{
    cluster::read::{self, group::pod_group, reservation::reservation},
    config::Config,
    object::{Device, DeviceClass, DeviceTaintRule, PodGroup, Reservation, ResourceClaim, ResourceSlice},
    scheduling::{
        Effect, Event, NodeChange, ObjectChange, PodChange, QuotaChange, Scheduler,
        model::kind::{Kind, TaintRuleVersion},
        world::object::Object,
    },
};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// An object as the API server hands it out, of whatever kind it may be read as.
pub fn run(data: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(data) else { return };
    let mut objects = Vec::new();
    if let Some(device) = read_as::<Device>(&value) {
        let (offer, troubles) = read::devices(&device);
        for trouble in &troubles {
            short(&trouble.to_string());
        }
        objects.push(Object::Device("gpu-1".into(), Arc::new(offer)));
    }
    if let Some(object) = read_as::<Reservation>(&value) {
        let (object, troubles) = reservation(&object);
        for trouble in &troubles {
            short(&trouble.to_string());
        }
        objects.push(object);
    }
    if let Some(group) = read_as::<PodGroup>(&value) {
        let kinds = Kind::POD_GROUPS.iter().filter_map(|kind| match kind {
            Kind::PodGroup(kind) => Some(*kind),
            _ => None,
        });
        objects.extend(kinds.map(|kind| pod_group(kind, &group)));
    }
    objects.extend(read_as::<ResourceClaim>(&value).map(|claim| Object::ResourceClaim(Arc::new(claim))));
    objects.extend(read_as::<ResourceSlice>(&value).map(|slice| Object::ResourceSlice(Arc::new(slice))));
    objects.extend(
        read_as::<DeviceTaintRule>(&value)
            .map(|rule| Object::DeviceTaintRule(TaintRuleVersion::V1, Arc::new(rule))),
    );
    objects.extend(read_as::<DeviceClass>(&value).map(|class| Object::DeviceClass(Arc::new(class))));
    if !objects.is_empty() {
        goes_on(objects);
    }
}

fn read_as<T: DeserializeOwned>(value: &Value) -> Option<T> {
    match serde_json::from_value(value.clone()) {
        Ok(read) => Some(read),
        Err(error) => {
            short(&berth::excerpt::brief(&error));
            None
        }
    }
}

fn short(text: &str) {
    assert!(!text.is_empty() && text.len() < 10_000, "{text}");
    assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
}

/// A binder that sees these objects places a share pod all the same.
fn goes_on(objects: Vec<Object>) {
    let config = Config::default();
    let (reader, now) = (config.reader(), Timestamp::UNIX_EPOCH);
    let mut scheduler = Scheduler::new(config.scheduler_settings());
    let node = serde_json::from_value(json!({
        "metadata": {"name": "gpu-1", "uid": "n", "resourceVersion": "1", "annotations": {"hami.io/node-nvidia-register": REGISTER}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    }));
    let pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "other", "uid": "p", "resourceVersion": "1"},
        "spec": {"schedulerName": "berth", "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
    }));
    let (node, pod) = (node.expect("a node"), pod.expect("a pod"));
    scheduler.observe(Event::Node(NodeChange::Listed(vec![reader.node(&node).0])), now);
    scheduler.observe(Event::Quota(QuotaChange::Listed(Vec::new())), now);
    for kind in
        [Kind::Namespace].iter().chain(Kind::STORAGE).chain(Kind::DEVICE_CLAIMS).chain(Kind::POD_GROUPS)
    {
        scheduler.observe(Event::Object(ObjectChange::Listed(*kind, Vec::new())), now);
    }
    scheduler.observe(Event::Object(ObjectChange::Listed(Kind::Device, Vec::new())), now);
    scheduler.observe(Event::Object(ObjectChange::Listed(Kind::Reservation, Vec::new())), now);
    for object in objects {
        scheduler.observe(Event::Object(ObjectChange::Seen(object)), now);
    }
    scheduler.observe(Event::Pod(PodChange::Listed([reader.pod(&pod).0].into_iter().collect())), now);
    let effects = scheduler.settle(now);
    let told = effects.iter().any(|effect| match effect {
        Effect::TakeLock { pod, .. } | Effect::TellUnschedulable { pod, .. } => &*pod.name == "p",
        _ => false,
    });
    assert!(told, "the pod is placed, or it is said why not: {effects:?}");
}

const REGISTER: &str =
    r#"[{"id":"GPU-a","count":10,"devmem":16384,"devcore":100,"type":"NVIDIA A100","health":true}]"#;

/// One of each kind.
pub fn seeds() -> Vec<Vec<u8>> {
    super::owned(&[
        r#"{"apiVersion":"scheduling.koordinator.sh/v1alpha1","kind":"Device","metadata":{"name":"gpu-1","annotations":{"scheduling.koordinator.sh/gpu-partitions":"{}"}},"spec":{"devices":[{"id":"GPU-a","minor":0,"type":"gpu","health":true,"resources":{"koordinator.sh/gpu-core":"100","koordinator.sh/gpu-memory":"80Gi","koordinator.sh/gpu-memory-ratio":"100"},"topology":{"nodeID":0,"socketID":0,"pcieID":"p0","busID":"0000:00:08.0"}},{"id":"0000:01:00.0","minor":1,"type":"rdma","health":true,"resources":{"koordinator.sh/rdma":"100"},"vfGroups":[{"vfs":[{"minor":-1,"busID":"x"}]}]}]}}"#,
        r#"{"apiVersion":"scheduling.koordinator.sh/v1alpha1","kind":"Reservation","metadata":{"name":"r","uid":"r"},"spec":{"owners":[{"labelSelector":{"matchLabels":{"a":"b"}}}],"ttl":"1h","allocateOnce":true,"template":{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1","koordinator.sh/gpu":"50"}}}]}}},"status":{"phase":"Available","nodeName":"gpu-1","allocatable":{"cpu":"1"},"currentOwners":[{"name":"p","uid":"p"}]}}"#,
        r#"{"apiVersion":"scheduling.volcano.sh/v1beta1","kind":"PodGroup","metadata":{"name":"g","namespace":"other","annotations":{"volcano.sh/preemptable":"true"}},"spec":{"minMember":3,"minTaskMember":{"a":2},"queue":"default","priorityClassName":"high","networkTopology":{"mode":"hard","highestTierAllowed":1}},"status":{"phase":"Inqueue"}}"#,
        r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c","namespace":"other","uid":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"gpu","count":2,"selectors":[{"cel":{"expression":"device.driver == 'd'"}}]}}],"constraints":[{"requests":["r"],"matchAttribute":"d/x"}]}}}"#,
        r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"gpu-1","pool":{"name":"p","generation":1,"resourceSliceCount":1},"devices":[{"name":"d0","attributes":{"x":{"string":"y"}},"capacity":{"memory":{"value":"80Gi"}}}]}}"#,
        r#"{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"gpu"},"spec":{"extendedResourceName":"nvidia.com/gpu","selectors":[{"cel":{"expression":"true"}}]}}"#,
        r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{"driver":"d","nodeName":"gpu-1","pool":{"name":"p","generation":1,"resourceSliceCount":2},"skipNodeOperations":["*"],"devices":[{"name":"d0","consumesCounters":[{"counterSet":"c","counters":{"n":{"value":"1"}},"compatibilityGroups":["mig"]}],"nodeAllocatableResources":{"cpu":{"overhead":{"perPod":"1"}}}}]}}"#,
        r#"{"apiVersion":"resource.k8s.io/v1","kind":"DeviceTaintRule","metadata":{"name":"r"},"spec":{"deviceSelector":{"driver":"d","pool":"p","device":"d0"},"taint":{"key":"k","value":"v","effect":"NoExecute","timeAdded":"2026-01-01T00:00:00Z"}}}"#,
        r#"{"kind":"PodGroup","metadata":{"name":7},"spec":[]}"#,
    ])
}
