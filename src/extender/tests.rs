//! The bodies that kube-scheduler sends and reads.

use std::sync::Mutex;

use axum::body::Body;
use serde_json::{Value, json};

use super::*;

type Seen = Arc<Mutex<Vec<String>>>;

/// Nodes whose name begins with `good` fit, with `full` only without pods, and others never; `gone` pods help.
fn extender(seen: &Seen) -> Extender {
    let standing = |name: &String| match name.as_str() {
        name if name.starts_with("good") => NodeStanding::Fits(7),
        name if name.starts_with("full") => NodeStanding::Fails("Insufficient GPU memory".to_owned()),
        _ => NodeStanding::FailsEmpty("node(s) didn't match Pod's GPU type".to_owned()),
    };
    let bound = Arc::clone(seen);
    Extender {
        judge: Arc::new(move |pod, names| {
            let standings = match pod.metadata.name.as_str() {
                "strange" => Err("no share".to_owned()),
                _ => Ok(names.iter().map(standing).collect()),
            };
            Box::pin(async { standings })
        }),
        bind: Arc::new(move |pod, node| {
            bound.lock().unwrap().push(format!("{pod} {} {node}", pod.uid));
            let bound = if &*node == "good-1" { Ok(()) } else { Err(format!("node {node} is busy")) };
            Box::pin(async { bound })
        }),
        preempt: Arc::new(|pod, candidates| {
            let helps = |(_, victims): &(String, Vec<String>)| victims.iter().any(|uid| uid == "large");
            let helps = match pod.metadata.name.as_str() {
                "strange" => Err("this replica does not lead".to_owned()),
                _ => Ok(candidates.iter().map(helps).collect()),
            };
            Box::pin(async { helps })
        }),
    }
}

async fn send(verb: &str, body: impl Into<Body>) -> (StatusCode, String) {
    let request = http::Request::post(format!("{PREFIX}/{verb}")).body(body.into()).unwrap();
    let response = tower::ServiceExt::oneshot(router(extender(&Seen::default())), request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), 100_000).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

async fn ask(verb: &str, body: Value) -> Value {
    let (status, text) = send(verb, body.to_string()).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default", "uid": "u"}, "spec": {"containers": []}})
}

#[tokio::test]
async fn filter_answers_by_names_and_tells_where_preemption_is_in_vain() {
    let names = json!(["good-1", "full-1", "other"]);
    let answer = ask("filter", json!({"Pod": pod("p"), "Nodes": null, "NodeNames": names})).await;
    let expected = json!({
        "Nodes": null,
        "NodeNames": ["good-1"],
        "FailedNodes": {"full-1": "Insufficient GPU memory"},
        "FailedAndUnresolvableNodes": {"other": "node(s) didn't match Pod's GPU type"},
        "Error": "",
    });
    assert_eq!(answer, expected);
    // Without a list of names kube-scheduler drops every node; an empty one says that none fits.
    let answer = ask("filter", json!({"Pod": pod("p"), "Nodes": null, "NodeNames": ["other"]})).await;
    assert_eq!(answer["NodeNames"], json!([]));
}

#[tokio::test]
async fn full_nodes_are_given_back_as_they_came() {
    let node = |name: &str| json!({"metadata": {"name": name}, "status": {"unheard-of": [1]}});
    let nodes = json!({"metadata": {"resourceVersion": "7"}, "items": [node("full-1"), node("good-1")]});
    let answer = ask("filter", json!({"Pod": pod("p"), "Nodes": nodes, "NodeNames": null})).await;
    assert_eq!(answer["Nodes"], json!({"metadata": {"resourceVersion": "7"}, "items": [node("good-1")]}));
    assert_eq!(answer["NodeNames"], Value::Null);
    let answer = ask("prioritize", json!({"Pod": pod("p"), "Nodes": nodes})).await;
    assert_eq!(answer, json!([{"Host": "full-1", "Score": 0}, {"Host": "good-1", "Score": 7}]));
}

