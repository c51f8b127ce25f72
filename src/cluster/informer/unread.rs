//! What is left of an object of which not all can be read: each field that can be read, and for the others the reason.
//!
//! A kind that is served without a schema may hold anything, and whoever may write one object of it must not end the list and the watch
//! for all others. It does not decide what such an object counts as.

use std::{collections::BTreeMap, fmt};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::wire::Wire;
use crate::{
    excerpt::{FIELD, MESSAGE, shortened},
    object::{self, UnreadableField},
};

/// The most fields that are named for one object, since a user may write thousands that can't be read.
const MOST: usize = 16;

/// A field that can't be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unread {
    /// The field, as a path from the object's root, shortened.
    pub field: String,
    /// Why, shortened.
    pub reason: String,
}

impl fmt::Display for Unread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} can't be read: {}", self.field, self.reason)
    }
}

/// An object, and what of it can't be read; its other fields are those that can be.
#[derive(Clone, Debug)]
pub struct Partly<T> {
    /// The object.
    pub object: T,
    /// What can't be read of it.
    pub unread: Vec<Unread>,
}

/// Not even the object's name can be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("an object without a name that can be read: {0}")]
pub struct Nameless(String);

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Reads an object of which not all can be read, field by field on its two upper levels. It costs a multiple of one reading.
pub fn partly<T: Wire + DeserializeOwned>(json: &str) -> Result<Partly<T>, Nameless> {
    let fault = |json: &str| object::parse::<T>(json).err();
    let (kept, dropped) = kept_fields(json, &fault)?;
    let object: T = serde_json::from_str(&kept).map_err(|error| nameless(&error))?;
    if object.metadata().name.is_empty() {
        return Err(nameless(
            &dropped.all.first().map_or_else(|| "it has none".to_owned(), Unread::to_string),
        ));
    }
    Ok(Partly { object, unread: dropped.listed() })
}

fn nameless(error: &dyn fmt::Display) -> Nameless {
    Nameless(shortened(error.to_string(), MESSAGE))
}

/// What prevents an object of the kind from being read.
type Fault<'a> = dyn Fn(&str) -> Option<UnreadableField> + 'a;

/// The object without the fields that can't be read, in the form of JSON, and those fields. What reads the kind is a parameter, so that
/// this is in the program once.
fn kept_fields(json: &str, fault: &Fault<'_>) -> Result<(String, Dropped), Nameless> {
    let fields: Fields<'_> = serde_json::from_str(json).map_err(|error| nameless(&error))?;
    let (mut kept, mut dropped) = (Vec::new(), Dropped::default());
    for (name, value) in fields {
        let Some(found) = fault(&format!("{{{}:{value}}}", quoted(&name))) else {
            kept.push(format!("{}:{value}", quoted(&name)));
            continue;
        };
        match serde_json::from_str::<Fields<'_>>(value.get()) {
            Ok(inner) => {
                let inner = inner_fields(&name, &inner, &mut dropped, fault);
                kept.push(format!("{}:{{{inner}}}", quoted(&name)));
            }
            Err(_) => dropped.take_in(found),
        }
    }
    Ok((format!("{{{}}}", kept.join(",")), dropped))
}

/// Those fields of one field of the object that can be read, in the form of JSON.
fn inner_fields(outer: &str, fields: &Fields<'_>, dropped: &mut Dropped, fault: &Fault<'_>) -> String {
    let mut kept = Vec::new();
    for (name, value) in fields {
        match fault(&format!("{{{}:{{{}:{value}}}}}", quoted(outer), quoted(name))) {
            None => kept.push(format!("{}:{value}", quoted(name))),
            Some(found) => dropped.take_in(found),
        }
    }
    kept.join(",")
}

