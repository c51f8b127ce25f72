//! Pods that are built to be expensive: their review costs about as much as they are long, and their answer is short.
//!
//! Work is counted in steps and memory in allocations, never in time.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use berth::{
    admission::{
        AdmissionStage, Facts, InventorySummary, NodeOffer, Operation, Request, Severity, Verdict, Work,
        review_within,
    },
    config::Config,
    object::{Pod, Workloads},
    webhook::{Judge, answer},
};
use serde_json::{Value, json};

use super::facts::Given;

/// Bytes of a pod: what the API server stores at most is about as much.
const LARGE: usize = 1_500_000;

/// Steps for what is optional, and for each byte of the pod and of what is known of the cluster.
const STEPS: (usize, usize) = (1_000_000, 4);

/// The longest answer without its patch, in bytes.
const LONGEST_ANSWER: usize = 16 * 1024;

/// 300 nodes with 8 cards each, no two of one size; a namespace with hints of its own, and a quota.
fn facts(never_fits: Severity) -> Facts {
    let ids = |all: std::ops::Range<usize>| all.map(uuid).collect::<Vec<_>>().join(",");
    let given = json!({
        "namespaces": [{"metadata": {"name": "train", "annotations": {
            "nvidia.com/use-gpuuuid": ids(0..2000), "nvidia.com/nouse-gpuuuid": ids(2300..2320), "nvidia.com/use-gputype": "A100",
        }}}],
        "quotas": [{"namespace": "train", "name": "q", "hard": {"limits.nvidia.com/gpumem": "1000000000"}}],
    });
    let mut facts = serde_json::from_value::<Given>(given).unwrap().facts();
    let node = |at: usize| {
        let card = |index: usize| {
            json!({"id": uuid(8 * at + index), "index": index, "count": 10, "devmem": 16_384 + 8 * at + index, "devcore": 100,
                "type": "NVIDIA-A100", "mode": "hami-core", "health": true})
        };
        let register = Value::Array((0..8).map(card).collect()).to_string();
        let metadata =
            json!({"name": format!("n{at}"), "annotations": {"hami.io/node-nvidia-register": register}});
        NodeOffer::read(&serde_json::from_value(json!({ "metadata": metadata })).unwrap(), &facts.dialects)
    };
    facts.inventory = Some(Arc::new(InventorySummary::new((0..300).map(node))));
    facts.settings.guards.never_fits = never_fits;
    facts
}

fn uuid(at: usize) -> String {
    format!("GPU-{:08x}-1c2d-4e3f-8a5b-{at:012x}", at.wrapping_mul(2_654_435_761) % (1 << 32))
}

/// As many pieces as fit into a large pod.
fn filled(piece: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for at in 0.. {
        write!(text, "{}", piece(at)).unwrap();
        if text.len() >= LARGE {
            break;
        }
    }
    text
}

fn pod(annotations: &Value, containers: &Value) -> Value {
    json!({"metadata": {"name": "p", "annotations": annotations}, "spec": {"containers": containers}})
}

fn annotated(annotations: &Value) -> Value {
    pod(
        annotations,
        &json!([{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 4000}}}]),
    )
}

/// A pod that asks for NICs with this hint.
fn of_devices(hint: &str) -> Value {
    pod(
        &json!({"scheduling.koordinator.sh/device-allocate-hint": hint}),
        &json!([{"name": "c", "resources": {"limits": {"koordinator.sh/rdma": 100}}}]),
    )
}

fn of_containers(count: usize, limits: impl Fn(usize) -> Value) -> Value {
    let container = |at: usize| json!({"name": format!("c{at}"), "resources": {"limits": limits(at)}});
    pod(&json!({}), &Value::Array((0..count).map(container).collect()))
}

/// What a pod is expensive for, the pod, and the outcome of its review.
type Case = (&'static str, Value, &'static str);

fn hostile() -> Vec<Case> {
    [of_lists(), of_shape()].concat()
}