#[tokio::test]
async fn what_cannot_be_judged_is_an_error_of_filter_and_no_preference() {
    let args = json!({"Pod": pod("strange"), "NodeNames": ["good-1"]});
    assert_eq!(ask("filter", args.clone()).await["Error"], "no share");
    assert_eq!(ask("prioritize", args).await, json!([{"Host": "good-1", "Score": 0}]));
}

#[tokio::test]
async fn preempt_keeps_nodes_whose_victims_help_and_answers_in_the_meta_form() {
    let victims = |uids: &[&str]| {
        let pods: Vec<_> = uids.iter().map(|uid| json!({"UID": uid})).collect();
        json!({"Pods": pods, "NumPDBViolations": 1})
    };
    let meta = json!({"n1": victims(&["small", "large"]), "n2": victims(&["small"]), "n3": victims(&[]),
        "n4": {"Pods": null, "NumPDBViolations": 0}});
    let answer =
        ask("preempt", json!({"Pod": pod("p"), "NodeNameToVictims": null, "NodeNameToMetaVictims": meta}))
            .await;
    assert_eq!(answer, json!({"NodeNameToMetaVictims": {"n1": victims(&["small", "large"])}}));

    let full = json!({"n1": {"Pods": [{"metadata": {"uid": "large"}}], "NumPDBViolations": 1}});
    let args = json!({"Pod": pod("p"), "NodeNameToVictims": full, "NodeNameToMetaVictims": null});
    assert_eq!(ask("preempt", args).await, json!({"NodeNameToMetaVictims": {"n1": victims(&["large"])}}));

    let (status, text) = send("preempt", json!({"Pod": pod("strange")}).to_string()).await;
    assert_eq!((status, text.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "this replica does not lead"));
}

#[tokio::test]
async fn bind_answers_what_became_of_the_pod() {
    let args = |node: &str| json!({"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": node});
    assert_eq!(ask("bind", args("good-1")).await, json!({"Error": ""}));
    assert_eq!(ask("bind", args("n2")).await, json!({"Error": "node n2 is busy"}));
    let seen = Seen::default();
    let bound = (extender(&seen).bind)(
        PodKey { uid: "u".into(), namespace: "default".into(), name: "p".into() },
        "good-1".into(),
    );
    assert_eq!((bound.await, seen.lock().unwrap().clone()), (Ok(()), vec!["default/p u good-1".to_owned()]));
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_with_the_reason() {
    for verb in ["filter", "prioritize", "preempt", "bind"] {
        for body in ["", "{", "[]", "null", "{\"Pod\": 7}", "{\"pod\": {}}", "\u{0}"] {
            let (status, text) = send(verb, body.to_owned()).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{verb} {body}");
            assert!(text.starts_with("the body can't be read: "), "{text}");
        }
    }
    let (status, _) = send("unheard-of", "{}").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// Two of the largest bodies, and no third beside them; small ones go on once there is room.
#[tokio::test(start_paused = true)]
async fn bodies_that_are_read_at_once_have_so_much_room_and_silent_clients_give_theirs_back() {
    let router = router(extender(&Seen::default()));
    let send = |body: Body| {
        let request = http::Request::post(format!("{PREFIX}/filter")).body(body).unwrap();
        tower::ServiceExt::oneshot(router.clone(), request)
    };
    // A body without an announced length, which never comes.
    let silent = || Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>());
    let small = || Body::from(json!({"Pod": pod("p"), "Nodes": null, "NodeNames": ["good-1"]}).to_string());
    let beside = async {
        tokio::task::yield_now().await;
        let refused = send(small()).await.unwrap().status();
        tokio::time::advance(std::time::Duration::from_secs(5)).await;
        (refused, send(small()).await.unwrap().status())
    };
    let (one, other, (refused, later)) = tokio::join!(send(silent()), send(silent()), beside);
    assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!([one, other].map(|response| response.unwrap().status()), [StatusCode::REQUEST_TIMEOUT; 2]);
    assert_eq!(later, StatusCode::OK);
}
