//! Closes the connections of a process that is ending after their next answer, so that clients open new ones to other replicas.
//!
//! The API server speaks HTTP/1.1 to webhooks behind a Service and keeps connections (`k8s.io/apiserver/pkg/util/webhook`). Connections without
//! a request in this time are ended by `connection`.

use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::Response,
};
use http::{HeaderValue, Version, header};
use tokio::sync::watch;

use crate::webhook::router::ServerReadiness;

/// The router, whose answers close their connections while the process is [`ServerReadiness::Draining`].
///
/// HTTP/2 has no such header: its clients get a GOAWAY at the end, and repeat what it excludes.
pub fn closing(router: Router, readiness: watch::Receiver<ServerReadiness>) -> Router {
    router.layer(from_fn_with_state(readiness, close))
}

async fn close(
    State(readiness): State<watch::Receiver<ServerReadiness>>,
    request: Request,
    next: Next,
) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    if version < Version::HTTP_2 && *readiness.borrow() == ServerReadiness::Draining {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
