//! The bearer of a token: who may get a path, and what others are answered.
//!
//! It knows no permission: that is asked of the function that it is given.

use std::sync::Arc;

use axum::response::{IntoResponse as _, Response};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::webhook::refusal::ReviewRefusal;

/// Why a request is refused.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Denial {
    /// There is no bearer token, or the API server does not accept it.
    #[error("a bearer token that the API server accepts is required")]
    Unknown,
    /// The user may not get the path.
    #[error("user \"{user}\" cannot get path \"{path}\"")]
    Forbidden {
        /// The name of the user.
        user: String,
        /// The path.
        path: &'static str,
    },
    /// Another replica has it.
    #[error("this replica does not lead, so it has no ledger; {}", at(leader.as_deref()))]
    Elsewhere {
        /// The identity of the one that leads, as its Lease states it: its pod's name comes before the first `_`.
        leader: Option<String>,
    },
    /// The API server could not check the permission, or this replica has no answer.
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

/// Checks whether the user of this token may get a path; `None`: the request has no token.
pub type Access = Arc<dyn Fn(Option<String>) -> BoxFuture<'static, Result<(), Denial>> + Send + Sync>;

/// The token of `Authorization: Bearer …` (RFC 6750); the scheme's case does not count.
pub fn bearer(headers: &HeaderMap) -> Option<String> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// The answer to a request that is refused.
pub fn refused(denial: &Denial) -> Response {
    let status = match denial {
        Denial::Unknown => StatusCode::UNAUTHORIZED,
        Denial::Forbidden { .. } => StatusCode::FORBIDDEN,
        Denial::Unavailable(_) | Denial::Elsewhere { .. } => StatusCode::SERVICE_UNAVAILABLE,
    };
    let leader = match denial {
        Denial::Elsewhere { leader } => leader.as_deref(),
        Denial::Unknown | Denial::Forbidden { .. } | Denial::Unavailable(_) => None,
    };
    let mut response = ReviewRefusal::new(status, denial.to_string()).naming(leader).into_response();
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
            bearer(&headers)
        };
        assert_eq!(token("Bearer abc.def"), Some("abc.def".to_owned()));
        assert_eq!(token("bearer abc"), Some("abc".to_owned()));
        for bad in ["Basic abc", "Bearer", "Bearer  ", "abc", ""] {
            assert_eq!(token(bad), None, "{bad}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
