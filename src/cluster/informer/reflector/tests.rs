//! An API server that follows a script: which list or watch is asked for, and what it answers.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{Arc, Mutex},
};

use futures::FutureExt as _;
use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::object::Node;

/// What is asked, and how it is answered.
struct ReflectorTurn {
    asked: &'static str,
    status: u16,
    lines: Vec<Value>,
    end: End,
}

/// What becomes of a connection once everything was said.
#[derive(Clone, Copy)]
enum End {
    Closed,
    Open,
}

const LIST: &str = "list";
const REST: &str = "list from b";

fn lists(asked: &'static str, metadata: &Value, names: &[&str]) -> ReflectorTurn {
    let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    ReflectorTurn {
        asked,
        status: 200,
        lines: vec![json!({"metadata": metadata, "items": items})],
        end: End::Closed,
    }
}

fn listed(version: &str, names: &[&str]) -> ReflectorTurn {
    lists(LIST, &json!({"resourceVersion": version}), names)
}

fn watches(asked: &'static str, lines: &[Value], end: End) -> ReflectorTurn {
    ReflectorTurn { asked, status: 200, lines: lines.to_vec(), end }
}

fn refuses(asked: &'static str, code: u16) -> ReflectorTurn {
    let status = json!({"kind": "Status", "status": "Failure", "message": "no", "code": code});
    ReflectorTurn { asked, status: code, lines: vec![status], end: End::Closed }
}

fn event(kind: &str, name: &str, version: &str) -> Value {
    json!({"type": kind, "object": {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "resourceVersion": version}}})
}

fn gone() -> Value {
    json!({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "message": "too old", "code": 410}})
}

/// What was asked for, in the words of the script.
fn asked(query: &str) -> String {
    let of = |key: &str| query.split('&').find_map(|pair| pair.strip_prefix(key)).unwrap_or_default();
    match (query.contains("watch=true"), of("continue=")) {
        (true, _) => format!("watch from {}", of("resourceVersion=")),
        (false, "") => LIST.to_owned(),
        (false, token) => format!("list from {token}"),
    }
}

fn body(turn: &ReflectorTurn) -> axum::body::Body {
    let lines: Vec<_> = turn.lines.iter().map(|line| Ok::<_, std::io::Error>(format!("{line}\n"))).collect();
    let lines = stream::iter(lines);
    match turn.end {
        End::Closed => axum::body::Body::from_stream(lines),
        End::Open => axum::body::Body::from_stream(lines.chain(stream::pending())),
    }
}

