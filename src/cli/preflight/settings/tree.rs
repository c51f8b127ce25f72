//! A settings tree without one of its keys, which is named as errors of the settings name it.

use serde_json::Value;

/// The tree without the value at this path, such as `dialects.hami.vnpus.configs[2]`; `None`: there is nothing at it. Keys may hold
/// points themselves.
pub(super) fn without(tree: &Value, path: &str) -> Option<Value> {
    let mut tree = tree.clone();
    remove(&mut tree, path).then_some(tree)
}

fn remove(value: &mut Value, path: &str) -> bool {
    match value {
        Value::Object(fields) => {
            if fields.shift_remove(path).is_some() {
                return true;
            }
            fields.iter_mut().any(|(key, below)| {
                let rest = path.strip_prefix(key.as_str()).unwrap_or_default();
                let rest = rest.strip_prefix('.').or_else(|| rest.starts_with('[').then_some(rest));
                rest.is_some_and(|rest| remove(below, rest))
            })
        }
        Value::Array(items) => {
            let Some((place, rest)) = path.strip_prefix('[').and_then(|path| path.split_once(']')) else {
                return false;
            };
            let Some(place) = place.parse().ok().filter(|place: &usize| *place < items.len()) else {
                return false;
            };
            if rest.is_empty() {
                items.remove(place);
                return true;
            }
            remove(&mut items[place], rest.strip_prefix('.').unwrap_or(rest))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_key_is_found_by_its_path_also_where_it_holds_points() {
        let tree = json!({"a": {"b.c": 1, "b": {"c": 2}, "d": [{"e": 3}, 4]}});
        assert_eq!(without(&tree, "a.b.c"), Some(json!({"a": {"b": {"c": 2}, "d": [{"e": 3}, 4]}})));
        assert_eq!(without(&tree, "a.d[0].e"), Some(json!({"a": {"b.c": 1, "b": {"c": 2}, "d": [{}, 4]}})));
        assert_eq!(without(&tree, "a.d[1]"), Some(json!({"a": {"b.c": 1, "b": {"c": 2}, "d": [{"e": 3}]}})));
        for absent in ["", "a.x", "a.d[2]", "a.d[x]", "a.d", "a.b.c.d"] {
            let found = without(&tree, absent);
            assert_eq!(found.is_some(), absent == "a.d", "{absent}");
        }
    }
}
