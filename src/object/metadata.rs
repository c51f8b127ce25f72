//! The part of `metadata` that rules and the ledger read.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor},
};

use super::{nullable, selector::LabelValues};

/// `metadata` of any object. Absent strings are empty; absent maps are `None` where a patch must know the difference.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// The object's name; empty in a review of a pod that a controller makes.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The prefix of a name that the API server completes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate_name: Option<String>,
    /// The namespace; empty for cluster-wide objects and often in reviews.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The object's identity over time; a recreated object of the same name has another.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The version that optimistic concurrency compares.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// When the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// Set once deletion was asked for; the object still exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels; `None` where the object has no such key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations; `None` where the object has no such key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
    /// What must be done before the object, once deleted, is gone.
    #[serde(deserialize_with = "nullable", skip_serializing)]
    pub finalizers: Vec<String>,
    /// The object that controls this one.
    #[serde(rename = "ownerReferences", deserialize_with = "controller", skip_serializing)]
    pub controller: Option<Controller>,
}

/// The owner of an object that controls it. It is one text, since a review reads the owner of every pod.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Controller {
    text: Box<str>,
    /// Where version, kind and name end in the text; the rest is the uid.
    ends: [usize; 3],
}

impl Controller {
    /// An owner by these names.
    pub fn new(api_version: &str, kind: &str, name: &str, uid: &str) -> Self {
        let (version, kind_end) = (api_version.len(), api_version.len() + kind.len());
        let text = [api_version, kind, name, uid].concat().into();
        Self { text, ends: [version, kind_end, kind_end + name.len()] }
    }

    /// Group and version, such as `apps/v1`.
    pub fn api_version(&self) -> &str {
        &self.text[..self.ends[0]]
    }

    /// The kind.
    pub fn kind(&self) -> &str {
        &self.text[self.ends[0]..self.ends[1]]
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.text[self.ends[1]..self.ends[2]]
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        &self.text[self.ends[2]..]
    }
}

/// One of an object's owners.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Owner<'a> {
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    uid: Cow<'a, str>,
    controller: Option<bool>,
}

/// The owner that is the controller: at most one is.
fn controller<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Controller>, D::Error> {
    deserializer.deserialize_option(Owners)
}

/// Reads a list of owners for the one that is the controller.
struct Owners;

impl<'de> Visitor<'de> for Owners {
    type Value = Option<Controller>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of owners")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut owners: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(Owner { api_version, kind, name, uid, controller }) = owners.next_element()? {
            if controller == Some(true) && found.is_none() {
                found = Some(Controller::new(&api_version, &kind, &name, &uid));
            }
        }
        Ok(found)
    }
}

impl Metadata {
    /// Whether the object with this uid controls this one.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller.as_ref().is_some_and(|controller| controller.uid() == uid)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.as_ref()?.get(key).map(String::as_str)
    }
}

impl LabelValues for Metadata {
    fn value(&self, key: &str) -> Option<&str> {
        self.label(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_that_controls_an_object_is_found_among_its_owners() {
        let read = |owners: &str| {
            let text = format!(r#"{{"ownerReferences":{owners}}}"#);
            serde_json::from_str::<Metadata>(&text).unwrap().controller
        };
        let owner = r#"{"apiVersion":"v1","kind":"Node","name":"n","uid":"1"}"#;
        let controller =
            r#"{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"2","controller":true}"#;
        let found = read(&format!("[{owner},{controller}]")).unwrap();
        let parts = [found.api_version(), found.kind(), found.name(), found.uid()];
        assert_eq!(parts, ["apps/v1", "ReplicaSet", "web", "2"]);
        for none in ["null", "[]", &format!("[{owner}]")] {
            assert_eq!(read(none), None);
        }
    }
}
