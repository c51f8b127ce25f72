//! Reads keys out of a mapping by name and type; a key that was not read is unknown.

use std::ops::RangeInclusive;

use jiff::SignedDuration;

use super::{
    duration,
    error::Notice,
    tree::{KeyEntry, TreeNode, Value},
    trouble::Trouble,
};
use crate::dialect::go_bool;

/// One key's value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Field {
    path: String,
    line: u64,
    node: TreeNode,
}

impl Field {
    /// The whole of a file.
    pub(super) fn root(node: TreeNode) -> Self {
        Self { path: String::new(), line: node.line, node }
    }

    pub(super) fn trouble(&self, message: impl Into<String>) -> Trouble {
        Trouble { line: self.line, key: self.path.clone(), message: message.into() }
    }

    pub(super) fn notice(&self, message: impl Into<String>) -> Notice {
        Notice { file: String::new(), line: self.line, key: self.path.clone(), message: message.into() }
    }

    pub(super) fn must_be(&self, what: &str) -> Trouble {
        let found = match &self.node.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("`{value}`"),
            Value::Int(value) => format!("`{value}`"),
            Value::Float(value) => format!("`{value}`"),
            Value::Text(text) => format!("the text `{text}`"),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
        };
        self.trouble(format!("must be {what}, not {found}"))
    }

    pub(super) fn bool(&self) -> Result<bool, Trouble> {
        match self.node.value {
            Value::Bool(value) => Ok(value),
            _ => Err(self.must_be("true or false")),
        }
    }

    /// A boolean, also as text that Go's `strconv.ParseBool` reads.
    pub(super) fn go_bool(&self) -> Result<bool, Trouble> {
        match &self.node.value {
            Value::Text(text) => {
                go_bool(text).ok_or_else(|| self.must_be("true or false, or one of them as text"))
            }
            _ => self.bool(),
        }
    }

    pub(super) fn int(&self, range: &RangeInclusive<i64>) -> Result<i64, Trouble> {
        match self.node.value {
            Value::Int(value) if range.contains(&value) => Ok(value),
            _ => {
                let what = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.must_be(&what))
            }
        }
    }

    pub(super) fn text(&self) -> Result<String, Trouble> {
        match &self.node.value {
            Value::Text(text) => Ok(text.clone()),
            _ => Err(self.must_be("text")),
        }
    }

    pub(super) fn duration(&self) -> Result<SignedDuration, Trouble> {
        let text = self.text().ok();
        text.and_then(|text| duration::parse(&text))
            .filter(SignedDuration::is_positive)
            .ok_or_else(|| self.must_be("a positive duration such as `5m` or `1m30s`"))
    }

    /// A duration that may be 0.
    pub(super) fn duration_or_zero(&self) -> Result<SignedDuration, Trouble> {
        let duration = self.text().ok().and_then(|text| duration::parse(&text));
        duration
            .filter(|duration| !duration.is_negative())
            .ok_or_else(|| self.must_be("a duration such as `5m` or `0s`"))
    }

    /// The name of an extended resource: a domain and a name (kubernetes `pkg/apis/core/v1/helper/helpers.go` `IsExtendedResourceName`).
    /// `example` is one that the error names.
    pub(super) fn resource_name(&self, example: &str) -> Result<String, Trouble> {
        let text = self.text()?;
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let (domain, name) = text.split_once('/').unwrap_or(("", ""));
        let valid = |part: &str| !part.is_empty() && part.chars().all(fits);
        let foreign = domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io");
        if valid(domain) && valid(name) && foreign && name.len() <= 63 && !domain.starts_with("requests.") {
            return Ok(text);
        }
        Err(self.trouble(format!("`{text}` is not the name of an extended resource, such as `{example}`")))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.node.value, Value::List(_))
    }

    /// The elements, each under its position.
    pub(super) fn list(&self) -> Result<Vec<Self>, Trouble> {
        let Value::List(list) = &self.node.value else {
            return Err(self.must_be("a list"));
        };
        let element =
            |node: &TreeNode| Self { path: element(&self.path, node), line: node.line, node: node.clone() };
        Ok(list.iter().map(element).collect())
    }

    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Trouble> {
        let text = match &self.node.value {
            Value::Text(text) => text.as_str(),
            _ => "",
        };
        let known = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        known.ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.must_be(&words.join(" or "))
        })
    }

    /// This field or the first one below it whose value is this text.
    pub(super) fn saying(&self, text: &str) -> Option<Self> {
        let below = |entry: &KeyEntry| Self {
            path: below(&self.path, &entry.key),
            line: entry.line,
            node: entry.node.clone(),
        };
        let fields = match &self.node.value {
            Value::Text(own) => return (own == text).then(|| self.clone()),
            Value::Map(entries) => entries.iter().map(below).collect(),
            Value::List(_) => self.list().unwrap_or_default(),
            _ => Vec::new(),
        };
        fields.iter().find_map(|field| field.saying(text))
    }

    /// The value as it stands, for `berth config` to print.
    pub(super) fn json(&self) -> serde_json::Value {
        json(&self.node)
    }
}

/// The path of an element of a list; its position is the one that it has in the file.
fn element(path: &str, node: &TreeNode) -> String {
    format!("{path}[{}]", node.at)
}

