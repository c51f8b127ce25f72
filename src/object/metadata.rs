//! The part of `metadata` that rules and the ledger read.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::nullable;

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
    /// The uid of the object that controls this one.
    #[serde(rename = "ownerReferences", deserialize_with = "controller", skip_serializing)]
    pub controller: Option<Arc<str>>,
}

/// The uid of the owner that is the controller: at most one is.
fn controller<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<str>>, D::Error> {
    #[derive(Deserialize)]
    struct Owner<'a> {
        #[serde(borrow, default)]
        uid: Cow<'a, str>,
        #[serde(default)]
        controller: Option<bool>,
    }
    let owners = Option::<Vec<Owner<'de>>>::deserialize(deserializer)?.unwrap_or_default();
    let controller = owners.into_iter().find(|owner| owner.controller == Some(true));
    Ok(controller.map(|owner| owner.uid.as_ref().into()))
}

impl Metadata {
    /// Whether the object with this uid controls this one.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.controller.as_deref() == Some(uid)
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
