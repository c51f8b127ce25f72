//! Generated reviews through the webhook's own paths: every one is answered as the API server takes it, and none with a 5xx.
//!
//! `BERTH_REVIEWS=1000000 cargo test --release --test pure reviews::generated -- --nocapture` is the long run.
#![expect(clippy::disallowed_methods, reason = "how many there are is said in the environment")]

use std::{collections::BTreeMap, env, sync::Arc, thread};

use axum::{Router, body::Body};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth::{
    admission::{self, review},
    webhook::{Judge, ServerReadiness, Webhook, WebhookMetrics, router},
};
use http::{Request, StatusCode, header};
use http_body_util::BodyExt as _;
use prometheus_client::registry::Registry;
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use serde_json::{Value, json};
use tokio::{runtime::Runtime, sync::watch};
use tower::ServiceExt as _;

use super::{pods::pods, properties::facts};

/// How many, where the environment does not say.
const REVIEWS: u32 = 4_000;

/// Each runs its own part, always the same.
const THREADS: u8 = 4;

/// What is asked: a body for one of the paths.
#[derive(Clone, Debug)]
struct Asked {
    path: &'static str,
    body: Vec<u8>,
}

/// What holds pods, with its subresource and the place of the pod in it.
const SUBJECTS: [(&str, &str, &str, &str); 6] = [
    ("", "pods", "", ""),
    ("", "pods", "ephemeralcontainers", ""),
    ("", "pods", "resize", ""),
    ("", "pods", "status", ""),
    ("apps", "deployments", "", "/spec/template"),
    ("batch", "cronjobs", "", "/spec/jobTemplate/spec/template"),
];

fn object(pod: Value, place: &str) -> Value {
    let keys = place.rsplit('/').filter(|key| !key.is_empty());
    keys.fold(pod, |object, key| json!({ key: object }))
}

/// What a plugin serves, so that not every pod is refused for its amounts.
fn served() -> impl Strategy<Value = Option<Value>> {
    let limits = vec![
        json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3k"}),
        json!({"nvidia.com/gpu": 2}),
        json!({"nvidia.com/gpucores": "50", "nvidia.com/priority": "1"}),
        json!({"volcano.sh/vgpu-memory": "3000"}),
    ];
    prop::option::weighted(0.6, prop::sample::select(limits))
}

/// The pod with this one ask and no other.
fn asking(mut pod: Value, limits: &Value) -> Value {
    for list in ["initContainers", "containers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
            container.as_object_mut().unwrap().remove("resources");
        }
    }
    if let Some(first) = pod["spec"]["containers"].get_mut(0) {
        first["resources"] = json!({"limits": limits, "claims": [{"name": "kept"}]});
    }
    pod
}

prop_compose! {
    fn asked()(
        pod in pods(),
        old in pods(),
        served in served(),
        bypass in prop::option::weighted(0.2, prop::sample::select(vec![
            json!({"nodeName": "n1"}), json!({"resourceClaims": [{"name": "gpu"}]}), json!({"priorityClassName": "system-node-critical"}),
            json!({"volumes": [{"name": "dev", "hostPath": {"path": "/dev//nvidia0"}}]}), json!({"nodeSelector": {"kubernetes.io/hostname": "n1"}}),
        ])),
        operation in prop::sample::select(vec!["CREATE", "CREATE", "CREATE", "UPDATE", "DELETE", "CONNECT"]),
        (group, plural, part, place) in prop_oneof![3 => Just(SUBJECTS[0]), 1 => prop::sample::select(&SUBJECTS[..])],
        path in prop::sample::select(vec!["/mutate", "/validate"]),
        changes in prop_oneof![4 => Just(Vec::new()), 1 => prop::collection::vec((any::<Index>(), any::<u8>()), 1..4)],
    ) -> Asked {
        let mut pod = match served {
            Some(limits) => asking(pod, &limits),
            None => pod,
        };
        if let (Some(bypass), Some(spec)) = (bypass, pod["spec"].as_object_mut()) {
            spec.extend(bypass.as_object().unwrap().clone());
        }
        let old = if operation == "UPDATE" { object(old, place) } else { Value::Null };
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u-1", "resource": {"group": group, "version": "v1", "resource": plural}, "subResource": part,
                        "namespace": "train", "operation": operation, "object": object(pod, place), "oldObject": old},
        });
        let mut body = review.to_string().into_bytes();
        for (index, byte) in changes {
            let at = index.index(body.len());
            body[at] = byte;
        }
        Asked { path, body }
    }
}