/// Takes the value at this path out of a tree; `false`: there is none.
pub(super) fn leave_out(node: &mut TreeNode, at: &str, path: &str) -> bool {
    let leads = |to: &str| path.strip_prefix(to).is_some_and(|rest| rest.starts_with(['.', '[']));
    match &mut node.value {
        Value::Map(entries) => {
            let found = entries.iter().position(|entry| below(at, &entry.key) == path);
            found.map(|found| entries.remove(found)).is_some()
                || entries.iter_mut().any(|entry| {
                    let to = below(at, &entry.key);
                    leads(&to) && leave_out(&mut entry.node, &to, path)
                })
        }
        Value::List(elements) => {
            let found = elements.iter().position(|node| element(at, node) == path);
            found.map(|found| elements.remove(found)).is_some()
                || elements.iter_mut().any(|node| {
                    let to = element(at, node);
                    leads(&to) && leave_out(node, &to, path)
                })
        }
        _ => false,
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn json(node: &TreeNode) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(list) => list.iter().map(json).collect(),
        Value::Map(map) => map.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect(),
    }
}

/// A mapping, key by key.
#[derive(Debug)]
pub(super) struct Section {
    path: String,
    entries: Vec<KeyEntry>,
    known: Vec<String>,
}

impl Section {
    /// The keys of a mapping.
    pub(super) fn of(field: &Field) -> Result<Self, Trouble> {
        let entries = match &field.node.value {
            Value::Null => Vec::new(),
            Value::Map(entries) => entries.clone(),
            _ => return Err(field.must_be("a mapping of keys")),
        };
        Ok(Self { path: field.path.clone(), entries, known: Vec::new() })
    }

    fn below(&self, key: &str) -> String {
        below(&self.path, key)
    }

    /// The field of this key, if it is there; the key is known from now on.
    pub(super) fn take(&mut self, key: &str) -> Option<Field> {
        self.known.push(key.to_owned());
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        let KeyEntry { key, line, node } = self.entries.remove(at);
        Some(Field { path: self.below(&key), line, node })
    }

    /// The field of a key that is written in either of two ways, but not in both.
    pub(super) fn take_either(&mut self, key: &str, flag: &str) -> Result<Option<Field>, Trouble> {
        match (self.take(key), self.take(flag)) {
            (Some(_), Some(flag)) => {
                Err(flag.trouble(format!("has the same meaning as `{key}`; keep one of them")))
            }
            (field, flag) => Ok(field.or(flag)),
        }
    }

    /// Every field whose key begins so, with the rest of the key; `example` stands for them among the known keys.
    pub(super) fn take_prefixed(&mut self, prefix: &str, example: &str) -> Vec<(String, Field)> {
        self.known.push(format!("{prefix}{example}"));
        let (taken, kept) =
            self.entries.drain(..).partition::<Vec<_>, _>(|entry| entry.key.starts_with(prefix));
        self.entries = kept;
        let field = |KeyEntry { key, line, node }: KeyEntry| {
            let rest = key[prefix.len()..].to_owned();
            (rest, Field { path: self.below(&key), line, node })
        };
        taken.into_iter().map(field).collect()
    }

    /// The mapping of this key; empty where it is absent.
    pub(super) fn section(&mut self, key: &str) -> Result<Self, Trouble> {
        let path = self.below(key);
        match self.take(key) {
            Some(field) => Self::of(&field),
            None => Ok(Self { path, entries: Vec::new(), known: Vec::new() }),
        }
    }

    /// A switch that is on where the key is absent.
    pub(super) fn on_unless_off(&mut self, key: &str) -> Result<bool, Trouble> {
        self.take(key).map_or(Ok(true), |field| field.bool())
    }

    /// A switch that is off where the key is absent; also as text, as flags are written.
    pub(super) fn off_unless_on(&mut self, key: &str) -> Result<bool, Trouble> {
        self.take(key).map_or(Ok(false), |field| field.go_bool())
    }

    /// Takes keys that are another program's, of which nothing is to be said.
    pub(super) fn accept(&mut self, keys: &[&str]) {
        for key in keys {
            self.take(key);
        }
    }

    pub(super) fn int(
        &mut self,
        key: &str,
        default: u32,
        range: RangeInclusive<i64>,
    ) -> Result<u32, Trouble> {
        Ok(self.int_if_set(key, range)?.unwrap_or(default))
    }

    pub(super) fn int_if_set(
        &mut self,
        key: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<u32>, Trouble> {
        let Some(field) = self.take(key) else { return Ok(None) };
        let value = field.int(&range)?;
        let value = u32::try_from(value).map_err(|_| field.trouble(format!("`{value}` is out of range")))?;
        Ok(Some(value))
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &str,
        default: T,
        choices: &[(&str, T)],
    ) -> Result<T, Trouble> {
        self.take(key).map_or(Ok(default), |field| field.choice(choices))
    }

    /// Takes keys that are recognised and have no use, each for a notice.
    pub(super) fn unused(&mut self, keys: &[&str], why: &str, notices: &mut Vec<Notice>) {
        let fields: Vec<_> = keys.iter().filter_map(|key| self.take(key)).collect();
        notices.extend(fields.iter().map(|field| field.notice(why)));
    }

    /// None of these keys may be left, which belong elsewhere.
    pub(super) fn none_of(&self, keys: &[&str], where_they_belong: &str) -> Result<(), Trouble> {
        match self.entries.iter().find(|entry| keys.contains(&entry.key.as_str())) {
            Some(KeyEntry { key, line, .. }) => {
                let message = where_they_belong.to_owned();
                Err(Trouble { line: *line, key: self.below(key), message })
            }
            None => Ok(()),
        }
    }

    /// Nothing may be left.
    pub(super) fn finish(self) -> Result<(), Trouble> {
        let Some(entry) = self.entries.first() else { return Ok(()) };
        let distance = |known: &&String| strsim::damerau_levenshtein(known, &entry.key);
        let nearest = self.known.iter().min_by_key(distance);
        let nearest =
            nearest.map_or_else(String::new, |known| format!("; the nearest known one is `{known}`"));
        Err(Trouble {
            line: entry.line,
            key: self.below(&entry.key),
            message: format!("unknown key{nearest}"),
        })
    }
}
