//! What the API tells those who may list the pods of no namespace, of some, and of all: each answer of each path, on a cluster whose names are hostile.

#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::ControlFlow,
    sync::Arc,
};

#[path = "support/hami.rs"]
mod hami;

use axum::{Router, body::Body};
use berth::{
    admission::Facts,
    api::{
        self, Api,
        router::PREFIX,
        source::AnswerSources,
        viewer::{Sees, Viewer, Viewers},
        what_if::{LONGEST_QUESTION, MOST_NAMES, MOST_NODES, MOST_PODS},
    },
    app::entrance,
    cluster::{
        BinderView, Reader,
        report::overview::{Leading, Overview, Recount},
    },
    config::Config,
    object::{Node, Pod, ResourceQuota, workload::Places},
    scheduling::{
        Details, Event, NodeChange, ObjectChange, PodChange, QuotaChange, Scheduler,
        model::{kind::Kind, message::Message},
        scheduler::{Pace, Settings},
    },
    simulation::{ClusterLists, Explain, SimulationError, SimulationStage, simulate},
    webhook::ServerReadiness,
};
use hami::{bound, node, pod};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// The namespaces of the cluster; the names of a namespace's pods, and of its quota, have its mark in them.
const TEAMS: [(&str, &str); 3] = [("team-a", "mark-of-a"), ("team-b", "mark-of-b"), ("team-c", "mark-of-c")];

/// What stands in names beside the mark: an API server would refuse most of it, and nothing may depend on that.
const HOSTILE: [&str; 4] =
    ["plain", "<script>alert(1)</script>", "\u{1b}[31m\u{202e}x", "../../team-c/x?y#z\"'"];

/// MiB of a card.
const CARD: u32 = 40_000;

fn now() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

fn read<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap()
}

/// A cluster with pods of every team that hold shares, and that wait.
fn company() -> Vec<Value> {
    let mut objects = vec![node("gpu-1", 4, CARD), node("gpu-2", 1, CARD)];
    for (at, (namespace, mark)) in (0..).zip(TEAMS) {
        for (number, hostile) in (0..).zip(HOSTILE) {
            let name = format!("{mark}-{hostile}");
            let card = format!("GPU-gpu-1-{number}");
            objects.push(bound(pod(namespace, &format!("held-{name}"), (1, 12_000)), "gpu-1", &card, 12_000));
            objects.push(pod(namespace, &format!("waits-{name}"), (1, 50_000 + at)));
        }
        objects.push(json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": format!("quota-{mark}"), "namespace": namespace},
            "spec": {"hard": {"requests.nvidia.com/gpumem": "1000000"}},
        }));
    }
    objects
}

struct Shown {
    router: Router,
}

/// The scheduler after its first turn on these objects, and what has read them.
fn scheduler(objects: &[Value], config: &Config) -> (Scheduler, Arc<Reader>) {
    let reader = Arc::new(config.reader());
    let of = |kind: &'static str| objects.iter().filter(move |object| object["kind"] == kind);
    let nodes = of("Node").map(|node| reader.node(&read::<Node>(node)).0).collect();
    let pods = of("Pod").map(|pod| reader.pod(&read::<Pod>(pod)).0).collect();
    let quotas = of("ResourceQuota").map(|quota| reader.quota(&read::<ResourceQuota>(quota)).0).collect();
    let settings = Settings { device_resources: reader.device_resources(), ..config.scheduler_settings() };
    let mut scheduler = Scheduler::new(settings);
    let first = [
        Event::Pod(PodChange::Listed(pods)),
        Event::Node(NodeChange::Listed(nodes)),
        Event::Quota(QuotaChange::Listed(quotas)),
    ];
    let others = Kind::ALL.iter().map(|kind| Event::Object(ObjectChange::Listed(*kind, Vec::new())));
    for event in first.into_iter().chain(others) {
        scheduler.observe(event, now());
    }
    scheduler.settle(now());
    (scheduler, reader)
}

