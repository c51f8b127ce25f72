//! What may keep two pods off one card.

use std::{fmt, ops::Deref, sync::Arc};

use thin_vec::ThinVec;

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

/// Marks in order, each once. Most pods and cards have none, and for these it takes one word.
#[derive(Clone, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Marks(ThinVec<Mark>);

impl fmt::Debug for Marks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(&**self).finish()
    }
}

impl Deref for Marks {
    type Target = [Mark];

    fn deref(&self) -> &[Mark] {
        &self.0
    }
}

impl Extend<Mark> for Marks {
    fn extend<I: IntoIterator<Item = Mark>>(&mut self, marks: I) {
        let before = self.len();
        self.0.extend(marks);
        if self.len() > before {
            self.0.sort();
            self.0.dedup();
        }
    }
}

impl FromIterator<Mark> for Marks {
    fn from_iter<I: IntoIterator<Item = Mark>>(marks: I) -> Self {
        let mut all = Self::default();
        all.extend(marks);
        all
    }
}

impl IntoIterator for Marks {
    type Item = Mark;
    type IntoIter = thin_vec::IntoIter<Mark>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<const N: usize> From<[Mark; N]> for Marks {
    fn from(marks: [Mark; N]) -> Self {
        marks.into_iter().collect()
    }
}
