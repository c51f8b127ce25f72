//! Why a body can't be answered as a review.

/// Why a body can't be answered as a review. The API server then applies the webhook's `failurePolicy`.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum BadReview {
    /// The body is not JSON.
    #[error("the body is not JSON: {reason}")]
    NotJson {
        /// The parser's message, with line and column.
        reason: String,
    },
    /// The body is JSON, but not an object.
    #[error("the body is {found}; an AdmissionReview object is expected")]
    NotAnObject {
        /// The JSON type of the body.
        found: &'static str,
    },
    /// A required field is missing or empty.
    #[error("`{field}` is missing")]
    Missing {
        /// The path of the field.
        field: &'static str,
    },
    /// A field has a wrong type or value.
    #[error("`{field}`: {reason}")]
    Unreadable {
        /// The path of the field.
        field: String,
        /// The value found, and the expected one.
        reason: String,
    },
}

impl BadReview {
    /// The path of the wrong field; `None` if the error is about the whole body.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::NotJson { .. } | Self::NotAnObject { .. } => None,
            Self::Missing { field } => Some(field),
            Self::Unreadable { field, .. } => Some(field),
        }
    }
}
