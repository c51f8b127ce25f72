//! `GET /debug/ledger`: which pod holds what of each card, for clients that the API server allows to get this path.
//!
//! It knows neither the ledger nor the permissions: both come from the functions that it is given.

use std::sync::Arc;

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::{
    refusal::{Refusal, as_json},
    router::wrong_method,
};

/// The path. Clients need the verb `get` on it as a non-resource URL.
pub const LEDGER: &str = "/debug/ledger";

/// Why a request is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Denial {
    /// There is no bearer token, or the API server does not accept it.
    #[error("a bearer token that the API server accepts is required")]
    Unknown,
    /// The user may not get the path.
    #[error("user \"{user}\" cannot get path \"{LEDGER}\"")]
    Forbidden {
        /// The name of the user.
        user: String,
    },
    /// Another replica has it.
    #[error("this replica does not lead, so it has no ledger; {}", at(leader.as_deref()))]
    Elsewhere {
        /// The identity of the one that leads, as its Lease states it: its pod's name comes before the first `_`.
        leader: Option<String>,
    },
    /// The API server could not check the permission, or this replica has no ledger.
    #[error("{0}")]
    Unavailable(String),
}

/// Where the ledger is, in words.
fn at(leader: Option<&str>) -> String {
    match leader {
        Some(leader) => {
            let pod = leader.split('_').next().unwrap_or(leader);
            format!("{leader} leads: ask pod {pod}")
        }
        None => "no replica is known to lead now: ask again".to_owned(),
    }
}

/// Checks whether the user of this token may get the path.
pub type Access = Arc<dyn Fn(String) -> BoxFuture<'static, Result<(), Denial>> + Send + Sync>;

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
    let token = bearer(headers).ok_or(Denial::Unknown)?;
    (debug.access)(token.to_owned()).await?;
    (debug.page)().await
}

/// The token of `Authorization: Bearer …` (RFC 6750); the scheme's case does not count.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn refused(denial: &Denial) -> Response {
    let status = match denial {
        Denial::Unknown => StatusCode::UNAUTHORIZED,
        Denial::Forbidden { .. } => StatusCode::FORBIDDEN,
        Denial::Unavailable(_) | Denial::Elsewhere { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    let leader = match denial {
        Denial::Elsewhere { leader } => leader.as_deref(),
        Denial::Unknown | Denial::Forbidden { .. } | Denial::Unavailable(_) => None,
    };
    let mut response = Refusal::new(status, denial.to_string()).naming(leader).into_response();
    if *denial == Denial::Unknown {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_token_is_read_as_it_is_sent() {
        let token = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer abc.def"), Some("abc.def".to_owned()));
        assert_eq!(token("bearer abc"), Some("abc".to_owned()));
        for bad in ["Basic abc", "Bearer", "Bearer  ", "abc", ""] {
            assert_eq!(token(bad), None, "{bad}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }

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
            Box::pin(
                async move { if token == "good" { Ok(()) } else { Err(Denial::Forbidden { user: token }) } },
            )
        });
        let page: Page = Arc::new(|| Box::pin(async { Ok(b"{}".to_vec()) }));
        let debug = Debug { access, page };
        let ask = async |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            shown(&debug, &headers).await
        };
        assert_eq!(ask("Bearer good").await, Ok(b"{}".to_vec()));
        assert_eq!(ask("Bearer eve").await, Err(Denial::Forbidden { user: "eve".to_owned() }));
        assert_eq!(ask("Basic good").await, Err(Denial::Unknown));
    }
}
