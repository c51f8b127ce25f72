//! What a key of `berth.yaml` may hold, as JSON Schema says it.

use serde_json::{Map, Value, json};

pub(in crate::config) fn text() -> Value {
    json!({"type": "string"})
}

pub(in crate::config) fn switch() -> Value {
    json!({"type": "boolean"})
}

/// A boolean, also as text that Go reads.
pub(in crate::config) fn flag() -> Value {
    json!({"type": ["boolean", "string"]})
}

pub(in crate::config) fn anything() -> Value {
    json!(true)
}

pub(in crate::config) fn whole(least: i64, most: i64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

pub(in crate::config) fn amount(least: i64) -> Value {
    whole(least, i64::from(i32::MAX))
}

pub(in crate::config) fn one_of(words: &[&str]) -> Value {
    json!({"enum": words})
}

pub(in crate::config) fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

/// A mapping of these keys and no others, all of them optional.
pub(in crate::config) fn mapping<'a>(keys: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    let keys: Map<String, Value> = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    json!({"type": ["object", "null"], "properties": keys, "additionalProperties": false})
}

/// The same with keys that must be there.
pub(in crate::config) fn requiring(mut mapping: Value, keys: &[&str]) -> Value {
    mapping["type"] = "object".into();
    mapping["required"] = json!(keys);
    mapping
}
