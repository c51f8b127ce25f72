//! Reads the JSON of one object, and says which field is wrong where it can't be read.
//!
//! No rule and no envelope: what is asked about the object is `review`'s.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    excerpt::{FIELD, MESSAGE, shortened},
    object::Pod,
};

/// What can't be read, and where: excerpts, since the parser quotes what it met.
pub(super) struct Fault {
    pub(super) field: String,
    pub(super) reason: String,
}

/// Reads one JSON value, and on failure once more to say which field it was: keeping the path costs more than reading.
pub(super) fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, Fault> {
    if let Ok(read) = serde_json::from_str(json) {
        return Ok(read);
    }
    serde_path_to_error::deserialize(&mut serde_json::Deserializer::from_str(json)).map_err(|error| Fault {
        field: shortened(error.path().to_string(), FIELD),
        reason: shortened(error.inner().to_string(), MESSAGE),
    })
}

/// Reads the pod that is asked about. One without `metadata` is no API server's, and a patch would have nothing to stand on.
pub(super) fn pod(object: &str) -> Result<Pod, Fault> {
    let pod: Pod = parse(object)?;
    let has_metadata =
        || parse::<BTreeMap<String, &RawValue>>(object).is_ok_and(|keys| keys.contains_key("metadata"));
    if is_named(&pod) || has_metadata() {
        return Ok(pod);
    }
    Err(Fault { field: "metadata".to_owned(), reason: "is missing".to_owned() })
}

/// Whether the pod has a name or is to be given one, as every pod that an API server takes.
pub(super) fn is_named(pod: &Pod) -> bool {
    !pod.metadata.name.is_empty() || pod.metadata.generate_name.is_some()
}
