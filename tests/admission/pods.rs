//! Pods that nobody would write: every resource, amount, key and value beside every other.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

const RESOURCES: [&str; 16] = [
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
    "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-cores",
    "volcano.sh/gpu-memory",
    "koordinator.sh/gpu",
    "koordinator.sh/gpu-core",
    "koordinator.sh/gpu-memory-ratio",
    "koordinator.sh/rdma",
    "example.com/fpga",
    "cpu",
    "memory",
];

const AMOUNTS: [&str; 16] = [
    "0",
    "1",
    "2",
    "30",
    "50",
    "100",
    "101",
    "4k",
    "3000",
    "500m",
    "-1",
    "16Gi",
    "1e3",
    "4294967297",
    "x",
    "0.5Ki",
];

const KEYS: [&str; 15] = [
    "nvidia.com/use-gputype",
    "nvidia.com/nouse-gputype",
    "nvidia.com/use-gpuuuid",
    "nvidia.com/nouse-gpuuuid",
    "nvidia.com/use-gpu-type",
    "nvidia.com/vgpu-mode",
    "nvidia.com/numa-bind",
    "hami.io/gpu-scheduler-policy",
    "volcano.sh/preemptable",
    "volcano.sh/revocable-zone",
    "volcano.sh/cooldown-time",
    "volcano.sh/jdb-min-available",
    "scheduling.koordinator.sh/device-allocate-hint",
    "scheduling.koordinator.sh/device-joint-allocate",
    "odd~key/with~slash",
];

const VALUES: [&str; 14] = [
    "{}",
    r#"{"rdma":{"allocateStrategy":"RequestsAsCount"},"deviceTypes":["gpu","rdma","xpu"]}"#,
    "A100",
    "A100,",
    ",",
    "",
    "GPU-1,GPU-2",
    "GPU-1",
    "true",
    "false",
    "*",
    "binpack",
    "10m",
    "5%",
];

fn amounts() -> impl Strategy<Value = Value> {
    let pair = (prop::sample::select(&RESOURCES[..]), prop::sample::select(&AMOUNTS[..]));
    prop::collection::vec(pair, 0..4).prop_map(|pairs| {
        Value::Object(pairs.into_iter().map(|(name, amount)| (name.to_owned(), amount.into())).collect())
    })
}

fn resources() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        1 => Just(None),
        1 => Just(Some(json!({"claims": [{"name": "kept"}]}))),
        3 => amounts().prop_map(|limits| Some(json!({"limits": limits, "unknownToUs": {"a": 1}}))),
        1 => amounts().prop_map(|requests| Some(json!({"requests": requests}))),
        1 => amounts().prop_map(|both| Some(json!({"limits": both, "requests": both, "claims": [{"name": "kept"}]}))),
    ]
}

fn container() -> impl Strategy<Value = Value> {
    let env = prop_oneof![
        Just(None),
        Just(Some(json!([]))),
        Just(Some(
            json!([{"name": "CUDA_TASK_PRIORITY", "value": "9"}, {"name": "KEPT", "valueFrom": {"x": 1}}])
        )),
    ];
    (resources(), env, any::<bool>()).prop_map(|(resources, env, sidecar)| {
        let mut container = json!({"name": "c", "image": "i", "futureField": [1, {"deep": true}]});
        if let Some(resources) = resources {
            container["resources"] = resources;
        }
        if let Some(env) = env {
            container["env"] = env;
        }
        if sidecar {
            container["restartPolicy"] = "Always".into();
        }
        container
    })
}

fn annotations() -> impl Strategy<Value = Option<Value>> {
    let pair = (prop::sample::select(&KEYS[..]), prop::sample::select(&VALUES[..]));
    prop::option::of(prop::collection::vec(pair, 0..4).prop_map(|pairs| {
        let pairs: Map<String, Value> =
            pairs.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
        Value::Object(pairs)
    }))
}

prop_compose! {
    /// A pod.
    pub(crate) fn pods()(
        annotations in annotations(),
        apps in prop::collection::vec(container(), 0..3),
        init in prop::option::of(prop::collection::vec(container(), 0..2)),
        scheduler in prop::sample::select(vec![None, Some("default-scheduler"), Some("berth"), Some("other")]),
    ) -> Value {
        let mut pod = json!({"metadata": {"name": "p", "futureMeta": 1}, "spec": {"containers": apps, "futureSpec": {"x": [1]}}});
        if let Some(annotations) = annotations {
            pod["metadata"]["annotations"] = annotations;
        }
        if let Some(init) = init {
            pod["spec"]["initContainers"] = init.into();
        }
        if let Some(scheduler) = scheduler {
            pod["spec"]["schedulerName"] = scheduler.into();
        }
        pod
    }
}