/// Long annotations, and many.
fn of_lists() -> Vec<Case> {
    let strange = |count: usize| (0..count).map(|at| uuid(100_000 + at)).collect::<Vec<_>>().join(",");
    let nearly: BTreeMap<_, _> =
        (0..40_000).map(|at| (format!("nvidia.com/use-gpu-uu{at:05}"), "x")).collect();
    let words: Vec<_> = (0..128).map(|at| format!("{}{at:03}", "x".repeat(60))).collect();
    vec![
        ("245 KB of unknown cards", annotated(&json!({"nvidia.com/use-gpuuuid": strange(6000)})), "denied"),
        ("unknown cards", annotated(&json!({"nvidia.com/nouse-gpuuuid": strange(1000)})), "admitted"),
        ("one long card", annotated(&json!({"nvidia.com/use-gpuuuid": "G".repeat(LARGE)})), "denied"),
        (
            "short cards",
            annotated(&json!({"nvidia.com/nouse-gpuuuid": filled(|at| format!("{at},"))})),
            "denied",
        ),
        (
            "unwanted types",
            annotated(&json!({"nvidia.com/use-gputype": filled(|at| format!("{at}a,")),
                "nvidia.com/nouse-gputype": filled(|at| format!("{at}b,"))})),
            "denied",
        ),
        (
            "as many types as are compared",
            annotated(
                &json!({"nvidia.com/use-gputype": words.join(","), "nvidia.com/nouse-gputype": words.join("y,")}),
            ),
            "denied",
        ),
        ("only commas", annotated(&json!({"nvidia.com/nouse-gputype": ",".repeat(LARGE)})), "denied"),
        ("keys that are nearly hints", annotated(&json!(nearly)), "admitted"),
        ("one long key", annotated(&json!({format!("nvidia.com/{}", "-".repeat(LARGE)): "x"})), "admitted"),
        (
            "values of a selector of devices",
            of_devices(&format!(
                r#"{{"rdma":{{"selector":{{"matchExpressions":[{{"key":"a","operator":"NotIn","values":["a"{}]}}]}}}}}}"#,
                filled(|at| format!(r#","{at}""#))
            )),
            "denied",
        ),
        (
            "types of devices",
            of_devices(&format!(r#"{{"rdma":{{}}{}}}"#, filled(|at| format!(r#","t{at}":{{}}"#)))),
            "denied",
        ),
        (
            "policies",
            annotated(&json!({"hami.io/gpu-scheduler-policy": filled(|at| format!("p{at},"))})),
            "admitted",
        ),
    ]
}

/// Long fields and lists of the spec.
fn of_shape() -> Vec<Case> {
    let of_nodes = |count: usize| {
        let names: Vec<_> = (0..count).map(|at| format!("n{at}")).collect();
        let mut pod = annotated(&json!({}));
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = json!({
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}]});
        pod
    };
    let mut mounts = annotated(&json!({}));
    mounts["spec"]["volumes"] =
        (0..10_000).map(|at| json!({"name": format!("v{at}"), "hostPath": {"path": "/dev"}})).collect();
    let bare = |at: usize| json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": at});
    vec![
        ("a long mode", annotated(&json!({"nvidia.com/vgpu-mode": "x".repeat(LARGE)})), "denied"),
        ("a long mark", annotated(&json!({"volcano.sh/preemptable": "x".repeat(LARGE)})), "denied"),
        ("nodes", of_nodes(1_000), "admitted"),
        ("100,000 nodes", of_nodes(100_000), "denied"),
        ("mounts", mounts, "denied"),
        ("containers of all sizes", of_containers(5_000, bare), "admitted"),
        (
            "containers that ask for too much",
            of_containers(5_000, |at| json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem": 100_000 + at})),
            "admitted",
        ),
        (
            "containers with a part of a card",
            of_containers(
                5_000,
                |at| json!({"nvidia.com/gpu": 1, "nvidia.com/gpumem-percentage": 1 + at % 100}),
            ),
            "admitted",
        ),
        (
            "containers with a percentage of cards",
            of_containers(5_000, |_| json!({"koordinator.sh/gpu": 100})),
            "admitted",
        ),
        (
            "containers with no number",
            of_containers(5_000, |_| json!({"nvidia.com/gpu": "x".repeat(40)})),
            "denied",
        ),
    ]
}

fn outcome(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ignored => "ignored",
        Verdict::Admitted { .. } => "admitted",
        Verdict::Denied { .. } => "denied",
    }
}

/// The verdict on a new pod, with this many steps for what is optional, and all steps that were taken.
fn judged(facts: &Facts, stage: AdmissionStage, pod: &Pod, optional: usize) -> (Verdict, usize) {
    let mut work = Work::of(optional);
    let request = Request { stage, operation: Operation::Create, namespace: "train", pod };
    (review_within(&request, facts, &mut work), work.spent())
}

fn read(pod: &Value) -> Pod {
    serde_json::from_value(pod.clone()).unwrap()
}

/// What the settings only warn of, they can make a refusal.
const IF_DENIED: [&str; 1] = ["containers that ask for too much"];

#[test]
fn no_review_takes_more_steps_than_its_pod_is_long_and_none_decides_by_the_steps_that_are_left() {
    let facts = [Severity::Warn, Severity::Deny].map(|severity| (severity, facts(severity)));
    let mut faults = Vec::new();
    for (what, json, expected) in hostile() {
        let (pod, bytes) = (read(&json), json.to_string().len());
        for (severity, facts) in &facts {
            let expected =
                if IF_DENIED.contains(&what) && *severity == Severity::Deny { "denied" } else { expected };
            let (with, steps) = judged(facts, AdmissionStage::Mutate, &pod, STEPS.0);
            println!("{what}: {steps} steps for {bytes} bytes");
            let without = judged(facts, AdmissionStage::Mutate, &pod, 0).0;
            if outcome(&with) != expected || !decide_alike(&with, &without) {
                faults.push(format!("{what}: {}, without steps {}", outcome(&with), outcome(&without)));
            }
            if steps > STEPS.0 + STEPS.1 * (bytes + 300_000) {
                faults.push(format!("{what}: {steps} steps for {bytes} bytes"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Whether both let the pod in with one patch, or refuse it for the same.
fn decide_alike(one: &Verdict, other: &Verdict) -> bool {
    match (one, other) {
        (Verdict::Admitted { patch, .. }, Verdict::Admitted { patch: other, .. }) => patch == other,
        (Verdict::Denied { violations, .. }, Verdict::Denied { violations: other, .. }) => {
            violations == other
        }
        (one, other) => one == other,
    }
}

#[test]
fn an_update_of_a_pod_full_of_faults_is_compared_in_few_steps() {
    let facts = facts(Severity::Warn);
    let of = |limit: &str| {
        read(&of_containers(5_000, |_| json!({"nvidia.com/gpu": limit, "nvidia.com/gpumem": limit})))
    };
    let (old, new) = (of("x"), of("y"));
    let mut work = Work::default();
    let request = Request {
        stage: AdmissionStage::Validate,
        operation: Operation::Update(&old),
        namespace: "train",
        pod: &new,
    };
    let Verdict::Denied { violations, .. } = review_within(&request, &facts, &mut work) else { panic!() };
    assert_eq!(violations.len(), 5_000, "what was wrong before is not told again");
}

#[test]
fn an_answer_is_short_and_counts_what_it_leaves_out() {
    let facts = facts(Severity::Warn);
    let judge: Judge =
        Arc::new(move |request: &Request<'_>| review_within(request, &facts, &mut Work::default()));
    for (what, json, _) in hostile() {
        let body = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {"uid": "u", "resource": {"group": "", "version": "v1", "resource": "pods"}, "namespace": "train",
                        "operation": "CREATE", "object": json},
        });
        let answer =
            answer(body.to_string().as_bytes(), AdmissionStage::Validate, &judge, &Workloads::default())
                .unwrap();
        let wire = serde_json::to_string(&answer.review).unwrap();
        assert!(wire.len() <= LONGEST_ANSWER, "{what}: {} bytes", wire.len());
        if what == "mounts" {
            let message = answer.review.response.status.unwrap().message;
            assert!(message.ends_with("; and 9984 more"), "{message}");
            assert_eq!(answer.review.response.audit_annotations["violations"], "device-mount");
        }
    }
}

#[test]
fn near_spellings_are_still_found_for_the_few_cards_that_a_person_types() {
    let facts = facts(Severity::Warn);
    let typo = |at: usize| format!("{}0", &uuid(at)[..39]);
    let ids: Vec<_> = (1..5).map(|at| typo(16 * at + 1)).collect();
    let pod = read(&annotated(&json!({"nvidia.com/nouse-gpuuuid": ids.join(",")})));
    let (verdict, _) = judged(&facts, AdmissionStage::Validate, &pod, STEPS.0);
    for at in 1..5 {
        let wanted = format!("no known card is {}; the nearest is {} ", typo(16 * at + 1), uuid(16 * at + 1));
        assert!(
            verdict.warnings().iter().any(|warning| warning.to_string().contains(&wanted)),
            "{:?}",
            verdict.warnings()
        );
    }
}

#[test]
fn a_node_that_registers_a_long_card_id_costs_no_review_anything() {
    let config = Config::default();
    let mut facts = Facts::new(config.admission_settings(), config.dialects());
    let card = json!([{"id": format!("GPU-{}", "x".repeat(150_000)), "count": 10, "devmem": 16_384, "devcore": 100,
        "type": "NVIDIA-A100", "mode": "hami-core", "health": true}]);
    let node =
        json!({"metadata": {"name": "n", "annotations": {"hami.io/node-nvidia-register": card.to_string()}}});
    let offer = NodeOffer::read(&serde_json::from_value(node).unwrap(), &facts.dialects);
    assert_eq!(offer.offers().len(), 0, "the registration is unreadable");
    facts.inventory = Some(Arc::new(InventorySummary::new([offer])));
    let pod = read(&annotated(&json!({"nvidia.com/use-gpuuuid": uuid(1)})));
    let (verdict, steps) = judged(&facts, AdmissionStage::Validate, &pod, STEPS.0);
    assert!(outcome(&verdict) == "admitted" && steps < 100_000, "{verdict:?}: {steps} steps");
}