/// What is told by an API server that does this and then answers nothing any more, as far as it comes within a minute.
async fn told(script: impl IntoIterator<Item = ReflectorTurn>) -> Vec<String> {
    let script = Arc::new(Mutex::new(script.into_iter().collect::<VecDeque<_>>()));
    let turns = script.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let turn = turns.lock().unwrap().pop_front();
        async move {
            let Some(turn) = turn else { return std::future::pending().await };
            assert_eq!(asked(request.uri().query().unwrap_or_default()), turn.asked);
            let response = Response::builder().status(turn.status);
            Ok::<_, std::convert::Infallible>(response.body(body(&turn)).unwrap())
        }
    });
    let client = Client::new(service, "default");
    let read = |node: &Node, unread: &[Unread]| match unread {
        [] => node.metadata.name.clone(),
        [first, ..] => format!("{} without {}", node.metadata.name, first.field),
    };
    let objects = UnreadObjects::default();
    let mut told = pin!(reflect(client, ObjectSelection::default(), objects, read).map(
        |told: ReflectorEvent<Node, String>| match told {
            ReflectorEvent::Listed(all) => format!("all: {}", all.join(" ")),
            ReflectorEvent::Seen(name) => format!("seen: {name}"),
            ReflectorEvent::Unserved => "unserved".to_owned(),
            ReflectorEvent::Gone(node) => format!("gone: {}", node.metadata.name),
        }
    ));
    let mut all = Vec::new();
    while let Ok(Some(one)) = timeout(Duration::from_mins(1), told.next()).await {
        all.push(one);
    }
    assert!(told.next().now_or_never().is_none(), "it goes on for ever");
    assert_eq!(script.lock().unwrap().len(), 0, "what was not asked for");
    all
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_what_was_told_last() {
    let watched = [event("ADDED", "b", "6"), event("MODIFIED", "a", "8"), event("DELETED", "b", "9")];
    let bookmark = [event("BOOKMARK", "", "40")];
    let script = [
        listed("5", &["a"]),
        watches("watch from 5", &watched, End::Closed),
        watches("watch from 9", &bookmark, End::Closed),
        watches("watch from 40", &[event("ADDED", "c", "41")], End::Open),
    ];
    assert_eq!(told(script).await, ["all: a", "seen: b", "seen: a", "gone: b", "seen: c"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_told_again_after_a_newer_one_is_left_out() {
    let watched = [event("MODIFIED", "a", "8"), event("ADDED", "b", "9"), event("MODIFIED", "a", "8")];
    let script = [
        listed("5", &["a"]),
        watches("watch from 5", &watched, End::Closed),
        watches("watch from 9", &[event("ADDED", "c", "10")], End::Open),
    ];
    assert_eq!(told(script).await, ["all: a", "seen: a", "seen: b", "seen: c"]);
}

#[tokio::test(start_paused = true)]
async fn what_the_api_server_has_forgotten_is_listed_again() {
    let script = [
        listed("5", &["a", "b"]),
        watches("watch from 5", &[gone()], End::Closed),
        listed("90", &["a"]),
        refuses("watch from 90", 410),
        listed("95", &[]),
        watches("watch from 95", &[], End::Open),
    ];
    assert_eq!(told(script).await, ["all: a b", "all: a", "all: "]);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_has_gone_back_in_time_is_listed_again() {
    let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    let status = json!({"kind": "Status", "status": "Failure", "code": 504, "details": {"causes": [cause]}});
    let ahead = ReflectorTurn { asked: "watch from 90", status: 504, lines: vec![status], end: End::Closed };
    let script =
        [listed("90", &["a", "b"]), ahead, listed("70", &["a"]), watches("watch from 70", &[], End::Open)];
    assert_eq!(told(script).await, ["all: a b", "all: a"]);
}

#[tokio::test(start_paused = true)]
async fn pages_are_one_list_and_one_that_breaks_begins_anew() {
    let page = || lists(LIST, &json!({"continue": "b"}), &["a"]);
    let rest = |names: &[&str]| lists(REST, &json!({"resourceVersion": "7"}), names);
    let script =
        [page(), refuses(REST, 410), page(), rest(&["b", "c"]), watches("watch from 7", &[], End::Open)];
    assert_eq!(told(script).await, ["all: a b c"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_costs_nothing_else() {
    let strange = json!({"type": "ADDED", "object": {"metadata": {"name": 7}}});
    let nameless = json!({"type": "ADDED", "object": {"metadata": {"name": "v"}}});
    let script = [
        listed("5", &[]),
        watches("watch from 5", &[strange, event("ADDED", "a", "6")], End::Closed),
        watches("watch from 6", &[nameless], End::Open),
        listed("8", &["a", "v"]),
        watches("watch from 8", &[], End::Open),
    ];
    assert_eq!(told(script).await, ["all: ", "seen: a", "all: a v"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_is_delivered_without_the_fields_that_cannot_be_read() {
    let strange = |kind: &str, name: &str, version: &str| {
        let mut event = event(kind, name, version);
        event["object"]["spec"] = json!({"unschedulable": "perhaps"});
        event
    };
    let mut list = listed("5", &["a", "b", "c"]);
    list.lines[0]["items"][1]["spec"] = json!({"taints": 7});
    list.lines[0]["items"][0] = json!({"metadata": 7});
    let watched = [
        strange("MODIFIED", "c", "6"),
        event("MODIFIED", "b", "7"),
        strange("DELETED", "c", "8"),
        event("ADDED", "d", "9"),
    ];
    let began = Instant::now();
    let script =
        [list, watches("watch from 5", &watched, End::Closed), watches("watch from 9", &[], End::Open)];
    let expected = [
        "all: b without spec.taints c",
        "seen: c without spec.unschedulable",
        "seen: b",
        "gone: c",
        "seen: d",
    ];
    assert_eq!(told(script).await, expected);
    assert_eq!(began.elapsed(), Duration::from_mins(1), "no event waits for a pause");
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_are_counted_as_long_as_they_are_there() {
    let bad = |kind: &str, name: &str, version: &str| {
        let mut event = event(kind, name, version);
        event["object"]["spec"] = json!(7);
        event
    };
    let mut list = listed("5", &["a", "b"]);
    list.lines[0]["items"][0]["spec"] = json!(7);
    let watched = [
        bad("ADDED", "c", "6"),
        bad("MODIFIED", "c", "7"),
        event("MODIFIED", "a", "8"),
        bad("DELETED", "c", "9"),
    ];
    let script = [list, watches("watch from 5", &watched, End::Open)];
    let script = Arc::new(Mutex::new(VecDeque::from(script)));
    let service = tower::service_fn(move |_: Request<Body>| {
        let turn = script.lock().unwrap().pop_front().unwrap();
        async move { Ok::<_, std::convert::Infallible>(Response::new(body(&turn))) }
    });
    let objects = UnreadObjects::default();
    let client = Client::new(service, "default");
    let mut counts = Vec::new();
    {
        let read = |_: &Node, _: &[Unread]| ();
        let mut told = pin!(reflect(client, ObjectSelection::default(), objects.clone(), read));
        for _ in 0..5 {
            assert!(told.next().await.is_some());
            counts.push(objects.count("Node"));
        }
    }
    assert_eq!(counts, [1, 2, 2, 1, 0]);
}

/// Replaces one value of the object by another of any type, or adds one, at a place that the dice choose.
fn disturb(value: &mut Value, dice: &mut impl FnMut(usize) -> usize) {
    let inner: Vec<&mut Value> = match value {
        Value::Object(fields) => fields.values_mut().collect(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    let (count, at) = (inner.len(), dice(inner.len() + 1));
    if let Some(one) = inner.into_iter().nth(at).filter(|_| at < count) {
        return disturb(one, dice);
    }
    let strange = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("\u{1b}[2J\u{202e}"),
        json!([]),
        json!({}),
        json!([[{"name": {}}]]),
        json!("x".repeat(10_000)),
        (0..100).fold(json!(0), |inner, _| json!([inner])),
    ];
    *value = strange[dice(strange.len())].clone();
}

/// Whatever foreign objects hold, lists and watches deliver the others, and end only with the script.
#[tokio::test(start_paused = true)]
async fn no_foreign_object_ends_a_list_or_a_watch() {
    let seed = 20_261;
    let mut state: u64 = seed;
    let mut dice = move |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % most
    };
    let node = json!({
        "metadata": {"name": "x", "resourceVersion": "1", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["f"],
            "ownerReferences": [{"name": "o", "controller": true}], "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"unschedulable": false, "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "4"}, "images": [{"names": ["i"], "sizeBytes": 7}]},
    });
    for round in 0..40_u64 {
        let mut foreign = || {
            let mut one = node.clone();
            for _ in 0..=dice(3) {
                disturb(&mut one, &mut dice);
            }
            one
        };
        let mut list = listed("1000", &["mine"]);
        let items = list.lines[0]["items"].as_array_mut().unwrap();
        (0..10).for_each(|at| items.insert(at % 2, foreign()));
        // What has no version makes the reflector list anew; the API server gives each object one.
        let versioned = |mut object: Value, version: String| {
            match object.get_mut("metadata").and_then(Value::as_object_mut) {
                Some(metadata) => drop(metadata.insert("resourceVersion".to_owned(), version.into())),
                None => object = json!({"metadata": {"name": "y", "resourceVersion": version}, "spec": []}),
            }
            object
        };
        let kinds = ["ADDED", "MODIFIED", "DELETED"];
        let line = |at: usize| {
            let object = versioned(foreign(), (1001 + at).to_string());
            json!({"type": kinds[at % 3], "object": object})
        };
        let mut lines: Vec<_> = (0..10).map(line).collect();
        lines.push(event("ADDED", "hers", "2000"));
        let script = [list, watches("watch from 1000", &lines, End::Open)];
        let told = told(script).await;
        assert!(told[0].contains("mine"), "seed {seed}, round {round}: {}", told[0]);
        assert_eq!(told.last().unwrap(), "seen: hers", "seed {seed}, round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again_after_a_pause() {
    let began = Instant::now();
    let script = [
        refuses(LIST, 500),
        refuses(LIST, 403),
        listed("5", &["a"]),
        refuses("watch from 5", 429),
        watches("watch from 5", &[], End::Closed),
        watches("watch from 5", &[event("ADDED", "b", "6")], End::Open),
    ];
    assert_eq!(told(script).await, ["all: a", "seen: b"]);
    let pauses = [250, 500, 1000, 2000].map(Duration::from_millis).iter().sum::<Duration>();
    assert_eq!(began.elapsed(), pauses + Duration::from_mins(1), "the last is how long the test has waited");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_cut_off_without_a_word_is_opened_again() {
    let script = [
        listed("5", &["a"]),
        watches("watch from 5", &[], End::Open),
        watches("watch from 5", &[event("ADDED", "b", "6")], End::Open),
    ];
    let script = Arc::new(Mutex::new(VecDeque::from(script)));
    let turns = script.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        let turn = turns.lock().unwrap().pop_front().unwrap();
        async move { Ok::<_, std::convert::Infallible>(Response::new(body(&turn))) }
    });
    let mut told = pin!(reflect(
        Client::new(service, "default"),
        ObjectSelection::default(),
        UnreadObjects::default(),
        |_: &Node, _| ()
    ));
    let began = Instant::now();
    assert!(matches!(told.next().await, Some(ReflectorEvent::Listed(_))));
    assert!(matches!(told.next().await, Some(ReflectorEvent::Seen(()))));
    assert_eq!(began.elapsed(), SILENCE);
    assert_eq!(script.lock().unwrap().len(), 0);
}