impl Shown {
    /// The API on these objects, for somebody who sees so much.
    fn to(objects: &[Value], sees: Sees) -> Self {
        let config = Config::default();
        let (scheduler, reader) = scheduler(objects, &config);
        let scheduler = Arc::new(scheduler);
        let (facts, settings) =
            (Facts::new(config.admission_settings(), config.dialects()), config.scheduler_settings());
        let shared = Arc::clone(&scheduler);
        let overview = move || Overview {
            at: now(),
            leading: Leading::Yes,
            details: Details::Full,
            view: BinderView { reader: reader.clone(), outlook: shared.view().outlook() },
            holders: shared.snapshot().ledger().shared(),
            pending: shared.view().pending(),
        };
        let planned = Arc::clone(&scheduler);
        let sources = AnswerSources {
            look: Arc::new(move || {
                let overview = overview();
                Box::pin(async move { Ok(Some(overview)) })
            }),
            snapshot: Arc::new(move || {
                let snapshot = planned.snapshot().clone();
                Box::pin(async move { Ok(Some(snapshot)) })
            }),
            recount: Arc::new(move || {
                let recount = Recount::of(&scheduler);
                Box::pin(async move { Ok(recount) })
            }),
            admit: Arc::new(move |pod, namespace, classes| {
                entrance::entered((pod, namespace, &Places::default()), &facts, classes)
            }),
            workloads: Arc::default(),
            settings: Arc::new(settings),
            pod: Arc::new(|_, _| Box::pin(async { Ok(None) })),
            pods: Arc::new(|| Box::pin(async { Ok(Vec::new()) })),
            usage: Arc::new(|| Box::pin(async { Ok(None) })),
        };
        let viewers: Viewers = Arc::new(move |_, asked: BTreeSet<Arc<str>>| {
            let sees = match &sees {
                Sees::All => Sees::All,
                Sees::Namespaces(some) => Sees::Namespaces(some.intersection(&asked).cloned().collect()),
            };
            Box::pin(async move { Ok(Viewer { user: "ada".to_owned(), sees }) })
        });
        // The sender may go: a readiness that does not change is as good.
        let (_, readiness) = watch::channel(ServerReadiness::Ready);
        Self { router: api::router(Arc::new(Api::new(sources, viewers, readiness, "e".to_owned()))) }
    }

    async fn ask(&self, request: Request<Body>) -> (StatusCode, Value) {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap())
    }

    async fn get(&self, path: &str) -> (StatusCode, Value) {
        self.ask(Request::get(format!("{PREFIX}{path}")).body(Body::empty()).unwrap()).await
    }

    async fn what_if(&self, question: &Value) -> (StatusCode, Value) {
        let body = Body::from(question.to_string());
        let request = Request::post(format!("{PREFIX}/what-if")).header("content-type", "application/json");
        self.ask(request.body(body).unwrap()).await
    }

    /// What it says to a question that is refused.
    async fn refused(&self, question: &Value, expected: StatusCode) -> String {
        let (status, answer) = self.what_if(question).await;
        assert_eq!(status, expected, "{answer}");
        answer["message"].as_str().unwrap().to_owned()
    }
}

fn sees(namespaces: &[&str]) -> Sees {
    Sees::Namespaces(namespaces.iter().map(|&namespace| namespace.into()).collect())
}

fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |encoded, byte| encoded + &format!("%{byte:02X}"))
}

/// Every path that a GET may ask, for every name of the cluster.
fn paths(objects: &[Value]) -> Vec<String> {
    let mut paths: Vec<String> =
        ["/fleet", "/queue", "/fits", "/top", "/moves", "/moves?free=1"].map(str::to_owned).into();
    paths.extend(
        ["/nodes/gpu-1", "/nodes/gpu-2", "/cards/GPU-gpu-1-0", "/cards/GPU-gpu-1-3"].map(str::to_owned),
    );
    for (namespace, _) in TEAMS {
        paths.extend([format!("/namespaces/{namespace}"), format!("/top?namespace={namespace}")]);
    }
    for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
        let [namespace, name] = ["namespace", "name"].map(|key| pod["metadata"][key].as_str().unwrap());
        let path = format!("/namespaces/{namespace}/pods/{}", escaped(name));
        paths.extend([format!("{path}/change"), path]);
    }
    paths
}

/// A question in which every kind of name may come up: a pod that could only go where others are, on a changed cluster.
fn question(namespace: &str) -> Value {
    json!({
        "pods": [pod(namespace, "asked", (1, 10_000)), pod(namespace, "important", (4, 40_000))],
        "addNodes": {"count": 1, "like": "gpu-2"}, "cordon": ["gpu-2"], "priority": 1000,
    })
}

