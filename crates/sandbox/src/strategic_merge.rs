//! How a strategic merge patch changes an object: maps by key, known lists by their merge key, directives; other lists are replaced.

use super::status::{Result, StatusError};
use serde_json::{Map, Value, json};

/// How a list in a patch meets the list in the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    /// Items are merged where this field is equal.
    Keyed(&'static str),
    /// Strings are added once.
    Set,
    Replace,
}

/// The patch strategy of a list field, from the `patchStrategy` and `patchMergeKey` tags of the Kubernetes types.
fn strategy(field: &str, items: &[Value]) -> Strategy {
    match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "schedulingGates"
        | "resourceClaims"
        | "resourceClaimStatuses"
        | "secrets"
        | "webhooks"
        | "matchConditions" => Strategy::Keyed("name"),
        "conditions" | "addresses" => Strategy::Keyed("type"),
        "ownerReferences" | "reservedFor" => Strategy::Keyed("uid"),
        "volumeMounts" => Strategy::Keyed("mountPath"),
        "volumeDevices" => Strategy::Keyed("devicePath"),
        "hostAliases" | "podIPs" => Strategy::Keyed("ip"),
        "topologySpreadConstraints" => Strategy::Keyed("topologyKey"),
        // Containers key their ports by containerPort, services by port.
        "ports" if items.iter().any(|item| item.get("containerPort").is_some()) => {
            Strategy::Keyed("containerPort")
        }
        "ports" => Strategy::Keyed("port"),
        "finalizers" => Strategy::Set,
        _ => Strategy::Replace,
    }
}

/// Applies a patch to an object.
pub(super) fn merge(object: &mut Value, patch: &Value) -> Result<()> {
    let Value::Object(patch) = patch else {
        *object = patch.clone();
        return Ok(());
    };
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            *object = Value::Object(without_directives(patch));
            return Ok(());
        }
        Some("delete") => {
            *object = json!({});
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => {
            return Err(StatusError::bad_request(format!("Unknown patch type found: {other}")));
        }
    }
    if !object.is_object() {
        *object = json!({});
    }
    let map = object.as_object_mut().expect("it was just made an object");
    retain_keys(map, patch);
    for (field, value) in patch {
        match field.strip_prefix("$deleteFromPrimitiveList/") {
            Some(field) => remove_strings(map, field, value),
            None if field.starts_with('$') => {}
            None => merge_field(map, field, value)?,
        }
    }
    for (field, order) in patch {
        if let Some(field) = field.strip_prefix("$setElementOrder/") {
            reorder(map, field, order);
        }
    }
    Ok(())
}

fn merge_field(map: &mut Map<String, Value>, field: &str, value: &Value) -> Result<()> {
    match value {
        Value::Null => _ = map.shift_remove(field),
        Value::Object(_) => merge(map.entry(field).or_insert_with(|| json!({})), value)?,
        Value::Array(items) => merge_list(map.entry(field).or_insert_with(|| json!([])), field, items)?,
        _ => _ = map.insert(field.to_owned(), value.clone()),
    }
    Ok(())
}

fn merge_list(list: &mut Value, field: &str, patch: &[Value]) -> Result<()> {
    let replace = patch.iter().any(|item| item["$patch"] == "replace");
    let Some(own) = list.as_array_mut().filter(|_| !replace) else {
        *list = Value::Array(patch.iter().filter(|item| item["$patch"] != "replace").map(plain).collect());
        return Ok(());
    };
    let before = own.clone();
    let key = match strategy(field, if own.is_empty() { patch } else { own }) {
        Strategy::Replace => {
            *own = patch.iter().map(plain).collect();
            return Ok(());
        }
        Strategy::Set => {
            own.extend(patch.iter().filter(|item| !before.contains(item)).cloned());
            None
        }
        Strategy::Keyed(key) => {
            for item in patch {
                merge_item(own, key, item)?;
            }
            Some(key)
        }
    };
    *own = interleave(std::mem::take(own), &before, patch, key);
    Ok(())
}

/// The order of a merged list: the patch's items in its order, each as early as the old order of the others allows.
fn interleave(merged: Vec<Value>, before: &[Value], patch: &[Value], key: Option<&str>) -> Vec<Value> {
    let same = |one: &Value, other: &Value| match key {
        Some(key) => one.get(key) == other.get(key),
        None => one == other,
    };
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut patched, kept): (Vec<Value>, Vec<Value>) =
        merged.into_iter().partition(|item| place(patch, item).is_some());
    patched.sort_by_key(|item| place(patch, item));
    let mut kept = kept.into_iter().peekable();
    let mut ordered = Vec::new();
    for item in patched {
        if let Some(limit) = place(before, &item) {
            while let Some(earlier) = kept.next_if(|other| place(before, other) < Some(limit)) {
                ordered.push(earlier);
            }
        }
        ordered.push(item);
    }
    ordered.extend(kept);
    ordered
}