fn paths() -> Router {
    let facts = facts();
    let judge: Judge = Arc::new(move |request: &admission::Request<'_>| review(request, &facts));
    let mut registry = Registry::default();
    let metrics = WebhookMetrics::register(&mut registry);
    let (_, readiness) = watch::channel(ServerReadiness::Ready);
    router(Webhook::new(judge, metrics, Arc::new(registry), readiness))
}

/// The answer of a path: its status and its body.
fn answered(runtime: &Runtime, router: &Router, path: &str, body: Vec<u8>) -> (StatusCode, Value) {
    let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body)).unwrap();
    runtime.block_on(async {
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    })
}

/// What came of a review, in one word, once all that must hold of it was seen to hold.
fn judge(runtime: &Runtime, router: &Router, Asked { path, body }: &Asked) -> &'static str {
    let (status, answer) = answered(runtime, router, path, body.clone());
    if status == StatusCode::BAD_REQUEST {
        assert!(answer["message"].is_string(), "{answer}");
        return "no review";
    }
    assert_eq!(status, StatusCode::OK, "{answer}");
    let sent: Value = serde_json::from_slice(body).unwrap();
    let response = &answer["response"];
    assert_eq!((&answer["kind"], &response["uid"]), (&json!("AdmissionReview"), &sent["request"]["uid"]));
    let Some(patch) = response["patch"].as_str() else {
        assert_eq!(response["allowed"], Value::Bool(response["status"].is_null()), "{answer}");
        return if response["allowed"] == true { "allowed as it is" } else { "refused" };
    };
    assert_eq!(
        (*path, &response["allowed"], &response["patchType"]),
        ("/mutate", &json!(true), &json!("JSONPatch"))
    );
    let patch: json_patch::Patch = serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
    let mut patched = sent;
    json_patch::patch(&mut patched["request"]["object"], &patch).unwrap();
    for path in ["/mutate", "/validate"] {
        let (status, again) = answered(runtime, router, path, patched.to_string().into_bytes());
        assert_eq!((status, &again["response"]["allowed"]), (StatusCode::OK, &json!(true)), "{again}");
        assert_eq!(again["response"]["patch"], Value::Null, "a pod was changed twice");
    }
    "patched"
}

/// One thread's part.
fn part(number: u8, cases: u32) -> BTreeMap<&'static str, u32> {
    let (router, runtime) =
        (paths(), tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[number; 32]);
    let counted = std::cell::RefCell::new(BTreeMap::new());
    let outcome = TestRunner::new_with_rng(config, rng).run(&asked(), |asked| {
        *counted.borrow_mut().entry(judge(&runtime, &router, &asked)).or_insert(0) += 1;
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    counted.into_inner()
}

#[test]
fn generated_reviews_are_all_answered() {
    let reviews = env::var("BERTH_REVIEWS").map_or(REVIEWS, |number| number.parse().unwrap());
    let parts = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| scope.spawn(move || part(number, reviews.div_ceil(THREADS.into()))))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let mut counted = BTreeMap::<_, u32>::new();
    for (outcome, number) in parts.into_iter().flatten() {
        *counted.entry(outcome).or_default() += number;
    }
    println!("{} reviews: {counted:?}", counted.values().sum::<u32>());
    assert!(
        ["no review", "refused", "patched", "allowed as it is"]
            .iter()
            .all(|outcome| counted.contains_key(outcome))
    );
}