#[tokio::test]
async fn no_answer_names_a_pod_of_a_namespace_that_the_viewer_may_not_list() {
    let objects = company();
    for seen in [&[][..], &["team-a"], &["team-a", "team-b"], &["team-a", "team-b", "team-c"]] {
        let shown = Shown::to(&objects, sees(seen));
        let mut answers = Vec::new();
        for path in paths(&objects) {
            answers.push((path.clone(), shown.get(&path).await));
        }
        for (namespace, _) in TEAMS {
            answers.push((format!("what-if in {namespace}"), shown.what_if(&question(namespace)).await));
        }
        for (namespace, mark) in TEAMS {
            let may = seen.contains(&namespace);
            for (path, (status, answer)) in &answers {
                let (of_team, text) = (path.contains(namespace), answer.to_string());
                if of_team && !may {
                    // What was asked for is told by name: that it may not be seen, whether it is there or not.
                    assert_eq!(*status, StatusCode::FORBIDDEN, "{path} for {seen:?}: {text}");
                } else if !of_team {
                    assert!(may || !text.contains(mark), "{path} for {seen:?} tells {mark}: {text}");
                }
            }
            let named = |path: &str| {
                answers.iter().any(|(of, (_, answer))| of == path && answer.to_string().contains(mark))
            };
            assert_eq!(named("/fleet"), may, "{namespace} for {seen:?}");
            assert_eq!(named("/queue"), may, "{namespace} for {seen:?}");
            if let Some((own, _)) = TEAMS.iter().find(|(own, _)| seen.contains(own)) {
                assert_eq!(named(&format!("what-if in {own}")), may, "{namespace} for {seen:?}");
            }
        }
        for (path, (status, answer)) in &answers {
            assert_ne!(*status, StatusCode::INTERNAL_SERVER_ERROR, "{path}: {answer}");
        }
    }
}

