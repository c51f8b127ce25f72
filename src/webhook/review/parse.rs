//! Parses the JSON of one object, and names the field in an error.
//!
//! It knows neither the rules nor the envelope of the review.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    excerpt::{FIELD, MESSAGE, shortened},
    object::{self, Pod, UnreadableField},
};

/// The field and the reason, both shortened, since the parser quotes its input.
pub(super) struct Fault {
    pub(super) field: String,
    pub(super) reason: String,
}

/// Parses one JSON value.
pub(super) fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    object::parse(json).map_err(|UnreadableField { field, reason }| Fault {
        field: shortened(field, FIELD),
        reason: shortened(reason, MESSAGE),
    })
}

/// Parses a pod of a request. A pod without `metadata` is refused: no API server sends one, and a patch could not be applied to it.
pub(super) fn pod(object: &str) -> Result<Pod, Fault> {
    let pod = parse::<Pod>(object)?;
    let has_metadata =
        || parse::<BTreeMap<String, &RawValue>>(object).is_ok_and(|keys| keys.contains_key("metadata"));
    if is_named(&pod) || has_metadata() {
        return Ok(pod);
    }
    Err(Fault { field: "metadata".to_owned(), reason: "is missing".to_owned() })
}

/// Whether the pod has a name or a `generateName`, as every pod that an API server accepts.
pub(super) fn is_named(pod: &Pod) -> bool {
    !pod.metadata.name.is_empty() || pod.metadata.generate_name.is_some()
}
