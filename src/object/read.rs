//! Reads an object that is parsed already, and names the field that can't be read.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// A field that can't be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct UnreadableField {
    /// Its path from the object's root.
    pub field: String,
    /// Why.
    pub reason: String,
}

/// The object as a typed value. Every error that is to name its field is found here: each further way to read objects makes the program larger by
/// the code that reads all kinds.
pub fn read<T: DeserializeOwned>(object: &Value) -> Result<T, UnreadableField> {
    serde_path_to_error::deserialize(object).map_err(|error| UnreadableField {
        field: error.path().to_string(),
        reason: error.into_inner().to_string(),
    })
}
