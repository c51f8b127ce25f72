//! Why a request is not answered, as a `metav1.Status`.

use axum::response::{IntoResponse, Response};
use http::StatusCode;

use crate::webhook::{
    page::bearer::{Denial, refused},
    refusal::ReviewRefusal,
};

/// Why a request is not answered.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// The API server does not know the bearer, or could not be asked.
    #[error(transparent)]
    Denied(#[from] Denial),
    /// The user may not list the pods of the namespace; in the words of the API server.
    #[error(
        "pods is forbidden: User \"{user}\" cannot list resource \"pods\" in API group \"\" in the namespace \"{namespace}\""
    )]
    Forbidden {
        /// The user.
        user: String,
        /// The namespace.
        namespace: String,
    },
    /// There is no such thing.
    #[error("{kind} \"{name}\" not found")]
    NotFound {
        /// Of which kind: `pods`, `nodes`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// What was asked for can't be read.
    #[error("{0}")]
    BadRequest(String),
    /// There is no answer now.
    #[error("{0}")]
    Unavailable(&'static str),
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Denied(denial) => return refused(denial),
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::BadRequest(_) => StatusCode::BAD_REQUEST,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        ReviewRefusal::new(status, self.to_string()).into_response()
    }
}
