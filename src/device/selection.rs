//! Which cards may serve a pod: by model, by uuid, by mode.

use super::card::{Card, CardId, Mode};

/// Models are matched by substring, whatever the case.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ModelFilter {
    /// Lists of which each must have an element that the model contains; an empty list asks for nothing.
    pub any_of: Vec<Vec<String>>,
    /// Elements that the model must not contain.
    pub none_of: Vec<String>,
}

impl ModelFilter {
    /// Whether a card of this model may serve.
    pub fn admits(&self, model: &str) -> bool {
        let contains = |part: &String| contains(model, part);
        let wanted = self.any_of.iter().all(|list| list.is_empty() || list.iter().any(contains));
        wanted && !self.none_of.iter().any(contains)
    }
}

/// Whether the model contains the part, whatever the case of either.
fn contains(model: &str, part: &str) -> bool {
    if !model.is_ascii() || !part.is_ascii() {
        return model.to_lowercase().contains(&part.to_lowercase());
    }
    let part = part.as_bytes();
    part.is_empty() || model.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// Uuids are matched exactly.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct IdFilter {
    /// The cards that may serve; empty: every card.
    pub one_of: Vec<String>,
    /// The cards that may not.
    pub none_of: Vec<String>,
}

impl IdFilter {
    /// Whether this card may serve.
    pub fn admits(&self, id: &CardId) -> bool {
        let named = |list: &[String]| list.iter().any(|uuid| uuid == id.as_str());
        (self.one_of.is_empty() || named(&self.one_of)) && !named(&self.none_of)
    }
}

/// Which cards may serve a pod.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Selection {
    /// By model.
    pub models: ModelFilter,
    /// By uuid.
    pub ids: IdFilter,
    /// By how they are sliced; none: any way.
    pub modes: Option<Vec<Mode>>,
}

impl Selection {
    /// Whether the pod accepts how the card is sliced.
    pub fn admits_mode(&self, card: &Card) -> bool {
        self.modes.as_ref().is_none_or(|modes| modes.contains(&card.mode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(elements: &[&str]) -> Vec<String> {
        elements.iter().map(|&element| element.to_owned()).collect()
    }

    #[test]
    fn every_list_of_wanted_models_must_hold() {
        let filter = ModelFilter { any_of: vec![list(&["a100", "H100"]), list(&["SXM"])], none_of: vec![] };
        assert!(filter.admits("NVIDIA A100-SXM4-80GB"));
        assert!(!filter.admits("NVIDIA A100-PCIE-40GB"));
        assert!(!filter.admits("NVIDIA V100-SXM2"));
    }

    #[test]
    fn an_unwanted_model_outweighs_a_wanted_one() {
        let filter = ModelFilter { any_of: vec![list(&["A100"])], none_of: list(&["40gb"]) };
        assert!(filter.admits("A100-80GB"));
        assert!(!filter.admits("A100-40GB"));
    }

    #[test]
    fn models_match_by_substring_whatever_the_case() {
        for part in ["", "nvidia", "A100-sxm4", "80GB"] {
            assert!(contains("NVIDIA A100-SXM4-80GB", part), "{part}");
        }
        assert!(contains("\u{c4}MD", "\u{e4}md") && !contains("A100", "A1000") && !contains("", "A"));
    }

    #[test]
    fn uuids_match_whole_and_refusal_wins() {
        let filter = IdFilter { one_of: list(&["GPU-1", "GPU-2"]), none_of: list(&["GPU-2"]) };
        assert!(filter.admits(&"GPU-1".into()));
        assert!(!filter.admits(&"GPU-10".into()));
        assert!(!filter.admits(&"GPU-2".into()));
    }
}