fn merge_item(own: &mut Vec<Value>, key: &str, item: &Value) -> Result<()> {
    let Some(id) = item.get(key) else {
        return Err(StatusError::bad_request(format!(
            "map: {item} does not contain declared merge key: {key}"
        )));
    };
    let place = own.iter().position(|other| other.get(key) == Some(id));
    if item["$patch"] == "delete" {
        own.retain(|other| other.get(key) != Some(id));
        return Ok(());
    }
    let place = place.unwrap_or_else(|| {
        own.push(json!({}));
        own.len() - 1
    });
    merge(&mut own[place], item)
}

/// The value without directives and without nulls, which only mean removal.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(without_directives(map)),
        Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        other => other.clone(),
    }
}

fn without_directives(map: &Map<String, Value>) -> Map<String, Value> {
    let kept = map.iter().filter(|(field, value)| !field.starts_with('$') && !value.is_null());
    kept.map(|(field, value)| (field.clone(), plain(value))).collect()
}

fn retain_keys(map: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if let Some(Value::Array(keep)) = patch.get("$retainKeys") {
        map.retain(|field, _| keep.iter().any(|name| name == field));
    }
}

fn remove_strings(map: &mut Map<String, Value>, field: &str, gone: &Value) {
    let gone = gone.as_array().map_or(&[][..], Vec::as_slice);
    if let Some(Value::Array(own)) = map.get_mut(field) {
        own.retain(|item| !gone.contains(item));
    }
}

/// Puts the listed items first to last as listed; items that are not listed keep their place behind.
fn reorder(map: &mut Map<String, Value>, field: &str, order: &Value) {
    let order = order.as_array().map_or(&[][..], Vec::as_slice);
    let Some(Value::Array(own)) = map.get_mut(field) else {
        return;
    };
    let key = match strategy(field, own) {
        Strategy::Keyed(key) => Some(key),
        _ => None,
    };
    own.sort_by_key(|item| {
        let listed = order.iter().position(|wanted| match key {
            Some(key) => wanted.get(key) == item.get(key),
            None => wanted == item,
        });
        listed.unwrap_or(order.len())
    });
}

#[cfg(test)]
mod tests {
    use super::merge;
    use serde_json::{Value, json};

    fn merged(mut object: Value, patch: &Value) -> Value {
        merge(&mut object, patch).unwrap();
        object
    }

    #[test]
    fn lists_follow_their_patch_strategy() {
        let cases = [
            (
                json!({"conditions": [{"type": "A", "status": "True", "reason": "r"}, {"type": "B"}]}),
                json!({"conditions": [{"type": "A", "status": "False", "reason": null}, {"type": "C"}]}),
                json!({"conditions": [{"type": "A", "status": "False"}, {"type": "C"}, {"type": "B"}]}),
            ),
            (
                json!({"containers": [{"name": "a", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}),
                json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}, {"name": "b", "$patch": "delete"}]}),
                json!({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]}]}),
            ),
            (
                json!({"tolerations": [{"key": "a"}], "finalizers": ["x"]}),
                json!({"tolerations": [{"key": "b"}], "finalizers": ["y", "x"]}),
                json!({"tolerations": [{"key": "b"}], "finalizers": ["y", "x"]}),
            ),
            (
                json!({"ports": [{"containerPort": 1, "name": "a"}]}),
                json!({"ports": [{"containerPort": 1, "hostPort": 2}]}),
                json!({"ports": [{"containerPort": 1, "name": "a", "hostPort": 2}]}),
            ),
            (
                json!({"conditions": [{"type": "A"}]}),
                json!({"conditions": [{"$patch": "replace"}, {"type": "B"}]}),
                json!({"conditions": [{"type": "B"}]}),
            ),
        ];
        for (object, patch, want) in cases {
            assert_eq!(merged(object, &patch), want, "{patch}");
        }
    }

    #[test]
    fn directives_replace_remove_and_order() {
        let object = || json!({"m": {"a": "1", "b": "2"}, "finalizers": ["x", "y"], "env": [{"name": "A"}, {"name": "B"}]});
        assert_eq!(merged(object(), &json!({"m": {"$patch": "replace", "c": "3"}}))["m"], json!({"c": "3"}));
        assert_eq!(merged(object(), &json!({"m": {"a": null}}))["m"], json!({"b": "2"}));
        let patch = json!({"$deleteFromPrimitiveList/finalizers": ["x"], "m": {"$retainKeys": ["b"]},
            "$setElementOrder/env": [{"name": "B"}, {"name": "A"}]});
        let got = merged(object(), &patch);
        assert_eq!(got, json!({"m": {"b": "2"}, "finalizers": ["y"], "env": [{"name": "B"}, {"name": "A"}]}));
        assert!(merge(&mut object(), &json!({"env": [{"value": "no name"}]})).is_err());
    }
}
