//! What must hold of every pod, also of pods that nobody would write.

use berth::{
    admission::{self, Facts, Operation, Request, Stage, Verdict, review},
    object::Pod,
    webhook::{Judge, answer},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;

use super::facts::Given;

const RESOURCES: [&str; 13] = [
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage",
    "nvidia.com/gpucores",
    "nvidia.com/priority",
    "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-cores",
    "volcano.sh/gpu-memory",
    "koordinator.sh/gpu-core",
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

const KEYS: [&str; 13] = [
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
    "odd~key/with~slash",
];

const VALUES: [&str; 12] =
    ["A100", "A100,", ",", "", "GPU-1,GPU-2", "GPU-1", "true", "false", "*", "binpack", "10m", "5%"];

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
    fn pods()(
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

fn facts() -> Facts {
    let given = json!({
        "settings": {"dialects": {"hami": {"gpuCorePolicy": "force", "overwriteEnv": true, "runtimeClassName": "nvidia"}}},
        "namespaces": [{"metadata": {"name": "train", "annotations": {
            "nvidia.com/use-gpuuuid": "GPU-1,GPU-3", "nvidia.com/use-gputype": "A100", "nvidia.com/nouse-gputype": "T4",
        }}}],
        "nodes": [{"name": "n1", "hami": [{"id": "GPU-1", "model": "NVIDIA-A100", "memory": 40960}]}],
    });
    serde_json::from_value::<Given>(given).unwrap().facts()
}

fn ask(facts: &Facts, stage: Stage, pod: &Value) -> Verdict {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    review(&Request { stage, operation: Operation::Create, namespace: "train", pod: &pod }, facts)
}

/// Every value of `before` is in `after` too, at the same place; `changed` says where another may stand.
fn assert_kept(before: &Value, after: &Value, path: &str, changed: &dyn Fn(&str) -> bool) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let path = format!("{path}/{key}");
                let after = after.get(key).unwrap_or_else(|| panic!("{path} is gone"));
                assert_kept(value, after, &path, changed);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            assert!(after.len() >= before.len(), "{path}");
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                assert_kept(before, after, &format!("{path}/{at}"), changed);
            }
        }
        (before, after) => assert!(before == after || changed(path), "{path}: {before} became {after}"),
    }
}

/// The scheduler's name, and lists that a namespace narrows.
fn may_change(path: &str) -> bool {
    path == "/spec/schedulerName" || path.starts_with("/metadata/annotations/nvidia.com/")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_applies_keeps_what_was_there_and_is_made_once(pod in pods()) {
        let facts = facts();
        let Verdict::Admitted { patch, .. } = ask(&facts, Stage::Mutate, &pod) else { return Ok(()) };
        let mut patched = pod.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        assert_kept(&pod, &patched, "", &may_change);
        match ask(&facts, Stage::Mutate, &patched) {
            Verdict::Admitted { patch, .. } => prop_assert_eq!(patch, []),
            other => prop_assert!(false, "admitted, then {:?}", other),
        }
        let validated = ask(&facts, Stage::Validate, &patched);
        prop_assert!(matches!(validated, Verdict::Admitted { .. }), "{:?}", validated);
    }

    #[test]
    fn a_refusal_carries_no_patch_and_an_update_to_itself_is_ignored(pod in pods()) {
        let facts = Arc::new(facts());
        let judge: Judge = {
            let facts = Arc::clone(&facts);
            Arc::new(move |request: &admission::Request<'_>| review(request, &facts))
        };
        let body = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "train",
                        "operation": "CREATE", "object": pod},
        });
        for stage in [Stage::Mutate, Stage::Validate] {
            let answer = answer(body.to_string().as_bytes(), stage, &judge).unwrap();
            let response = &answer.review.response;
            prop_assert!(response.allowed || (response.patch.is_none() && response.status.is_some()));
            prop_assert_eq!(response.patch.is_some(), response.patch_type.is_some());
        }
        let read: Pod = serde_json::from_value(pod.clone()).unwrap();
        let same = Request { stage: Stage::Validate, operation: Operation::Update(&read), namespace: "train", pod: &read };
        prop_assert_eq!(review(&same, &facts), Verdict::Ignored);
    }

    #[test]
    fn bytes_that_were_a_review_are_answered_or_refused_and_nothing_panics(
        pod in pods(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let facts = facts();
        let judge: Judge = Arc::new(move |request: &admission::Request<'_>| review(request, &facts));
        let body = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "train",
                        "operation": "UPDATE", "object": pod, "oldObject": pod},
        });
        let mut bytes = body.to_string().into_bytes();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        let answered = answer(&bytes, Stage::Validate, &judge);
        prop_assert!(answered.is_ok() || answered.is_err_and(|error| !error.to_string().is_empty()));
    }
}
