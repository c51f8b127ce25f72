//! What may keep two pods off one card.

use std::{fmt, sync::Arc};

/// A mark that a pod bears, such as its group or a rule that it falls under; a pod may shun cards whose users bear one.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Mark(Arc<str>);

impl<T: AsRef<str>> From<T> for Mark {
    fn from(text: T) -> Self {
        Self(Arc::from(text.as_ref()))
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
