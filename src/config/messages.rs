//! The section `messages`: what the users of a namespace are told.

use serde::Serialize;

use super::{section::Section, trouble::Trouble};
use crate::scheduling::Details;

/// What Events, conditions and answers to dry runs say.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessagesConfig {
    /// Whether they name nodes, GPUs, what is free of them, and the pods of others.
    #[serde(serialize_with = "word")]
    pub details: Details,
}

/// The values of `details`.
pub(super) const DETAILS: [(&str, Details); 2] = [("full", Details::Full), ("own", Details::Own)];

/// The section; keys that it lacks keep their defaults.
pub(super) fn read(mut section: Section) -> Result<MessagesConfig, Trouble> {
    let messages = MessagesConfig { details: section.choice("details", Details::Full, &DETAILS)? };
    section.finish()?;
    Ok(messages)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn word<S: serde::Serializer>(details: &Details, serializer: S) -> Result<S::Ok, S::Error> {
    let (word, _) = DETAILS[usize::from(*details == Details::Own)];
    serializer.serialize_str(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, tests::error};

    #[test]
    fn details_are_full_unless_they_are_set() {
        let details = |text: &str| Config::parse(text, "f").unwrap().0.messages.details;
        assert_eq!((details(""), details("messages: {details: full}")), (Details::Full, Details::Full));
        assert_eq!(details("messages: {details: own}"), Details::Own);
        assert!(error("messages: {details: none}").contains("messages.details: must be"));
        for (word, details) in DETAILS {
            let text = serde_saphyr::to_string(&MessagesConfig { details }).unwrap();
            assert_eq!(text.trim(), format!("details: {word}"));
        }
    }
}
