//! Paths into objects of any kind, such as `spec.tasks[*].template`.
//!
//! `[*]` stands for each element of a list and `.*` for each value of a mapping. No kind is known here.

use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// A path from the root of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Path {
    steps: Vec<PathStep>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum PathStep {
    Key(String),
    EachElement,
    EachValue,
}

/// What a wildcard stands for in one place: the position in a list, or the key in a mapping.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WildcardStep {
    /// The position in a list, from 0.
    Element(usize),
    /// The key in a mapping.
    Key(String),
}

/// A place that a path leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundPlace<'a> {
    /// The place, such as `spec.tasks[0].template`.
    pub at: String,
    /// What each wildcard of the path stands for here.
    pub turns: Vec<WildcardStep>,
    /// What is there; `None`: nothing, or `null`.
    pub value: Option<&'a Value>,
}

impl Path {
    /// Reads `spec.tasks[*].template`. The error is a sentence that says what a path looks like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a path, such as `spec.template`, `spec.tasks[*].template` or `spec.specs.*.template`"
            )
        };
        let mut steps = Vec::new();
        for part in text.split('.') {
            let key = part.trim_end_matches("[*]");
            let lists = (part.len() - key.len()) / "[*]".len();
            let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            match key {
                "*" => steps.push(PathStep::EachValue),
                key if !key.is_empty() && key.chars().all(named) => steps.push(PathStep::Key(key.to_owned())),
                _ => return Err(wrong()),
            }
            steps.extend(std::iter::repeat_n(PathStep::EachElement, lists));
        }
        Ok(Self { steps })
    }

    /// Every place that the path leads to in this object. A list or mapping that is not there has no places; behind the last
    /// wildcard, a place may hold nothing.
    pub fn find<'a>(&self, object: &'a Value) -> Vec<FoundPlace<'a>> {
        let root = FoundPlace { at: String::new(), turns: Vec::new(), value: Some(object) };
        self.steps
            .iter()
            .fold(vec![root], |found, step| found.into_iter().flat_map(|place| next(place, step)).collect())
    }

    /// What the path leads to where its wildcards stand for these, in order.
    pub fn follow<'a>(&self, object: &'a Value, turns: &[WildcardStep]) -> Option<&'a Value> {
        let mut turns = turns.iter();
        let found = self.steps.iter().try_fold(object, |value, step| match step {
            PathStep::Key(key) => value.get(key),
            PathStep::EachElement | PathStep::EachValue => match turns.next()? {
                WildcardStep::Element(at) => value.get(at),
                WildcardStep::Key(key) => value.get(key),
            },
        });
        found.filter(|value| !value.is_null())
    }

    /// Whether each wildcard of this path is one of the other's: the paths are equal up to this one's last wildcard.
    pub fn is_within(&self, other: &Self) -> bool {
        let wild = |step: &PathStep| !matches!(step, PathStep::Key(_));
        let fixed = self.steps.iter().rposition(wild).map_or(0, |last| last + 1);
        other.steps.get(..fixed) == Some(&self.steps[..fixed])
    }

    /// Whether the path may lead to several places.
    pub fn has_wildcards(&self) -> bool {
        self.steps.iter().any(|step| !matches!(step, PathStep::Key(_)))
    }

    /// The last name that says more than that a template is there.
    pub fn telling_name(&self) -> Option<&str> {
        let names = self.steps.iter().rev().filter_map(|step| match step {
            PathStep::Key(key) => Some(key.as_str()),
            PathStep::EachElement | PathStep::EachValue => None,
        });
        names.into_iter().find(|name| !matches!(*name, "spec" | "template"))
    }
}

