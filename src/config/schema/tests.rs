//! That schema and reader know the same keys.

use super::*;
use crate::config::{Config, ConfigError};

/// What a value breaks of a schema, as far as ours use JSON Schema.
fn fault(schema: &Value, value: &Value, at: &str) -> Option<String> {
    if schema == &Value::Bool(true) {
        return None;
    }
    if let Some(words) = schema["enum"].as_array() {
        return (!words.contains(value)).then(|| format!("{at}: none of {words:?}"));
    }
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    if !types.contains(&found.into()) {
        return Some(format!("{at}: {found} is none of {types:?}"));
    }
    if let Some(number) = value.as_i64() {
        let (least, most) = (schema["minimum"].as_i64().unwrap(), schema["maximum"].as_i64().unwrap());
        return (!(least..=most).contains(&number)).then(|| format!("{at}: {number} is out of range"));
    }
    let items = value.as_array().into_iter().flatten();
    let in_items =
        items.enumerate().find_map(|(index, item)| fault(&schema["items"], item, &format!("{at}[{index}]")));
    let fields = value.as_object().into_iter().flatten();
    in_items.or_else(|| fields.into_iter().find_map(|(key, value)| of_field(schema, key, value, at)))
}

fn of_field(schema: &Value, key: &str, value: &Value, at: &str) -> Option<String> {
    let below = format!("{at}.{key}");
    let zone =
        key.starts_with("tdm.revocable-zone.").then(|| schema["patternProperties"].as_object()).flatten();
    match schema["properties"].get(key).or_else(|| zone?.values().next()) {
        Some(schema) => fault(schema, value, &below),
        None => Some(format!("{below}: unknown")),
    }
}

/// Every mapping of the schema that is in no list, by its path.
fn mappings(schema: &Value, path: &[String], found: &mut Vec<(Vec<String>, Vec<String>)>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    found.push((path.to_vec(), properties.keys().cloned().collect()));
    for (key, schema) in properties {
        mappings(schema, &[path, std::slice::from_ref(key)].concat(), found);
    }
}

fn all() -> Vec<(Vec<String>, Vec<String>)> {
    let mut found = Vec::new();
    mappings(&schema(), &[], &mut found);
    found
}

/// A file with this one key.
fn with(path: &[String], key: &str, value: &Value) -> Value {
    let file = json!({ key: value });
    path.iter().rev().fold(file, |below, key| json!({ key: below }))
}

fn read(file: &Value) -> Result<(), ConfigError> {
    Config::parse(&serde_saphyr::to_string(file).unwrap(), "berth.yaml").map(drop)
}

#[test]
fn the_settings_in_force_by_default_are_taken() {
    let mut config = serde_json::to_value(Config::default()).unwrap();
    assert_eq!(fault(&schema(), &config, "berth"), None);
    config["dialects"]["hami"]["defaultCores"] = 101.into();
    assert!(fault(&schema(), &config, "berth").unwrap().contains("out of range"));
    config["dialects"]["volcano"]["arguments"] = json!({"tdm.revocable-zone.rz1": "1:00-4:00"});
    config["dialects"]["hami"]["defaultCores"] = 100.into();
    assert_eq!(fault(&schema(), &config, "berth"), None);
}

#[test]
fn every_key_of_the_schema_is_one_that_is_read() {
    for (path, keys) in all() {
        for key in keys {
            let unknown = read(&with(&path, &key, &Value::Null))
                .is_err_and(|error| error.to_string().contains("unknown key"));
            assert!(!unknown, "{path:?}.{key}");
        }
    }
}

#[test]
fn a_key_that_is_not_read_is_refused_by_both_on_every_level() {
    let levels = all();
    assert!(levels.len() > 10);
    for (path, _) in levels {
        let file = with(&path, "nonsense", &json!(1));
        assert!(fault(&schema(), &file, "berth").is_some_and(|fault| fault.contains("nonsense")), "{path:?}");
        assert!(read(&file).unwrap_err().to_string().contains("nonsense: unknown key"), "{path:?}");
    }
}

#[test]
fn the_page_of_settings_names_no_key_that_the_schema_lacks() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/settings.md")).unwrap();
    let levels = all();
    let known = |key: &str| {
        let (start, end) = key.split_once('…').unwrap_or((key, ""));
        let mut keys = levels.iter().flat_map(|(path, keys)| {
            keys.iter().map(move |key| [path.as_slice(), std::slice::from_ref(key)].concat().join("."))
        });
        let ending = format!(".{}", key.trim_start_matches('.'));
        let named = |path: String| path == key || path.ends_with(&ending);
        let among = |path: &str| key.contains('…') && path.starts_with(start) && path.ends_with(end);
        keys.any(|path| among(&path) || named(path))
    };
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let keys: Vec<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(keys.len() > 30, "{keys:?}");
    let lacking: Vec<_> = keys.iter().filter(|key| !known(key)).collect();
    assert!(lacking.is_empty(), "{lacking:?}");
}
