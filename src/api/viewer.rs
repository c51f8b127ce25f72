//! Who looks, and whose pods she may see by name.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use futures::future::BoxFuture;
use serde::Serialize;

use super::ApiError;
use crate::webhook::page::bearer::Denial;

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

    /// A number that is another one where she may see pods of other namespaces.
    pub(super) fn rights(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match &self.sees {
            Sees::All => hasher.write_u8(1),
            Sees::Namespaces(namespaces) => namespaces.hash(&mut hasher),
        }
        hasher.finish()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(namespaces: &[&str]) -> Viewer {
        let sees = Sees::Namespaces(namespaces.iter().map(|&name| name.into()).collect());
        Viewer { user: "ada".to_owned(), sees }
    }

    #[test]
    fn a_namespace_more_is_another_view() {
        let all = Viewer { user: "ops".to_owned(), sees: Sees::All };
        assert_eq!(of(&["a", "b"]).rights(), of(&["b", "a"]).rights());
        let different =
            [of(&[]), of(&["a"]), of(&["a", "b"]), of(&["ab"]), all].map(|viewer| viewer.rights());
        assert_eq!(BTreeSet::from(different).len(), different.len());
    }

    #[test]
    fn a_namespace_that_she_may_not_list_is_refused_in_the_words_of_the_api_server() {
        let ada = of(&["a"]);
        assert_eq!(ada.check("a"), Ok(()));
        let message = "pods is forbidden: User \"ada\" cannot list resource \"pods\" in API group \"\" in the namespace \"b\"";
        assert_eq!(ada.check("b").unwrap_err().to_string(), message);
    }
}
