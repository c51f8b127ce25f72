//! YAML as a tree that knows the line of every key and value.
//!
//! It knows no setting: what keys mean is read by `section`.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_saphyr::{Spanned, UserMessageFormatter};

/// A value and its line, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TreeNode {
    pub(super) line: u64,
    /// Its position, where it is an element of a list; 0 else.
    pub(super) at: usize,
    pub(super) value: Value,
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<TreeNode>),
    Map(Vec<KeyEntry>),
}

/// A key, its line, and its value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyEntry {
    pub(super) key: String,
    pub(super) line: u64,
    pub(super) node: TreeNode,
}

/// The one document of a file; an empty file is `Null`. Errors: line and message.
pub(super) fn parse(text: &str) -> Result<TreeNode, (u64, String)> {
    let options = serde_saphyr::options! { with_snippet: false };
    let documents: Vec<TreeNode> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            (line, one_line(&error.without_snippet().render_with_formatter(&UserMessageFormatter)))
        })?;
    let mut documents = documents.into_iter();
    let first = documents.next().unwrap_or(TreeNode { line: 1, at: 0, value: Value::Null });
    match documents.next() {
        Some(second) => Err((second.line, "a settings file has one document only".to_owned())),
        None => Ok(first),
    }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<'de> Deserialize<'de> for TreeNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self { line: spanned.referenced.line(), at: 0, value: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a YAML value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or_else(|_| Value::Text(value.to_string()), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(node) = elements.next_element::<TreeNode>()? {
            list.push(TreeNode { at: list.len(), ..node });
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let node = entries.next_value()?;
            map.push(KeyEntry { line: key.referenced.line(), key: key.value, node });
        }
        Ok(Value::Map(map))
    }
}
