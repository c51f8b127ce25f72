//! How an object's metadata is read and set in its JSON; it knows no kind.

use serde_json::{Map, Value};

/// The string at a JSON pointer, or empty.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(super) fn namespace(object: &Value) -> &str {
    text(object, "/metadata/namespace")
}

pub(super) fn uid(object: &Value) -> &str {
    text(object, "/metadata/uid")
}

pub(super) fn resource_version(object: &Value) -> &str {
    text(object, "/metadata/resourceVersion")
}

pub(super) fn is_deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(Value::is_string)
}

pub(super) fn has_finalizers(object: &Value) -> bool {
    !list(object, "/metadata/finalizers").is_empty()
}

/// The list at a JSON pointer, or an empty one.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The string map at a JSON pointer, as pairs.
pub(super) fn pairs<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = object.pointer(pointer).and_then(Value::as_object);
    map.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}

/// The object under a key, made when it is absent or null.
pub(super) fn child<'a>(parent: &'a mut Value, key: &str) -> &'a mut Value {
    if !parent.is_object() {
        *parent = Value::Object(Map::new());
    }
    if !parent[key].is_object() {
        parent[key] = Value::Object(Map::new());
    }
    &mut parent[key]
}

/// Sets a metadata field, or removes it.
pub(super) fn set_meta(object: &mut Value, field: &str, value: Option<Value>) {
    set(child(object, "metadata"), field, value);
}

/// Sets a field, or removes it.
pub(super) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(map) = object.as_object_mut() else { return };
    match value {
        Some(value) => _ = map.insert(field.to_owned(), value),
        None => _ = map.shift_remove(field),
    }
}

/// Sets a field that is absent or null.
pub(super) fn default(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        set(object, field, Some(value));
    }
}

/// Takes the nulls out, as decoding into typed structs would.
pub(super) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, child| !child.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}
