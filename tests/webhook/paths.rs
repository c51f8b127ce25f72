//! What is refused before it is a review, and the paths beside the reviews.

use std::sync::Arc;

use axum::body::Body;
use berth::webhook::{self, ServerReadiness, router::Webhook, server::limits::BODY_LIMIT};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use super::{
    client::{Client, Protocol, post, review},
    server::{Server, ignoring},
};

/// What the API server's client reads of a failure.
fn status(code: u16, (reason, message): (&str, &str)) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}

#[tokio::test]
async fn a_body_above_the_limit_is_refused_and_one_at_the_limit_is_read() {
    let server = Server::start(ignoring()).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut padded = review("p");
        padded.resize(BODY_LIMIT, b' ');
        let mut client = Client::connect(&server, protocol).await.unwrap();
        assert_eq!(client.post("/mutate", padded.clone()).await.status, StatusCode::OK, "{protocol:?}");
        padded.push(b' ');
        let answer = client.post("/mutate", padded).await;
        assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE, "{protocol:?}");
        let why = ("RequestEntityTooLarge", "the body is larger than 8388608 bytes");
        assert_eq!(answer.json(), status(413, why));
    }
}

#[tokio::test]
async fn only_json_is_read() {
    let server = Server::start(ignoring()).await;
    let mut client = Client::connect(&server, Protocol::Http1).await.unwrap();
    for media_type in ["text/plain", "application/yaml", "application/jsonp", ""] {
        let answer = client.send(post("/mutate", media_type, review("p"))).await.unwrap();
        assert_eq!(answer.status, StatusCode::UNSUPPORTED_MEDIA_TYPE, "{media_type}");
        assert_eq!(
            answer.json(),
            status(415, ("UnsupportedMediaType", "content-type must be application/json"))
        );
    }
    let answer = client.send(post("/mutate", "Application/JSON; charset=utf-8", review("p"))).await.unwrap();
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn an_envelope_that_cannot_be_read_is_answered_with_field_and_reason() {
    let server = Server::start(ignoring()).await;
    let mut client = Client::connect(&server, Protocol::Http1).await.unwrap();
    let answer =
        client.post("/validate", r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    let mut expected = status(400, ("BadRequest", "`request` is missing"));
    expected["details"] = json!({"causes": [{"field": "request", "message": "`request` is missing"}]});
    assert_eq!(answer.json(), expected);
    assert!(!answer.body.contains(&b'\n'));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_answered_in_json() {
    let server = Server::start(ignoring()).await;
    let mut client = Client::connect(&server, Protocol::Http2).await.unwrap();
    let cases = [("/", StatusCode::NOT_FOUND), ("/mutate", StatusCode::METHOD_NOT_ALLOWED)];
    for (path, status) in cases {
        let answer = client.get(path).await;
        assert_eq!(answer.status, status);
        let said = answer.json();
        assert_eq!((&said["kind"], &said["code"]), (&json!("Status"), &json!(status.as_u16())), "{said}");
        assert!(said["message"].is_string(), "{said}");
    }
}

#[tokio::test]
async fn readiness_follows_the_process_and_health_does_not() {
    let server = Server::start(ignoring()).await;
    let mut client = Client::connect(&server, Protocol::Http1).await.unwrap();
    let cases = [
        (ServerReadiness::Starting, StatusCode::SERVICE_UNAVAILABLE),
        (ServerReadiness::Ready, StatusCode::OK),
        (ServerReadiness::Draining, StatusCode::SERVICE_UNAVAILABLE),
    ];
    for (readiness, status) in cases {
        server.readiness.send_replace(readiness);
        assert_eq!(client.get("/readyz").await.status, status, "{readiness:?}");
        assert_eq!(client.get("/healthz").await.status, StatusCode::OK);
        assert_eq!(
            client.post("/mutate", review("p")).await.status,
            StatusCode::OK,
            "what comes is answered"
        );
    }
}

#[tokio::test]
async fn health_fails_while_the_binder_does_not_go_on_and_reviews_are_answered_all_the_same() {
    let (_ready, readiness) = watch::channel(ServerReadiness::Ready);
    let (metrics, registry) =
        (webhook::WebhookMetrics::register(&mut Registry::default()), Arc::new(Registry::default()));
    let webhook = Webhook {
        health: Arc::new(|| Some("the binder's loop has not gone on for 5 seconds")),
        ..Webhook::new(ignoring(), metrics, registry, readiness)
    };
    let router = webhook::router(webhook);
    let get = |path: &str| router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap());
    let failed = get("/healthz").await.unwrap();
    assert_eq!(failed.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = failed.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&body).contains("has not gone on"), "{body:?}");
    assert_eq!(get("/readyz").await.unwrap().status(), StatusCode::OK, "the webhook goes on");
}
