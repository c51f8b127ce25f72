//! Replicas that race for one Secret.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::body::Body;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// Secrets by name, each with a version that a write must match.
type Store = Arc<Mutex<HashMap<String, Value>>>;

fn api(store: &Store) -> Api<Secret> {
    let store = Arc::clone(store);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let store = Arc::clone(&store);
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let sent: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            Ok::<_, std::io::Error>(answer(&mut store.lock().unwrap(), &head.method, head.uri.path(), sent))
        }
    });
    Api::namespaced(Client::new(service, "default"), "berth-system")
}

fn answer(
    store: &mut HashMap<String, Value>,
    method: &Method,
    path: &str,
    mut sent: Value,
) -> Response<Body> {
    let name = path.rsplit('/').next().unwrap().to_owned();
    match *method {
        Method::GET => store.get(&name).map_or_else(|| refuse(404, "NotFound"), said),
        Method::POST => {
            let name = sent["metadata"]["name"].as_str().unwrap().to_owned();
            if store.contains_key(&name) {
                return refuse(409, "AlreadyExists");
            }
            sent["metadata"]["resourceVersion"] = "1".into();
            store.insert(name, sent.clone());
            said(&sent)
        }
        Method::PUT => {
            let version = store[&name]["metadata"]["resourceVersion"].clone();
            if sent["metadata"]["resourceVersion"] != version {
                return refuse(409, "Conflict");
            }
            sent["metadata"]["resourceVersion"] = format!("{}0", version.as_str().unwrap()).into();
            store.insert(name, sent.clone());
            said(&sent)
        }
        _ => refuse(405, "MethodNotAllowed"),
    }
}

fn said(object: &Value) -> Response<Body> {
    Response::new(Body::from(object.to_string()))
}

fn refuse(code: u16, reason: &str) -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": reason, "reason": reason, "code": code});
    Response::builder()
        .status(StatusCode::from_u16(code).unwrap())
        .body(Body::from(status.to_string()))
        .unwrap()
}

fn names() -> ServingNames {
    ServingNames { service: "berth".to_owned(), namespace: "berth-system".to_owned(), extra: Vec::new() }
}

fn start() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

async fn agreed(store: &Store, now: Timestamp) -> Result<Bundle, SecretError> {
    agree(&api(store), "tls", &names(), Lifetimes::default(), now).await
}

#[tokio::test]
async fn replicas_that_start_together_agree() {
    let store = Store::default();
    let (one, two, three) =
        tokio::join!(agreed(&store, start()), agreed(&store, start()), agreed(&store, start()));
    let one = one.unwrap();
    assert_eq!((two.unwrap(), three.unwrap()), (one.clone(), one));
    assert_eq!(store.lock().unwrap()["tls"]["type"], "kubernetes.io/tls");
}

#[tokio::test]
async fn replicas_that_renew_together_agree() {
    let store = Store::default();
    let first = agreed(&store, start()).await.unwrap();
    let later = start() + jiff::SignedDuration::from_hours(24 * 300);
    let (one, two) = tokio::join!(agreed(&store, later), agreed(&store, later));
    let one = one.unwrap();
    assert_eq!(two.unwrap(), one);
    assert_eq!(one.authority, first.authority);
    assert_ne!(one.serving, first.serving);
    assert_eq!(read(&api(&store), "tls").await.unwrap(), Some(one));
}

#[tokio::test]
async fn a_secret_that_lacks_a_key_is_not_overwritten() {
    let store = Store::default();
    let foreign = json!({"metadata": {"name": "tls", "resourceVersion": "1"}, "data": {"tls.crt": "eA=="}});
    store.lock().unwrap().insert("tls".to_owned(), foreign.clone());
    let error = agreed(&store, start()).await.unwrap_err();
    assert!(error.to_string().starts_with("secret tls has no readable `ca.crt`"), "{error}");
    assert_eq!(store.lock().unwrap()["tls"], foreign);
}