/// The same without what is shown by rights.
fn amounts(answer: &Value) -> Value {
    match answer {
        Value::Object(fields) => {
            let named = [
                "shares",
                "holders",
                "namespace",
                "pod",
                "message",
                "viewer",
                "version",
                "pods",
                "others",
                "victims",
                "otherVictims",
            ];
            let fields = fields.iter().filter(|(key, _)| !named.contains(&key.as_str()));
            Value::Object(fields.map(|(key, value)| (key.clone(), amounts(value))).collect())
        }
        Value::Array(items) => items.iter().map(amounts).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn amounts_are_the_same_for_everybody() {
    let objects = company();
    let all = Shown::to(&objects, Sees::All);
    for seen in [&[][..], &["team-a"]] {
        let some = Shown::to(&objects, sees(seen));
        for path in ["/fleet", "/queue", "/fits", "/nodes/gpu-1", "/cards/GPU-gpu-1-2"] {
            let [(_, all), (status, some)] = [all.get(path).await, some.get(path).await];
            assert_eq!(status, StatusCode::OK, "{path}");
            assert_eq!(amounts(&some), amounts(&all), "{path} for {seen:?}");
        }
    }
    let some = Shown::to(&objects, sees(&["team-a"]));
    let question = question("team-a");
    let [(_, all), (_, some)] = [all.what_if(&question).await, some.what_if(&question).await];
    assert_eq!(amounts(&some), amounts(&all));
    let victims = |answer: &Value| {
        let named = answer["pods"][1]["victims"].as_array().map_or(0, Vec::len);
        (named, answer["pods"][1]["otherVictims"].as_u64())
    };
    assert_eq!((victims(&all), victims(&some)), ((12, None), (4, Some(8))), "{some}");
    // Of each card of the first node, two of its three holders are of other teams.
    let cards = |answer: &Value| answer["nodes"][0]["cards"].as_array().unwrap().clone();
    assert_eq!(cards(&all).iter().map(|card| card["pods"].as_array().unwrap().len()).max(), Some(3));
    for card in cards(&some).iter().take(4) {
        assert_eq!((card["pods"].as_array().unwrap().len(), &card["others"]), (1, &json!(2)), "{card}");
    }
}

#[tokio::test]
async fn a_cluster_without_anything_is_answered_too() {
    let shown = Shown::to(&[], sees(&["team-a"]));
    for path in ["/fleet", "/queue", "/fits", "/top", "/moves"] {
        assert_eq!(shown.get(path).await.0, StatusCode::OK, "{path}");
    }
    for path in ["/nodes/gpu-1", "/cards/GPU-gpu-1-0", "/namespaces/team-a/pods/none"] {
        assert_eq!(shown.get(path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    // Whoever may list the pods of a namespace may do so while there are none.
    for (namespace, expected) in [("team-a", StatusCode::OK), ("team-b", StatusCode::FORBIDDEN)] {
        for path in [format!("/namespaces/{namespace}"), format!("/top?namespace={namespace}")] {
            assert_eq!(shown.get(&path).await.0, expected, "{path}");
        }
    }
    let (status, answer) = shown.what_if(&json!({"pods": [pod("team-a", "asked", (1, 1_000))]})).await;
    assert_eq!(
        (status, &answer["pods"][0]["outcome"]),
        (StatusCode::OK, &json!("Unschedulable")),
        "{answer}"
    );
    assert_eq!(answer["nodes"], json!([]));
}

#[tokio::test]
async fn a_changed_cluster_is_answered_and_the_real_one_is_as_it_was() {
    let objects = company();
    let shown = Shown::to(&objects, sees(&["team-a"]));
    let outcome = async |change: Value| {
        let mut question = json!({"pods": [pod("team-a", "asked", (1, 35_000))]});
        for (key, value) in change.as_object().unwrap() {
            question[key] = value.clone();
        }
        let (status, answer) = shown.what_if(&question).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        (answer["pods"][0]["outcome"].clone(), answer["pods"][0]["node"].clone())
    };
    assert_eq!(outcome(json!({})).await, (json!("Bound"), json!("gpu-2")));
    assert_eq!(outcome(json!({"cordon": ["gpu-2"]})).await, (json!("Unschedulable"), Value::Null));
    let added = json!({"cordon": ["gpu-2"], "addNodes": {"count": 1, "like": "gpu-1"}});
    assert_eq!(outcome(added).await, (json!("Bound"), json!("gpu-1-added-1")));
    let own = format!("team-a/held-{}-{}", TEAMS[0].1, HOSTILE[0]);
    let less = json!({"cordon": ["gpu-2"], "without": [own]});
    assert_eq!(outcome(less).await, (json!("Unschedulable"), Value::Null), "two others hold the card");
    let (_, after) = shown.get("/fleet").await;
    assert_eq!(after["waiting"]["pods"], 12, "{after}");
}

#[tokio::test]
async fn a_pod_that_may_not_be_seen_is_one_that_does_not_exist() {
    let objects = company();
    let shown = Shown::to(&objects, sees(&["team-a"]));
    let without = async |pod_name: &str| {
        let question = json!({"pods": [pod("team-a", "asked", (1, 1_000))], "without": [pod_name]});
        shown.refused(&question, StatusCode::NOT_FOUND).await
    };
    let theirs = format!("team-b/held-{}-plain", TEAMS[1].1);
    for name in [&*theirs, "team-b/none", "team-a/none"] {
        assert_eq!(without(name).await, format!("pods \"{name}\" not found"));
    }
    // A pod can't be put in the place of another by its uid.
    let mut replaced = pod("team-a", "asked", (1, 1_000));
    replaced["metadata"]["uid"] = format!("team-b/held-{}-plain", TEAMS[1].1).into();
    let (_, answer) = shown.what_if(&json!({"pods": [replaced]})).await;
    let others = |answer: &Value| answer["nodes"][0]["cards"][0]["others"].clone();
    assert_eq!((&answer["pods"][0]["outcome"], others(&answer)), (&json!("Bound"), json!(2)), "{answer}");
}

#[tokio::test]
async fn a_question_that_is_wrong_or_too_large_is_refused_by_name() {
    let shown = Shown::to(&company(), sees(&["team-a"]));
    let asked = pod("team-a", "asked", (1, 1_000));
    let with = |key: &str, value: Value| {
        let mut question = json!({"pods": [asked]});
        question[key] = value;
        question
    };
    let edited = |edit: fn(&mut Value)| {
        let mut pod = asked.clone();
        edit(&mut pod);
        json!({"pods": [pod]})
    };
    let many = |count: usize| json!(vec!["team-a/x"; count]);
    let workload = |kind: &str, spec: Value| {
        let metadata = json!({"name": "web", "namespace": "team-a"});
        json!({"pods": [{"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}]})
    };
    for (question, said) in [
        (json!({}), "the body: missing field `pods`"),
        (json!({"pods": []}), "pods: there is none"),
        (with("priorty", json!(1)), "unknown field `priorty`"),
        (with("pods", json!(vec![&asked; MOST_PODS + 1])), "pods: 65 is more than 64"),
        (with("without", many(MOST_NAMES + 1)), "without: 257 is more than 256"),
        (with("cordon", many(MOST_NAMES + 1)), "cordon: 257 is more than 256"),
        (
            with("addNodes", json!({"count": MOST_NODES + 1, "like": "gpu-1"})),
            "addNodes.count: 1001 is more than 1000",
        ),
        (with("without", json!(["asked"])), "without: \"asked\" does not name a pod as NAMESPACE/NAME"),
        (
            edited(|pod| pod["kind"] = "Secret".into()),
            "pods[0].kind: \"Secret\" is neither Pod nor a workload",
        ),
        (
            edited(|pod| drop(pod.as_object_mut().unwrap().remove("kind"))),
            "pods[0].kind: \"\" is neither Pod nor",
        ),
        (edited(|pod| pod["kind"] = "Deployment".into()), "pods[0].kind: \"Deployment\" is neither Pod nor"),
        (workload("Deployment", json!({})), "pods[0].spec.template: is missing"),
        (
            workload("Deployment", json!({"replicas": MOST_PODS + 1, "template": asked})),
            "pods: with pods[0] there are more than 64 pods",
        ),
        (
            workload("Deployment", json!({"replicas": 0, "template": asked})),
            "pods: the workloads make no pod",
        ),
        (
            workload("DaemonSet", json!({"template": asked})),
            "pods[0].kind: a DaemonSet makes a pod for each node; ask about one of them",
        ),
        (
            workload("Deployment", json!({"template": {"spec": {"containers": "none"}}})),
            "pods[0].spec.template.spec.containers",
        ),
        (edited(|pod| pod["spec"]["nodeName"] = "gpu-1".into()), "pods[0].spec.nodeName"),
        (edited(|pod| pod["spec"]["containers"] = "none".into()), "pods[0].spec.containers"),
    ] {
        let told = shown.refused(&question, StatusCode::BAD_REQUEST).await;
        assert!(told.contains(said), "{said}: {told}");
    }
    for change in [json!({"cordon": ["none"]}), json!({"addNodes": {"count": 1, "like": "none"}})] {
        let (key, value) = change.as_object().unwrap().iter().next().unwrap();
        let told = shown.refused(&with(key, value.clone()), StatusCode::NOT_FOUND).await;
        assert_eq!(told, "nodes \"none\" not found");
    }
    let long = with("cordon", json!(["x".repeat(LONGEST_QUESTION)]));
    let told = shown.refused(&long, StatusCode::PAYLOAD_TOO_LARGE).await;
    assert_eq!(told, "the body is larger than 262144 bytes");
    let theirs = json!({"pods": [pod("team-b", "asked", (1, 1_000))]});
    let told = shown.refused(&theirs, StatusCode::FORBIDDEN).await;
    assert!(told.contains("cannot list resource \"pods\""), "{told}");
    let denied =
        edited(|pod| pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpumem"] = "-1".into());
    let (status, answer) = shown.what_if(&denied).await;
    assert_eq!((status, &answer["pods"][0]["outcome"]), (StatusCode::OK, &json!("Denied")), "{answer}");
}

#[tokio::test]
async fn the_pods_of_workloads_are_asked_about_under_the_names_that_they_would_have() {
    let shown = Shown::to(&company(), sees(&["team-a"]));
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": pod("", "", (1, 1_000))["spec"]});
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team-a"},
        "spec": {"replicas": 2, "template": template}});
    let asked = pod("team-a", "asked", (1, 1_000));
    let (status, answer) = shown.what_if(&json!({"pods": [web, asked]})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let pods = answer["pods"].as_array().unwrap().iter();
    let told: Vec<_> =
        pods.map(|pod| (pod["name"].as_str().unwrap(), pod["outcome"].as_str().unwrap())).collect();
    assert_eq!(told, [("web-0", "Bound"), ("web-1", "Bound"), ("asked", "Bound")]);
    let theirs = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "team-b"},
        "spec": {"template": template}});
    shown.refused(&json!({"pods": [theirs]}), StatusCode::FORBIDDEN).await;
}

#[test]
fn a_simulation_that_takes_too_long_is_given_up() {
    let config = Config::default();
    let (scheduler, reader) = scheduler(&company(), &config);
    let Some(Recount::Events(seen)) = Recount::of(&scheduler) else { panic!("everything is listed") };
    let stage = SimulationStage {
        settings: Settings {
            device_resources: reader.device_resources(),
            pace: Pace::OneByOne,
            ..config.scheduler_settings()
        },
        lists: ClusterLists::seen(seen),
        rows: BTreeMap::new(),
        positions: HashMap::new(),
        allocated: BTreeMap::new(),
    };
    let mut turns = 0;
    let mut go_on = || {
        turns += 1;
        if turns < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let told = |message: Message| message.full;
    let halted = simulate(stage, &reader, (Explain::Nothing, &told), now(), &mut go_on);
    assert_eq!((halted.unwrap_err(), turns), (SimulationError::Halted, 3));
}
