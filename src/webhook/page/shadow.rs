//! `GET /debug/shadow`: what a shadow has found out, for peers of the same host and for clients with a certificate.
//!
//! A shadow writes nothing to the API server, so it can't ask there for the bearer of a token as `/debug/ledger` does: a TokenReview is
//! a write. `kubectl port-forward` reaches the path from the same host, and its right is a role's to give.

use std::sync::Arc;

use axum::{Router, extract::State, response::Response, routing::get};
use http::StatusCode;

use super::trusted::trusted;
use crate::webhook::{refusal::as_json, router::wrong_method};

/// The path.
pub const SHADOW: &str = "/debug/shadow";

/// The page, as JSON.
pub type Page = Arc<dyn Fn() -> Vec<u8> + Send + Sync>;

/// The path.
pub fn router(page: Page) -> Router {
    let path = Router::new().route(SHADOW, get(shadow)).method_not_allowed_fallback(wrong_method);
    trusted(path.with_state(page))
}

async fn shadow(State(page): State<Page>) -> Response {
    as_json(StatusCode::OK, page())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;
    use crate::webhook::server::serve::{Peer, Remote};

    async fn status(extend: impl FnOnce(&mut http::Extensions)) -> StatusCode {
        let mut request = http::Request::get(SHADOW).body(Body::empty()).unwrap();
        extend(request.extensions_mut());
        let page: Page = Arc::new(|| b"{}".to_vec());
        tower::ServiceExt::oneshot(router(page), request).await.unwrap().status()
    }

    #[tokio::test]
    async fn the_report_is_shown_on_the_same_host_and_with_a_certificate_alone() {
        let remote = |address: &str| Remote(address.parse().unwrap());
        let from = async |address: &str, peer: Peer| {
            let remote = remote(address);
            status(|extensions| {
                extensions.insert(remote);
                extensions.insert(peer);
            })
            .await
        };
        assert_eq!(from("127.0.0.1", Peer::Anonymous).await, StatusCode::OK);
        assert_eq!(from("::ffff:127.0.0.1", Peer::Anonymous).await, StatusCode::OK);
        assert_eq!(from("10.0.0.7", Peer::Verified).await, StatusCode::OK);
        assert_eq!(from("10.0.0.7", Peer::Anonymous).await, StatusCode::FORBIDDEN);
        assert_eq!(status(|_| {}).await, StatusCode::FORBIDDEN);
    }
}
