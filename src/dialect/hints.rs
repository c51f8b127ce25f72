//! The annotations by which users choose cards.

use std::borrow::Cow;

use crate::{
    device::{IdFilter, ModelFilter},
    object::Metadata,
};

/// A second list of wanted models, which must hold beside the pod's own: admission writes the namespace's here where the pod
/// has one too, since two lists of substrings can't be made one.
pub const ALSO_USE_MODEL: &str = "berth.dev/use-gputype";

/// A dialect's keys.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HintKeys {
    /// Wanted models, by substring; none where the plugin's cards are all of one model.
    pub use_model: Option<Cow<'static, str>>,
    /// Unwanted models, by substring.
    pub no_use_model: Option<Cow<'static, str>>,
    /// Wanted cards, by uuid.
    pub use_id: Cow<'static, str>,
    /// Unwanted cards, by uuid.
    pub no_use_id: Cow<'static, str>,
}

impl HintKeys {
    /// The models that the object's annotations want and don't want.
    pub fn models(&self, metadata: &Metadata) -> ModelFilter {
        let said = |key: &str| elements(metadata.annotation(key));
        let wanted = self.use_model.iter().flat_map(|key| [key, ALSO_USE_MODEL]).map(said);
        ModelFilter {
            any_of: wanted.filter(|list| !list.is_empty()).collect(),
            none_of: self.no_use_model.as_deref().map(said).unwrap_or_default(),
        }
    }

    /// Every key.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let models = self.use_model.iter().chain(&self.no_use_model);
        models.chain([&self.use_id, &self.no_use_id]).map(Cow::as_ref)
    }

    /// The cards that the object's annotations want and don't want.
    pub fn ids(&self, metadata: &Metadata) -> IdFilter {
        let read = |key: &str| elements(metadata.annotation(key));
        IdFilter { one_of: read(&self.use_id), none_of: read(&self.no_use_id) }
    }
}

/// The elements of a comma list: trimmed, empty ones left out, so that `"A100,"` does not come to mean everything.
pub fn elements(list: Option<&str>) -> Vec<String> {
    let parts = list.unwrap_or_default().split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_elements_say_nothing() {
        assert_eq!(elements(Some(" A100 ,, H100,")), ["A100", "H100"]);
        assert!(elements(Some(" ,")).is_empty());
        assert!(elements(None).is_empty());
    }
}
