//! What is said of a pod, and how much of it whoever may read the pod is told.
//!
//! An Event or a condition is read by everybody who may read pods of its namespace. Nodes, GPUs, what is free of them, and the pods of others may be none of
//! their business. A reason is rendered in full and, where that names any of these, without them; the adapter that tells it renders it, and chooses
//! which of both is told.

/// How much of a message stands where the users of a namespace read it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Details {
    /// All that is known: nodes, GPUs, amounts, other pods.
    #[default]
    Full,
    /// The user's own objects, and counts with reasons.
    Own,
}

/// A text about a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// All that is known.
    pub full: String,
    /// The same without what is not the pod's owner's; `None`: there is nothing of that kind in it.
    pub own: Option<String>,
}

impl Message {
    /// A text, and what of it is told with [`Details::Own`].
    pub fn with_own(full: impl Into<String>, own: impl Into<String>) -> Self {
        Self { full: full.into(), own: Some(own.into()) }
    }

    /// What is told, and what is left out of that for administrators to read elsewhere, which is the text in full.
    pub fn told(self, details: Details) -> (String, Option<String>) {
        match (details, self.own) {
            (Details::Own, Some(own)) if own != self.full => (own, Some(self.full)),
            _ => (self.full, None),
        }
    }
}

/// A text that names nothing but what is the pod's owner's.
impl From<String> for Message {
    fn from(full: String) -> Self {
        Self { full, own: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_left_for_administrators() {
        let message = || Message::with_own("node n1 is full", "a node is full");
        assert_eq!(message().told(Details::Full), ("node n1 is full".to_owned(), None));
        let own = ("a node is full".to_owned(), Some("node n1 is full".to_owned()));
        assert_eq!(message().told(Details::Own), own);
        assert_eq!(Message::from("quota".to_owned()).told(Details::Own), ("quota".to_owned(), None));
    }
}