fn quoted(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

/// The fields that are left out.
#[derive(Default)]
struct Dropped {
    all: Vec<Unread>,
    more: usize,
}

impl Dropped {
    /// Takes in a field that can't be read.
    fn take_in(&mut self, UnreadableField { field, reason }: UnreadableField) {
        if self.all.len() == MOST {
            self.more += 1;
        } else {
            self.all.push(Unread { field: shortened(field, FIELD), reason: shortened(reason, MESSAGE) });
        }
    }

    fn listed(mut self) -> Vec<Unread> {
        if self.more > 0 {
            let reason = "more fields can't be read".to_owned();
            self.all.push(Unread { field: format!("and {}", self.more), reason });
        }
        self.all
    }
}

/// How many objects of each kind can't be read completely; clones share it.
#[derive(Clone, Debug, Default)]
pub struct UnreadObjects(Family<KindLabels, Gauge>);

/// The label of a kind.
#[derive(Clone, Debug, EncodeLabelSet, Eq, Hash, PartialEq)]
pub struct KindLabels {
    /// Such as `PodGroup`.
    kind: String,
}

impl UnreadObjects {
    /// The metric, to be registered.
    pub(in crate::cluster) fn family(&self) -> Family<KindLabels, Gauge> {
        self.0.clone()
    }

    /// So many more, or fewer, of the kind in this group. A kind without any is not listed.
    pub fn add(&self, kind: &str, number: i64) {
        if number == 0 {
            return;
        }
        let labels = KindLabels { kind: kind.to_owned() };
        let gauge = self.0.get_or_create(&labels);
        let left = gauge.inc_by(number) + number;
        drop(gauge);
        if left <= 0 {
            self.0.remove(&labels);
        }
    }

    /// How many of the kind there are.
    pub fn count(&self, kind: &str) -> i64 {
        self.0.get(&KindLabels { kind: kind.to_owned() }).map_or(0, |gauge| gauge.get())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::{Pod, PodGroup};

    #[test]
    fn what_can_be_read_of_an_object_is_kept_and_the_rest_is_named() {
        let group = json!({
            "metadata": {"name": "train", "namespace": "a", "annotations": {"x": "y"}, "labels": 7},
            "spec": {"minMember": "three", "scheduleTimeoutSeconds": 60, "minTaskMember": {"worker": []}},
            "status": "well",
        });
        let Partly { object, unread } = partly::<PodGroup>(&group.to_string()).unwrap();
        assert_eq!((object.metadata.name.as_str(), object.metadata.namespace.as_str()), ("train", "a"));
        assert_eq!(object.metadata.annotation("x"), Some("y"));
        assert_eq!((object.spec.min_member, object.spec.schedule_timeout_seconds), (None, Some(60)));
        let fields: Vec<_> = unread.iter().map(|unread| unread.field.as_str()).collect();
        assert_eq!(fields, ["metadata.labels", "spec.minMember", "spec.minTaskMember.worker", "status"]);
        let text = unread[1].to_string();
        assert_eq!(text, r#"spec.minMember can't be read: invalid type: string "three", expected i32"#);
    }

    #[test]
    fn depth_and_length_do_not_matter() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let json = format!(
            r#"{{"metadata":{{"name":"p"}},"spec":{{"nodeName":"n","containers":{deep}}},"x":{deep}}}"#
        );
        let Partly { object, unread } = partly::<Pod>(&json).unwrap();
        assert_eq!(object.spec.node_name.as_deref(), Some("n"));
        assert_eq!(unread.len(), 1);
        assert!(unread[0].field.starts_with("spec.containers"), "{unread:?}");
        let tasks: BTreeMap<_, _> = (0..10_000).map(|at| (format!("k{at}\u{1b}[2J"), json!("x"))).collect();
        let group = json!({"metadata": {"name": "g", "labels": {"a": 1}, "annotations": tasks}});
        assert_eq!(partly::<PodGroup>(&group.to_string()).unwrap().unread.len(), 1);
    }

    #[test]
    fn an_object_without_a_name_is_none() {
        for object in [json!({}), json!([]), json!({"metadata": {"name": 7}}), json!({"metadata": "m"})] {
            assert!(partly::<PodGroup>(&object.to_string()).is_err(), "{object}");
        }
        assert!(partly::<PodGroup>(r#"{"metadata":{"name":"#).is_err());
    }

    #[test]
    fn a_kind_without_unreadable_objects_is_not_listed() {
        let unread = UnreadObjects::default();
        unread.add("PodGroup", 2);
        unread.add("PodGroup", -1);
        assert_eq!(unread.count("PodGroup"), 1);
        unread.add("PodGroup", -1);
        assert!(unread.0.get(&KindLabels { kind: "PodGroup".to_owned() }).is_none());
    }
}
