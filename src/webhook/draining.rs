//! Asks the clients of a process that is ending for new connections, which other replicas get.
//!
//! The API server speaks HTTP/1.1 to webhooks, keeps connections, and does not repeat a POST that meets one that is being closed
//! (`k8s.io/apiserver/pkg/util/webhook`, `net/http.Transport`). An answer that closes its connection leaves none to meet.

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use http::{HeaderValue, Version, header};
use tokio::sync::watch;

use super::router::Readiness;

/// The router, whose answers close their connections while the process is [`Readiness::Draining`].
///
/// HTTP/2 has no such header: its clients are asked by a GOAWAY at the end, and repeat what was not begun.
pub fn closing(router: Router, readiness: watch::Receiver<Readiness>) -> Router {
    router.layer(from_fn_with_state(readiness, close))
}

async fn close(
    State(readiness): State<watch::Receiver<Readiness>>,
    request: Request,
    next: Next,
) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    if version < Version::HTTP_2 && *readiness.borrow() == Readiness::Draining {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
