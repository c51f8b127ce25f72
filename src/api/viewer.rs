//! Who looks, and whose pods she may see by name.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::BoxFuture;
use serde::Serialize;

use super::ApiError;
use crate::webhook::bearer::Denial;

/// Who looks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Viewer {
    /// The user, as the API server calls her.
    pub user: String,
    /// Whose pods she may see.
    pub sees: Sees,
}

/// Whose pods somebody may see by name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sees {
    /// Those of every namespace.
    All,
    /// Those of these.
    Namespaces(BTreeSet<Arc<str>>),
}

/// Finds out who bears a token, and in which of these namespaces she may list pods.
pub type Viewers = Arc<
    dyn Fn(Option<String>, BTreeSet<Arc<str>>) -> BoxFuture<'static, Result<Viewer, Denial>> + Send + Sync,
>;

/// The viewer, as she is told.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ViewerRow<'a> {
    user: &'a str,
    /// `all` or `some` pods by name.
    sees: &'static str,
}

impl Viewer {
    /// Whether she may see the pods of a namespace by name.
    pub fn sees(&self, namespace: &str) -> bool {
        match &self.sees {
            Sees::All => true,
            Sees::Namespaces(namespaces) => namespaces.contains(namespace),
        }
    }

    /// An error unless she may see the pods of a namespace.
    pub(super) fn check(&self, namespace: &str) -> Result<(), ApiError> {
        let forbidden = || ApiError::Forbidden { user: self.user.clone(), namespace: namespace.to_owned() };
        if self.sees(namespace) { Ok(()) } else { Err(forbidden()) }
    }

    pub(super) fn row(&self) -> ViewerRow<'_> {
        ViewerRow { user: &self.user, sees: if self.sees == Sees::All { "all" } else { "some" } }
    }
}
