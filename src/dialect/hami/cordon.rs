//! Cards that operators exclude from new pods: an annotation of the node with their uuids, which holds for the cards of all plugins in HAMi's form.

use std::collections::BTreeSet;

use super::names::CORDON;
use crate::{dialect::hints::elements, object::Node};

/// The uuids that the node's annotation lists.
pub fn cordoned(node: &Node) -> BTreeSet<String> {
    elements(node.metadata.annotation(CORDON)).into_iter().collect()
}

/// The annotation, and its value for these cards; `None`: it is not needed.
pub fn annotation(cards: &BTreeSet<String>) -> (&'static str, Option<String>) {
    let value = cards.iter().map(String::as_str).collect::<Vec<_>>().join(",");
    (CORDON, (!value.is_empty()).then_some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let cards = BTreeSet::from(["GPU-1".to_owned(), "GPU-2".to_owned()]);
        let (key, value) = annotation(&cards);
        let node =
            |annotations| serde_json::from_value(json!({"metadata": {"annotations": annotations}})).unwrap();
        assert_eq!(cordoned(&node(json!({key: value}))), cards);
        assert!(cordoned(&node(json!({}))).is_empty());
        assert_eq!(annotation(&BTreeSet::new()), (key, None));
    }
}
