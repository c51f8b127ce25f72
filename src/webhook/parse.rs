//! Parses the JSON of one object, and names the field in an error.
//!
//! It knows neither the rules nor the envelope of the review.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    excerpt::{FIELD, MESSAGE, shortened},
    object::{self, Pod},
};

/// The field and the reason, both shortened, since the parser quotes its input.
pub(super) struct Fault {
    pub(super) field: String,
    pub(super) reason: String,
}

/// Parses one JSON value. After a failure it parses again to find the field, since tracking the path costs more than parsing.
pub(super) fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    if let Ok(read) = serde_json::from_str(json) {
        return Ok(read);
    }
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(json)).map_err(|error| Fault {
        field: shortened(error.path().to_string(), FIELD),
        reason: shortened(error.inner().to_string(), MESSAGE),
    })
}

/// Parses a pod of a request.
pub(super) fn any_pod(object: &str) -> Result<Pod, Fault> {
    let error = match serde_json::from_str(object) {
        Ok(pod) => return Ok(pod),
        Err(error) => error,
    };
    let named = serde_json::from_str(object).ok().and_then(|value: Value| object::read::<Pod>(&value).err());
    let (field, reason) =
        named.map_or_else(|| (String::new(), error.to_string()), |named| (named.field, named.reason));
    Err(Fault { field: shortened(field, FIELD), reason: shortened(reason, MESSAGE) })
}

/// As [`any_pod`]. A pod without `metadata` is refused: no API server sends one, and a patch could not be applied to it.
pub(super) fn pod(object: &str) -> Result<Pod, Fault> {
    let pod = any_pod(object)?;
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
