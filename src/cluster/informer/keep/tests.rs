//! A kind that is not installed yet.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use http::{Request, Response};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::{
    dialect::marks::{GROUPS_API, GROUPS_VERSION},
    object::PodGroup,
};

/// An API server that serves no PodGroups until it was asked so many times, and then one; it counts the lists.
fn api(unserved: u32, lists: Arc<AtomicU32>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let lists = lists.clone();
        async move {
            let query = request.uri().query().unwrap_or_default();
            if query.contains("watch=true") {
                // Nothing ever changes.
                std::future::pending::<()>().await;
            }
            assert_eq!(request.uri().path(), format!("/apis/{GROUPS_API}/{GROUPS_VERSION}/podgroups"));
            let served = lists.fetch_add(1, Ordering::Relaxed) >= unserved;
            let (status, body) = if served { (200, list()) } else { (404, not_found()) };
            let body = Body::from(serde_json::to_vec(&body).unwrap());
            Ok::<_, std::convert::Infallible>(Response::builder().status(status).body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

fn list() -> Value {
    json!({
        "apiVersion": format!("{GROUPS_API}/{GROUPS_VERSION}"),
        "kind": "PodGroupList",
        "metadata": {"resourceVersion": "7"},
        "items": [{"metadata": {"name": "gang", "namespace": "train", "annotations": {"a": "b"}}}],
    })
}

fn not_found() -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
        "message": "the server could not find the requested resource",
    })
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_installed_later_is_found_without_a_storm_of_requests() {
    let lists = Arc::new(AtomicU32::new(0));
    let client = api(100, lists.clone());
    let (sender, mut published) = mpsc::unbounded_channel();
    let began = tokio::time::Instant::now();
    let keeping = keep_if_served(&client, PodGroup::clone, move |known| sender.send(known.clone()).unwrap());
    let first = tokio::select! {
        () = keeping => unreachable!("it follows for ever"),
        first = published.recv() => first.unwrap(),
    };
    let group = &first[&("train".to_owned(), "gang".to_owned())];
    assert_eq!(group.metadata.annotation("a"), Some("b"));
    assert_eq!(lists.load(Ordering::Relaxed), 101);
    let minutes = began.elapsed().as_secs() / 60;
    assert!((90..100).contains(&minutes), "about one request a minute, but 101 took {minutes} minutes");
}
