//! Reads an object from JSON, and names the field that can't be read.
//!
//! serde_json says at which byte a reading ends, and which field stands there is looked up in the text. So no object is read in two ways: a
//! deserializer that keeps the path, as serde_path_to_error has it, would make the program larger by the code that reads all kinds.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, error::Category};

/// A field that can't be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct UnreadableField {
    /// Its path from the object's root, such as `spec.containers[0].name`; `.` is the root itself.
    pub field: String,
    /// Why.
    pub reason: String,
}

/// An object that is parsed already, as a typed value.
pub fn read<T: DeserializeOwned>(object: &Value) -> Result<T, UnreadableField> {
    parse(&object.to_string())
}

/// The typed value of a JSON text.
pub fn parse<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, UnreadableField> {
    serde_json::from_str(json).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let reason = error.to_string();
        // Whoever has written the object has not seen this text. Where it is no JSON, there may be no field.
        let is_of_field = error.classify() == Category::Data;
        let reason =
            reason.strip_suffix(&place).filter(|_| is_of_field).map_or(reason.clone(), str::to_owned);
        UnreadableField { field: field_at(json, last_byte(json, &error)), reason }
    })
}

/// The index of the last byte that was read before this error.
fn last_byte(json: &str, error: &serde_json::Error) -> usize {
    let lines = json.split_inclusive('\n').take(error.line().saturating_sub(1));
    (lines.map(str::len).sum::<usize>() + error.column()).saturating_sub(1)
}

/// A step into an array or an object whose end is not reached.
enum Step<'a> {
    Element(usize),
    /// Without the quotes; `None`: before the first key, or after a comma.
    Field(Option<&'a str>),
}

/// The path of the innermost value, or of the field whose name is there, that contains the byte of this index.
fn field_at(json: &str, index: usize) -> String {
    let bytes = json.as_bytes();
    let mut steps: Vec<Step<'_>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let end = if byte == b'"' { end_of_string(bytes, at) } else { at };
        if let (b'"', Some(Step::Field(name @ None))) = (byte, steps.last_mut()) {
            *name = json.get(at + 1..end);
        }
        match byte {
            b'}' | b']' => drop(steps.pop()),
            _ if index <= end => break,
            b'{' => steps.push(Step::Field(None)),
            b'[' => steps.push(Step::Element(0)),
            b',' => match steps.last_mut() {
                Some(Step::Element(number)) => *number += 1,
                Some(Step::Field(name)) => *name = None,
                None => {}
            },
            _ => {}
        }
        if index <= end {
            break;
        }
        at = end + 1;
    }
    path(&steps)
}

/// The index of the quote that ends the string which begins at `start`, or that of the last byte.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len().saturating_sub(1))
}

fn path(steps: &[Step<'_>]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Element(number) => path.extend(["[", &number.to_string(), "]"]),
            Step::Field(Some(name)) => {
                let name =
                    serde_json::from_str(&format!("\"{name}\"")).unwrap_or_else(|_| (*name).to_owned());
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name);
            }
            Step::Field(None) => {}
        }
    }
    if path.is_empty() { ".".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Tree {
        number: u8,
        text: String,
        map: BTreeMap<String, u8>,
        list: Vec<Tree>,
        leaf: Option<Leaf>,
        when: Option<jiff::Timestamp>,
    }

    #[derive(Debug, Deserialize)]
    struct Leaf {
        #[serde(rename = "kind")]
        _kind: String,
    }

    fn refusal(json: &str) -> (String, String) {
        let UnreadableField { field, reason } = parse::<Tree>(json).unwrap_err();
        (field, reason)
    }

    #[test]
    fn the_field_is_named_by_its_path() {
        let cases = [
            (json!({"number": "one"}), "number", r#"invalid type: string "one", expected u8"#),
            (json!({"number": 256}), "number", "invalid value: integer `256`, expected u8"),
            (json!({"number": -1, "text": "x"}), "number", "invalid value: integer `-1`, expected u8"),
            (json!({"text": {"a": 1}}), "text", "invalid type: map, expected a string"),
            (json!({"text": null}), "text", "invalid type: null, expected a string"),
            (json!({"text": true, "list": []}), "text", "invalid type: boolean `true`, expected a string"),
            (json!({"map": {"a.b/c": 1, "d": []}}), "map.d", "invalid type: sequence, expected u8"),
            (json!({"map": {"a.b/c": 1.5}}), "map.a.b/c", "invalid type: floating point `1.5`, expected u8"),
            (
                json!({"list": [{}, {"list": [{}, {"number": []}]}]}),
                "list[1].list[1].number",
                "invalid type: sequence, expected u8",
            ),
            (json!({"leaf": {}}), "leaf", "missing field `kind`"),
            (
                json!({"list": [{"text": "]}\",{["}, {"leaf": {"other": [1, {"x": 2}]}}]}),
                "list[1].leaf",
                "missing field `kind`",
            ),
            (
                json!({"map": {"say \"a\\b\"": "x"}}),
                r#"map.say "a\b""#,
                r#"invalid type: string "x", expected u8"#,
            ),
            (json!(7), ".", "invalid type: integer `7`, expected struct Tree"),
            (json!({"list": {}}), "list", "invalid type: map, expected a sequence"),
        ];
        for (object, field, reason) in cases {
            assert_eq!(refusal(&object.to_string()), (field.to_owned(), reason.to_owned()), "{object}");
            let spaced = serde_json::to_string_pretty(&object).unwrap();
            assert_eq!(refusal(&spaced), (field.to_owned(), reason.to_owned()), "{spaced}");
        }
        let (field, reason) = refusal(&json!({"text": "a", "when": "never", "number": 1}).to_string());
        assert_eq!(field, "when");
        assert!(!reason.contains(" at line "), "{reason}");
    }

    #[test]
    fn a_text_that_is_no_json_is_refused_with_the_place() {
        let cases = [
            ("", ".", "EOF while parsing a value at line 1 column 0"),
            (r#"{"list":[{"text":"#, "list[0].text", "EOF while parsing a value at line 1 column 17"),
            (r#"{"list":[{"text" 1}]}"#, "list[0].text", "expected `:` at line 1 column 18"),
            (r#"{"text":"a"} x"#, ".", "trailing characters at line 1 column 14"),
        ];
        for (json, field, reason) in cases {
            assert_eq!(refusal(json), (field.to_owned(), reason.to_owned()), "{json}");
        }
    }

    #[test]
    fn depth_does_not_matter() {
        let deep = format!(r#"{{"list":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
        assert!(refusal(&deep).0.starts_with("list[0]"));
    }
}
