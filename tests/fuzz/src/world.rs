//! What the bytes come into: the dialects under their settings, and a cluster to judge reviews by.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use berth::{
    admission::{Facts, InventorySummary, NamespaceQuota, NodeOffer},
    cluster::Reader,
    config::Config,
    dialect::{Dialects, hami::Hami},
    object::{Namespace, Node, Pod},
    scheduling::NodeInfo,
};
use serde_json::{Value, json};

/// Settings under which every dialect is spoken, one family of Volcano's at a time.
const SETTINGS: [&str; 3] = [
    "dialects:\n  hami:\n    gpuCorePolicy: force\n    overwriteEnv: true\n    runtimeClassName: nvidia\n  volcano:\n    \
     knownMigGeometries:\n    - models: [A100]\n      allowedGeometries:\n      - group: group1\n        geometries:\n        \
     - {name: 1g.5gb, memory: 5120, count: 7}\n    arguments:\n      tdm.revocable-zone.rz1: 1:00-4:00\n",
    "guards: {neverFits: deny, privileged: warn, deviceMounts: allow}\nadoptSchedulers: [volcano]\ndialects:\n  hami:\n    \
     resourceCountName: example.com/gpu\n    defaultMemory: 2000\n    defaultCores: 10\n  volcano:\n    arguments:\n      \
     deviceshare.GPUSharingEnable: true\n",
    "dialects: {hami: {enabled: false}, volcano: {arguments: {deviceshare.GPUNumberEnable: true}}}\n",
];

fn configs() -> impl Iterator<Item = Config> {
    SETTINGS.into_iter().map(|text| Config::parse(text, "settings").expect("the settings are valid").0)
}

/// What reads pods and nodes under each of the settings, and what it reads of [`shared_node`].
pub static READERS: LazyLock<Vec<(Reader, NodeInfo)>> = LazyLock::new(|| {
    let readers = configs().map(|config| config.reader());
    readers.map(|reader| (reader.clone(), reader.node(&shared_node()).0)).collect()
});

/// The dialects under each of the settings.
pub static DIALECTS: LazyLock<Vec<Dialects>> =
    LazyLock::new(|| configs().map(|config| config.dialects()).collect());

/// Facts: each of the settings without a cluster, then with one.
pub fn facts() -> Vec<Facts> {
    let bare = configs().map(|config| Facts::new(config.admission_settings(), config.dialects()));
    bare.flat_map(|facts| [facts.clone(), with_cluster(facts)]).collect()
}

fn with_cluster(mut facts: Facts) -> Facts {
    let namespace = json!({"metadata": {"name": "train", "annotations": {
        "nvidia.com/use-gputype": "A100", "nvidia.com/nouse-gputype": "T4", "nvidia.com/use-gpuuuid": "GPU-1,GPU-2",
        "nvidia.com/nouse-gpuuuid": "GPU-3", "volcano.sh/vgpu-use-gpuuuid": "GPU-9",
    }}});
    let namespace: Namespace = object(namespace);
    facts.namespaces = Arc::new(BTreeMap::from([("train".to_owned(), namespace)]));
    let offers = nodes().map(|node| NodeOffer::read(&node, &facts.dialects));
    facts.inventory = Some(Arc::new(InventorySummary::new(offers)));
    let mut quota = NamespaceQuota::default();
    let hard = json!({"limits.nvidia.com/gpumem": "20000", "limits.nvidia.com/gpucores": "250"});
    let troubles =
        quota.limit(&object(json!({"metadata": {"name": "gpus"}, "spec": {"hard": hard}})), &facts.dialects);
    assert!(troubles.is_empty() || facts.dialects.named(&Hami::NAME.into()).is_none(), "{troubles:?}");
    quota.charge(&BTreeMap::from([("nvidia.com/gpumem".to_owned(), 12_000)]));
    facts.quotas = Arc::new(BTreeMap::from([("train".to_owned(), quota)]));
    let group = (("train".to_owned(), "g".to_owned()), Some("true".to_owned()));
    facts.pod_groups = Arc::new(BTreeMap::from([group]));
    facts
}

/// Two cards that each plugin knows, HAMi's and Volcano's by uuid, Volcano's older ones by number.
fn shared_node() -> Node {
    let hami = r#"[{"id":"GPU-1","count":10,"devmem":16384,"devcore":100,"type":"NVIDIA-NVIDIA A100","mode":"hami-core","health":true},
        {"id":"GPU-2","index":1,"count":10,"devmem":16384,"devcore":100,"type":"NVIDIA-NVIDIA A100","mode":"hami-core","health":true}]"#;
    let volcano = "GPU-1,10,16384,NVIDIA-A100,true,hami-core:GPU-2,10,16384,NVIDIA-A100,true,hami-core:";
    let annotations = json!({"hami.io/node-nvidia-register": hami, "volcano.sh/node-vgpu-register": volcano});
    let capacity = json!({"volcano.sh/gpu-memory": "32768", "volcano.sh/gpu-number": "2"});
    let status = json!({"capacity": capacity, "allocatable": {"pods": "110"}});
    object(json!({"metadata": {"name": "node", "annotations": annotations}, "status": status}))
}

fn nodes() -> impl Iterator<Item = Node> {
    let hami = r#"[{"id":"GPU-1","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA-NVIDIA A100","mode":"hami-core","health":true},
        {"id":"GPU-2","index":1,"count":10,"devmem":40960,"devcore":100,"type":"NVIDIA-NVIDIA A100","mode":"mig","health":true}]"#;
    let annotations = [
        json!({"hami.io/node-nvidia-register": hami}),
        json!({"volcano.sh/node-vgpu-register": "GPU-9,10,32768,NVIDIA-A100,true,hami-core:"}),
        json!({}),
    ];
    annotations.into_iter().enumerate().map(|(at, annotations)| {
        let labels =
            json!({"kubernetes.io/hostname": format!("host-{at}"), "volcano.sh/revocable-zone": "rz1"});
        let metadata = json!({"name": format!("n{at}"), "labels": labels, "annotations": annotations});
        let capacity = json!({"volcano.sh/gpu-memory": "32k", "volcano.sh/gpu-number": "4"});
        object(json!({"metadata": metadata, "status": {"capacity": capacity}}))
    })
}

/// A node with these annotations and this capacity.
pub fn node(annotations: &BTreeMap<&str, &str>, capacity: &BTreeMap<&str, &str>) -> Node {
    let metadata = json!({"name": "node", "annotations": annotations});
    object(json!({"metadata": metadata, "status": {"capacity": capacity}}))
}

/// A pod of these containers, each with what it asks for; `I` is an init container, `S` a sidecar, `A` an app container.
pub fn pod(containers: &[(char, Value)], annotations: &BTreeMap<String, String>) -> Pod {
    let of = |wanted: fn(char) -> bool| -> Vec<Value> {
        let chosen = containers.iter().filter(|(role, _)| wanted(*role));
        chosen
            .map(|(role, limits)| {
                let restart = (*role == 'S').then_some("Always");
                json!({"name": "c", "restartPolicy": restart, "resources": {"limits": limits}})
            })
            .collect()
    };
    let spec = json!({"initContainers": of(|role| role != 'A'), "containers": of(|role| role == 'A')});
    object(
        json!({"metadata": {"name": "pod", "namespace": "train", "annotations": annotations}, "spec": spec}),
    )
}

fn object<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it is written here")
}
