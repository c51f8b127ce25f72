//! `GET /debug/ledger`: which pod holds what of each card, for clients that the API server allows to get this path.
//!
//! It knows neither the ledger nor the permissions: both come from the functions that it is given.

use std::sync::Arc;

use axum::{Router, extract::State, response::Response, routing::get};
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};

use super::bearer::{Access, Denial, bearer, refused};
use crate::webhook::{refusal::as_json, router::wrong_method};

/// The path. Clients need the verb `get` on it as a non-resource URL.
pub const LEDGER: &str = "/debug/ledger";

/// The page, as JSON.
pub type Page = Arc<dyn Fn() -> BoxFuture<'static, Result<Vec<u8>, Denial>> + Send + Sync>;

/// What the path needs.
#[derive(Clone)]
pub struct Debug {
    /// Checks the token.
    pub access: Access,
    /// Makes the answer.
    pub page: Page,
}

/// The path.
pub fn router(debug: Debug) -> Router {
    Router::new().route(LEDGER, get(ledger)).method_not_allowed_fallback(wrong_method).with_state(debug)
}

async fn ledger(State(debug): State<Debug>, headers: HeaderMap) -> Response {
    match shown(&debug, &headers).await {
        Ok(page) => as_json(StatusCode::OK, page),
        Err(denial) => refused(&denial),
    }
}

/// Checks the permission before it reads the ledger.
async fn shown(debug: &Debug, headers: &HeaderMap) -> Result<Vec<u8>, Denial> {
    (debug.access)(bearer(headers)).await?;
    (debug.page)().await
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header};

    use super::*;

    #[tokio::test]
    async fn another_method_is_refused_with_a_reason() {
        let page: Page = Arc::new(|| Box::pin(async { Ok(Vec::new()) }));
        let router = router(Debug { access: Arc::new(|_| Box::pin(async { Ok(()) })), page });
        let request = http::Request::post(LEDGER).body(axum::body::Body::empty()).unwrap();
        let response = tower::ServiceExt::oneshot(router, request).await.unwrap();
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        let body = axum::body::to_bytes(response.into_body(), 1000).await.unwrap();
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["message"], "this path does not accept this method");
    }

    #[tokio::test]
    async fn nothing_is_looked_up_for_who_may_not_ask() {
        let access: Access = Arc::new(|token| {
            Box::pin(async move {
                match token.as_deref() {
                    Some("good") => Ok(()),
                    Some(user) => Err(Denial::Forbidden { user: user.to_owned(), path: LEDGER }),
                    None => Err(Denial::Unknown),
                }
            })
        });
        let page: Page = Arc::new(|| Box::pin(async { Ok(b"{}".to_vec()) }));
        let debug = Debug { access, page };
        let ask = async |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            shown(&debug, &headers).await
        };
        assert_eq!(ask("Bearer good").await, Ok(b"{}".to_vec()));
        assert_eq!(ask("Bearer eve").await, Err(Denial::Forbidden { user: "eve".to_owned(), path: LEDGER }));
        assert_eq!(ask("Basic good").await, Err(Denial::Unknown));
    }
}
