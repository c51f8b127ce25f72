//! Who is handed on, and to whom.

use std::sync::Mutex;

use prometheus_client::{encoding::text::encode, registry::Registry};
use serde_json::{Value, json};

use super::*;
use crate::{
    admission::{AdmissionStage, Rule, Verdict, Violation},
    object::Workloads,
    webhook::{answer, metrics::WebhookMetrics, review::Judge},
};

fn violation(message: &str) -> Violation {
    Violation { rule: Rule("r"), field: String::new(), message: message.to_owned() }
}

fn admitted() -> Verdict {
    Verdict::Admitted { patch: Vec::new(), warnings: vec![violation("first")] }
}

fn denied() -> Verdict {
    Verdict::Denied { violations: vec![violation("no")], warnings: Vec::new() }
}

fn review(changes: impl FnOnce(&mut Value)) -> Value {
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": []}});
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "train",
            "operation": "CREATE",
            "object": pod,
        },
    });
    changes(&mut review["request"]);
    review
}

/// What went on for a review: the answer's warnings, who was asked for a place, who was hinted at, and the metrics' page.
struct Seen {
    warnings: Vec<String>,
    placed: Vec<String>,
    hinted: Vec<String>,
    metrics: String,
}

fn go_on(review: &Value, stage: AdmissionStage, verdict: Verdict, handed: Handed) -> Seen {
    let called = |pod: &Pod| format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
    let (placed, hinted) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (place, hint) = (placed.clone(), hinted.clone());
    let onward = Onward {
        place: Arc::new(move |pod| {
            place.lock().unwrap().push(called(pod));
            vec!["there".to_owned(), "not elsewhere".to_owned()]
        }),
        hint: Arc::new(move |pod| {
            hint.lock().unwrap().push(called(&pod));
            handed
        }),
    };
    let judge: Judge = Arc::new(move |_| verdict.clone());
    let (body, mut registry) = (review.to_string(), Registry::default());
    let metrics = WebhookMetrics::register(&mut registry);
    let mut answer = answer(body.as_bytes(), stage, &judge, &Workloads::default()).unwrap();
    if let Some(handed) = onward.go_on(&mut answer, body.len()) {
        metrics.count_hint(handed);
    }
    let mut page = String::new();
    encode(&mut page, &registry).unwrap();
    let (placed, hinted) = (placed.lock().unwrap().clone(), hinted.lock().unwrap().clone());
    Seen { warnings: answer.review.response.warnings, placed, hinted, metrics: page }
}

#[test]
fn a_dry_run_is_told_a_place_and_hints_at_nothing() {
    let review = review(|request| request["dryRun"] = true.into());
    let seen = go_on(&review, AdmissionStage::Validate, admitted(), Handed::Taken);
    assert_eq!(seen.warnings, ["first (r)", "there", "not elsewhere"]);
    assert_eq!((seen.placed, seen.hinted.len()), (vec!["train/p".to_owned()], 0));
    assert!(seen.metrics.contains("berth_admission_hints_total{outcome=\"taken\"} 0"), "{}", seen.metrics);
}

#[test]
fn a_pod_that_is_let_in_is_hinted_at_and_told_nothing() {
    for (handed, label) in [(Handed::Taken, "taken"), (Handed::Dropped, "dropped")] {
        for dry_run in [json!(false), json!(null)] {
            let review = review(|request| request["dryRun"] = dry_run);
            let seen = go_on(&review, AdmissionStage::Validate, admitted(), handed);
            assert_eq!(seen.warnings, ["first (r)"]);
            assert_eq!((seen.placed.len(), seen.hinted), (0, vec!["train/p".to_owned()]));
            let line = format!("berth_admission_hints_total{{outcome=\"{label}\"}} 1");
            assert!(seen.metrics.contains(&line), "{}", seen.metrics);
        }
    }
}

#[test]
fn whatever_is_no_new_pod_that_is_let_in_goes_no_further() {
    let update = |request: &mut Value| {
        request["operation"] = "UPDATE".into();
        request["oldObject"] = request["object"].clone();
    };
    let workload = |request: &mut Value| {
        request["resource"] = json!({"group": "apps", "version": "v1", "resource": "deployments"});
        request["object"] = json!({"spec": {"template": {"spec": {"containers": []}}}});
    };
    let cases = [
        (review(|_| {}), AdmissionStage::Mutate, admitted()),
        (review(|_| {}), AdmissionStage::Validate, denied()),
        (review(|_| {}), AdmissionStage::Validate, Verdict::Ignored),
        (review(update), AdmissionStage::Validate, admitted()),
        (review(workload), AdmissionStage::Validate, admitted()),
    ];
    for (mut review, stage, verdict) in cases {
        for dry_run in [true, false] {
            review["request"]["dryRun"] = dry_run.into();
            let seen = go_on(&review, stage, verdict.clone(), Handed::Taken);
            assert_eq!((seen.placed.len(), seen.hinted.len()), (0, 0), "{stage:?} {verdict:?} {review}");
        }
    }
}

#[test]
fn a_pod_too_large_to_wait_in_memory_is_no_hint() {
    let large = review(|request| {
        request["object"]["metadata"]["annotations"] = json!({"note": "x".repeat(HINT_LIMIT)});
    });
    let seen = go_on(&large, AdmissionStage::Validate, admitted(), Handed::Taken);
    assert_eq!(seen.hinted.len(), 0);
    assert!(seen.metrics.contains("berth_admission_hints_total{outcome=\"dropped\"} 1"));
}