fn next<'a>(place: FoundPlace<'a>, step: &PathStep) -> Vec<FoundPlace<'a>> {
    let FoundPlace { at, turns, value } = place;
    let below = |at: String, turn: Option<WildcardStep>, value: Option<&'a Value>| FoundPlace {
        at,
        turns: turns.iter().cloned().chain(turn).collect(),
        value: value.filter(|value| !value.is_null()),
    };
    match (step, value) {
        (PathStep::Key(key), value) => {
            vec![below(join(&at, key), None, value.and_then(|value| value.get(key)))]
        }
        (PathStep::EachElement, Some(Value::Array(elements))) => {
            let element = |(index, value)| {
                below(format!("{at}[{index}]"), Some(WildcardStep::Element(index)), Some(value))
            };
            elements.iter().enumerate().map(element).collect()
        }
        (PathStep::EachValue, Some(Value::Object(fields))) => {
            let field = |(key, value): (&String, _)| {
                below(join(&at, key), Some(WildcardStep::Key(key.clone())), Some(value))
            };
            fields.iter().map(field).collect()
        }
        (PathStep::EachElement | PathStep::EachValue, _) => Vec::new(),
    }
}

/// The path of a field below another; a key that has a point in it stands in brackets.
pub(super) fn join(at: &str, key: &str) -> String {
    match (at.is_empty(), key.contains('.')) {
        (true, _) => key.to_owned(),
        (false, true) => format!("{at}[{key}]"),
        (false, false) => format!("{at}.{key}"),
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            let point = if at == 0 { "" } else { "." };
            match step {
                PathStep::Key(key) => write!(formatter, "{point}{key}")?,
                PathStep::EachElement => formatter.write_str("[*]")?,
                PathStep::EachValue => write!(formatter, "{point}*")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn path(text: &str) -> Path {
        Path::parse(text).unwrap()
    }

    #[test]
    fn wildcards_lead_to_each_element_and_each_value() {
        let object = json!({"spec": {"tasks": [{"template": 1}, {}], "specs": {"Worker": {"template": null}, "a.b": 2}}});
        let places = |text: &str| -> Vec<(String, Option<Value>)> {
            path(text).find(&object).into_iter().map(|found| (found.at, found.value.cloned())).collect()
        };
        assert_eq!(
            places("spec.tasks[*].template"),
            [
                ("spec.tasks[0].template".to_owned(), Some(json!(1))),
                ("spec.tasks[1].template".to_owned(), None)
            ]
        );
        assert_eq!(
            places("spec.specs.*.template"),
            [("spec.specs.Worker.template".to_owned(), None), ("spec.specs[a.b].template".to_owned(), None)]
        );
        assert_eq!(places("spec.none[*].template"), []);
        assert_eq!(places("spec.none.template"), [("spec.none.template".to_owned(), None)]);
    }

    #[test]
    fn another_path_follows_the_same_turns() {
        let object = json!({"spec": {"groups": [{"n": 3}, {"n": 5}]}});
        let found = path("spec.groups[*].template").find(&object);
        let counts: Vec<_> =
            found.iter().map(|found| path("spec.groups[*].n").follow(&object, &found.turns)).collect();
        assert_eq!(counts, [Some(&json!(3)), Some(&json!(5))]);
        assert!(path("spec.groups[*].n").is_within(&path("spec.groups[*].template")));
        assert!(path("spec.replicas").is_within(&path("spec.groups[*].template")));
        assert!(!path("spec.others[*].n").is_within(&path("spec.groups[*].template")));
        assert!(!path("spec.groups[*].n").is_within(&path("spec.groups")));
    }

    #[test]
    fn what_is_no_path_is_refused_and_a_path_is_written_as_it_was_read() {
        for text in ["", ".spec", "spec..template", "spec[0].x", "spec.tasks[*", "{.spec}", "spec.a b"] {
            assert!(Path::parse(text).unwrap_err().contains("is not a path"), "{text}");
        }
        for text in ["spec.template", "spec.tasks[*].template", "spec.specs.*.template", "a[*][*].b"] {
            assert_eq!(path(text).to_string(), text);
        }
    }
}
