//! What must hold of every pod, also of pods that nobody would write.

use berth::{
    admission::{self, AdmissionStage, Facts, Operation, Request, Verdict, review},
    object::{Pod, Workloads},
    webhook::{Judge, answer},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;

use super::{facts::Given, pods::pods};

/// Every setting that changes a pod, a namespace with hints, one card.
pub(crate) fn facts() -> Facts {
    let given = json!({
        "settings": {"dialects": {"hami": {"gpuCorePolicy": "force", "overwriteEnv": true, "runtimeClassName": "nvidia"}}},
        "namespaces": [{"metadata": {"name": "train", "annotations": {
            "nvidia.com/use-gpuuuid": "GPU-1,GPU-3", "nvidia.com/use-gputype": "A100", "nvidia.com/nouse-gputype": "T4",
        }}}],
        "nodes": [{"name": "n1", "hami": [{"id": "GPU-1", "model": "NVIDIA-A100", "memory": 40960}]}],
    });
    serde_json::from_value::<Given>(given).unwrap().facts()
}

fn ask(facts: &Facts, stage: AdmissionStage, pod: &Value) -> Verdict {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    review(&Request { stage, operation: Operation::Create, namespace: "train", pod: &pod }, facts)
}

/// Every value of `before` is in `after` too, at the same place; `changed` says where another may stand.
fn assert_kept(before: &Value, after: &Value, path: &str, changed: &dyn Fn(&str) -> bool) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let path = format!("{path}/{key}");
                // Koordinator's percentage of cards is written out.
                if key == "koordinator.sh/gpu" && !after.contains_key(key) {
                    assert_eq!(
                        after["koordinator.sh/gpu-core"], after["koordinator.sh/gpu-memory-ratio"],
                        "{path}"
                    );
                    continue;
                }
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
        let Verdict::Admitted { patch, .. } = ask(&facts, AdmissionStage::Mutate, &pod) else { return Ok(()) };
        let mut patched = pod.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        assert_kept(&pod, &patched, "", &may_change);
        match ask(&facts, AdmissionStage::Mutate, &patched) {
            Verdict::Admitted { patch, .. } => prop_assert_eq!(patch, []),
            other => prop_assert!(false, "admitted, then {:?}", other),
        }
        let validated = ask(&facts, AdmissionStage::Validate, &patched);
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
        for stage in [AdmissionStage::Mutate, AdmissionStage::Validate] {
            let answer = answer(body.to_string().as_bytes(), stage, &judge, &Workloads::default()).unwrap();
            let response = &answer.review.response;
            prop_assert!(response.allowed || (response.patch.is_none() && response.status.is_some()));
            prop_assert_eq!(response.patch.is_some(), response.patch_type.is_some());
        }
        let read: Pod = serde_json::from_value(pod.clone()).unwrap();
        let same = Request { stage: AdmissionStage::Validate, operation: Operation::Update(&read), namespace: "train", pod: &read };
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
        let answered = answer(&bytes, AdmissionStage::Validate, &judge, &Workloads::default());
        prop_assert!(answered.is_ok() || answered.is_err_and(|error| !error.to_string().is_empty()));
    }
}
