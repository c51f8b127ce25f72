//! What is patched, and what is waited for.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use tower::service_fn;

use super::*;

fn trust(webhook: &str, bundle: Option<&str>) -> Trust {
    Trust { webhook: webhook.to_owned(), bundle: bundle.map(|pem| pem.as_bytes().to_vec()) }
}

#[test]
fn only_webhooks_that_trust_something_else_are_patched() {
    let webhooks =
        [trust("a.berth.dev", Some("new")), trust("b.berth.dev", Some("old")), trust("c.berth.dev", None)];
    let expected = json!({"webhooks": [
        {"name": "b.berth.dev", "clientConfig": {"caBundle": "bmV3"}},
        {"name": "c.berth.dev", "clientConfig": {"caBundle": "bmV3"}},
    ]});
    assert_eq!(patch(&webhooks, "new"), Some(expected));
}

#[test]
fn nothing_is_written_where_all_agree() {
    assert_eq!(patch(&[trust("a.berth.dev", Some("new"))], "new"), None);
    assert_eq!(patch(&[], "new"), None);
}

type Calls = Arc<Mutex<Vec<(Method, String, Value)>>>;

/// An API server whose configurations are missing for the first `absent` requests.
fn client(absent: usize) -> (Client, Calls) {
    let calls = Calls::default();
    let seen = Arc::clone(&calls);
    let service = service_fn(move |request: Request<kube::client::Body>| {
        let seen = Arc::clone(&seen);
        async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let sent = serde_json::from_slice(&bytes).unwrap_or_default();
            let mut seen = seen.lock().unwrap();
            seen.push((head.method, head.uri.path().to_owned(), sent));
            Ok::<_, std::io::Error>(if seen.len() <= absent { missing() } else { configuration() })
        }
    });
    (Client::new(service, "default"), calls)
}

fn missing() -> Response<Body> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "gone", "reason": "NotFound", "code": 404});
    Response::builder().status(StatusCode::NOT_FOUND).body(Body::from(status.to_string())).unwrap()
}

fn configuration() -> Response<Body> {
    let object = json!({"metadata": {"name": "berth"}, "webhooks": [{
        "name": "mutate.berth.dev", "clientConfig": {}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
    }]});
    Response::new(Body::from(object.to_string()))
}

fn ours() -> WebhookConfigurations {
    WebhookConfigurations { mutating: "berth".to_owned(), validating: "berth".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn publishing_waits_for_configurations_that_are_not_there_yet() {
    let (client, calls) = client(4);
    publish(&client, &ours(), "new").await;
    let calls = calls.lock().unwrap();
    let patched: Vec<&str> = calls
        .iter()
        .filter(|(method, ..)| method == Method::PATCH)
        .map(|(_, path, _)| path.as_str())
        .collect();
    assert_eq!(
        patched,
        [
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/berth",
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/berth",
        ]
    );
    let sent = &calls.iter().find(|(method, ..)| method == Method::PATCH).unwrap().2;
    assert_eq!(sent["webhooks"][0]["clientConfig"]["caBundle"], "bmV3");
}

#[tokio::test]
async fn an_error_names_the_object() {
    let (client, _) = client(2);
    let error = publish_once(&client, &ours(), "new").await.unwrap_err();
    assert_eq!(error.to_string(), "cannot read MutatingWebhookConfiguration berth");
}
