//! What one caller may take from all others: time, memory, depth.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use berth::{
    admission,
    webhook::{
        BodyRoom, ServerReadiness, Webhook, WebhookMetrics, router_within, server::limits::BODY_LIMIT,
    },
};
use futures::StreamExt as _;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use prometheus_client::registry::Registry;
use serde_json::Value;
use tokio::{sync::watch, time::timeout};
use tower::ServiceExt as _;

use super::{client::review, server::ignoring};

fn router(room: BodyRoom) -> Router {
    let mut registry = Registry::default();
    let metrics = WebhookMetrics::register(&mut registry);
    let (_, readiness) = watch::channel(ServerReadiness::Ready);
    router_within(Webhook::new(ignoring(), metrics, Arc::new(registry), readiness), room)
}

fn post(body: Body) -> Request<Body> {
    Request::post("/mutate").header(header::CONTENT_TYPE, "application/json").body(body).unwrap()
}

async fn ask(router: &Router, request: Request<Body>) -> Response<Body> {
    router.clone().oneshot(request).await.unwrap()
}

async fn reason(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let answer: Value = serde_json::from_slice(&body).unwrap();
    answer["message"].as_str().unwrap().to_owned()
}

/// A body of unknown length that comes as it is sent.
fn dripping() -> (futures::channel::mpsc::UnboundedSender<Vec<u8>>, Body) {
    let (sender, parts) = futures::channel::mpsc::unbounded::<Vec<u8>>();
    (sender, Body::from_stream(parts.map(Ok::<_, std::io::Error>)))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_never_comes_is_given_up() {
    let router = router(BodyRoom::default());
    let (sender, body) = dripping();
    sender.unbounded_send(b"{".to_vec()).unwrap();
    let response = timeout(Duration::from_secs(11), ask(&router, post(body))).await.expect("in time");
    assert_eq!(response.status(), StatusCode::REQUEST_TIMEOUT);
    assert_eq!(reason(response).await, "the body took too long");
}

#[tokio::test(start_paused = true)]
async fn without_room_a_review_waits_and_then_is_told_to_come_again() {
    let router = router(BodyRoom::new(BODY_LIMIT, Duration::from_secs(1)));
    let (sender, body) = dripping();
    let mut first = pin!(ask(&router, post(body)));
    // It may become as large as any, so that it takes all the room there is.
    assert!(futures::poll!(first.as_mut()).is_pending());

    let second = ask(&router, post(review("q").into())).await;
    assert_eq!(second.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(second.headers()[header::RETRY_AFTER], "1");
    assert_eq!(reason(second).await, "too many reviews at once; ask again");
    let page = ask(&router, Request::get("/metrics").body(Body::empty()).unwrap()).await;
    let page = page.into_body().collect().await.unwrap().to_bytes();
    let page = String::from_utf8(page.to_vec()).unwrap();
    let counted = r#"berth_admission_reviews_total{path="mutate",outcome="turned_away"} 1"#;
    assert!(page.lines().any(|line| line == counted), "{page}");

    // Who waits when room is made is answered.
    let mut third = pin!(ask(&router, post(review("r").into())));
    assert!(futures::poll!(third.as_mut()).is_pending());
    sender.unbounded_send(review("p")).unwrap();
    drop(sender);
    assert_eq!(first.await.status(), StatusCode::OK);
    assert_eq!(third.await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_review_takes_room_by_its_length_and_gives_it_back() {
    let router = router(BodyRoom::new(BODY_LIMIT, Duration::ZERO));
    let (_kept, body) = dripping();
    let lengths = [BODY_LIMIT, BODY_LIMIT / 2, 1];
    for length in lengths {
        let mut padded = review("p");
        padded.resize(padded.len().max(length), b' ');
        assert_eq!(ask(&router, post(padded.into())).await.status(), StatusCode::OK, "{length}");
    }
    // A caller that went away gives it back too.
    let mut gone = Box::pin(ask(&router, post(body)));
    assert!(futures::poll!(gone.as_mut()).is_pending());
    assert_eq!(ask(&router, post(review("p").into())).await.status(), StatusCode::TOO_MANY_REQUESTS);
    drop(gone);
    assert_eq!(ask(&router, post(review("p").into())).await.status(), StatusCode::OK);
}

/// `place` of a review, filled with lists in lists.
fn nested(place: &str, depth: usize) -> String {
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let mut review = String::from_utf8(review("p")).unwrap();
    review = match place {
        "beside" => review.replacen('{', &format!("{{\"deep\":{deep},"), 1),
        "request" => review.replacen("\"request\":{", &format!("\"request\":{{\"options\":{deep},"), 1),
        "unread" => review.replacen("\"spec\":{", &format!("\"spec\":{{\"brandNew\":{deep},"), 1),
        "read" => review.replacen("\"spec\":{", &format!("\"spec\":{{\"affinity\":{deep},"), 1),
        "name" => review.replacen("\"name\":\"p\"", &format!("\"name\":{deep}"), 1),
        other => panic!("no place {other}"),
    };
    review
}

#[tokio::test]
async fn depth_costs_no_stack_wherever_it_stands() {
    let router = router(BodyRoom::default());
    for place in ["beside", "request", "unread", "read", "name"] {
        let body = nested(place, BODY_LIMIT / 2 - 1024);
        assert!(body.contains("[[[["), "{place}");
        let response = ask(&router, post(body.into())).await;
        let status = response.status();
        let answer = response.into_body().collect().await.unwrap().to_bytes();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let (allowed, code) = (&answer["response"]["allowed"], &answer["response"]["status"]["code"]);
        match place {
            // What nobody reads does not matter, however deep.
            "beside" | "request" | "unread" => {
                assert_eq!((status, allowed), (StatusCode::OK, &true.into()), "{place}");
            }
            _ => assert_eq!((status, code), (StatusCode::OK, &422.into()), "{place}: {answer}"),
        }
    }
}

#[tokio::test]
async fn a_judge_is_never_asked_about_a_body_that_is_too_large() {
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let mut registry = Registry::default();
    let metrics = WebhookMetrics::register(&mut registry);
    let (_, readiness) = watch::channel(ServerReadiness::Ready);
    let judge: berth::webhook::Judge = Arc::new(move |_: &admission::Request<'_>| {
        counting.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        admission::Verdict::Ignored
    });
    let router =
        router_within(Webhook::new(judge, metrics, Arc::new(registry), readiness), BodyRoom::default());
    let mut body = review("p");
    body.resize(BODY_LIMIT + 1, b' ');
    assert_eq!(ask(&router, post(body.into())).await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 0);
}
