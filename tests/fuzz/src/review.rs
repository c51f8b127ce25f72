//! Bodies of reviews: whatever comes, it is answered or refused with a reason; what is changed of a pod stays a pod that is let in.

use std::sync::{Arc, LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth::{
    admission::{AdmissionStage, Request, review},
    object::Workloads,
    webhook::{Judge, ReviewAnswer, answer},
};
use serde_json::{Value, json};

use super::world;

static WORKLOADS: LazyLock<Workloads> = LazyLock::new(Workloads::default);

static JUDGES: LazyLock<Vec<Judge>> = LazyLock::new(|| {
    let judge = |facts| -> Judge { Arc::new(move |request: &Request<'_>| review(request, &facts)) };
    world::facts().into_iter().map(judge).collect()
});

/// A body, at both stages, under every settings, with and without a cluster.
pub fn run(data: &[u8]) {
    let body = serde_json::from_slice::<Value>(data).ok();
    for judge in JUDGES.iter() {
        for stage in [AdmissionStage::Mutate, AdmissionStage::Validate] {
            match answer(data, stage, judge, &WORKLOADS) {
                Err(bad) => assert!(!bad.to_string().is_empty()),
                Ok(answer) => answered(&answer, stage, body.as_ref(), judge),
            }
        }
    }
}

fn answered(answer: &ReviewAnswer, stage: AdmissionStage, body: Option<&Value>, judge: &Judge) {
    well_formed(answer, stage);
    // What is too deep or too large for this reader is no API server's.
    let Some(body) = body else { return };
    assert_eq!(body["request"]["uid"], answer.review.response.uid.as_str());
    let Some(patch) = &answer.review.response.patch else { return };
    let patched = patched(body, patch);
    for stage in [AdmissionStage::Mutate, AdmissionStage::Validate] {
        let again = answer_of(&patched, stage, judge).review.response;
        assert!(again.allowed, "a pod was changed so that it is refused: {:?}", again.status);
        assert_eq!(again.patch, None, "a pod was changed twice: {patched}");
    }
}

/// The rules of `admission.k8s.io/v1`, and those of ours.
fn well_formed(answer: &ReviewAnswer, stage: AdmissionStage) {
    let response = &answer.review.response;
    assert!(!response.uid.is_empty());
    assert_eq!(response.allowed, response.status.is_none());
    assert_eq!(response.patch.is_some(), response.patch_type.is_some());
    assert!(
        response.patch.is_none() || (response.allowed && stage == AdmissionStage::Mutate),
        "a refusal or a validation changes nothing"
    );
    if let Some(status) = &response.status {
        assert!(matches!(status.code, 403 | 422) && !status.message.is_empty());
    }
    let said = response.warnings.iter().chain(response.status.iter().map(|status| &status.message));
    assert!(said.into_iter().all(|line| !line.chars().any(char::is_control)), "{response:?}");
    assert!(response.warnings.iter().all(|line| line.chars().count() <= 256));
    let written: Value =
        serde_json::from_slice(&serde_json::to_vec(&answer.review).expect("keys are strings"))
            .expect("it is JSON");
    assert_eq!(written["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(written["kind"], "AdmissionReview");
    assert_eq!(written["response"]["uid"], response.uid.as_str());
}

fn patched(body: &Value, patch: &str) -> Value {
    let operations = STANDARD.decode(patch).expect("a patch is base64");
    let operations: json_patch::Patch = serde_json::from_slice(&operations).expect("a patch is JSON");
    assert!(!operations.0.is_empty());
    let mut body = body.clone();
    json_patch::patch(&mut body["request"]["object"], &operations)
        .unwrap_or_else(|error| panic!("{error}: {operations}"));
    body
}

fn answer_of(body: &Value, stage: AdmissionStage, judge: &Judge) -> ReviewAnswer {
    answer(body.to_string().as_bytes(), stage, judge, &WORKLOADS)
        .expect("it was a review before it was patched")
}

/// A review of this object.
pub fn body(operation: &str, object: &Value, old: &Value) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "u", "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "train",
            "operation": operation, "object": object, "oldObject": old},
    });
    review.to_string().into_bytes()
}

/// Pods of each mode, an update and a workload.
pub fn seeds() -> Vec<Vec<u8>> {
    let limits = [
        json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8k", "nvidia.com/gpucores": "50"}),
        json!({"nvidia.com/gpumem-percentage": 50, "nvidia.com/priority": "1"}),
        json!({"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "3000"}),
        json!({"volcano.sh/gpu-memory": "1024"}),
        json!({"volcano.sh/gpu-number": "2"}),
        json!({"example.com/gpu": 1, "koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "200"}),
        json!({"koordinator.sh/gpu": "200", "koordinator.sh/rdma": 2}),
    ];
    let pod = |limits: &Value| {
        json!({"metadata": {"name": "p", "labels": {"berth.dev/admission": "enabled"}, "annotations": {
                "nvidia.com/use-gputype": "A100,", "volcano.sh/preemptable": "true", "scheduling.k8s.io/group-name": "g"}},
            "spec": {"schedulerName": "default-scheduler", "nodeSelector": {"kubernetes.io/hostname": "host-0"},
                "volumes": [{"name": "v", "hostPath": {"path": "/dev/shm"}}],
                "initContainers": [{"name": "i", "restartPolicy": "Always"}],
                "containers": [{"name": "c", "env": [{"name": "A", "value": "b"}], "resources": {"limits": limits}}]}})
    };
    let pods: Vec<_> = limits.iter().map(pod).collect();
    let mut seeds: Vec<_> = pods.iter().map(|pod| body("CREATE", pod, &Value::Null)).collect();
    seeds.push(body("UPDATE", &pods[0], &pods[1]));
    let workload = json!({"spec": {"template": pods[0]}});
    let review = String::from_utf8(body("CREATE", &workload, &Value::Null)).expect("JSON is text");
    let review =
        review.replace("\"group\":\"\"", "\"group\":\"apps\"").replace("\"pods\"", "\"deployments\"");
    seeds.push(review.into_bytes());
    seeds
}
