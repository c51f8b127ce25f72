//! A ResourceQuota: what the pods of a namespace may ask for together.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Present, Quantity, metadata::Metadata, nullable};

/// What stands before the name of a resource whose limits are bounded.
///
/// For extended resources the API server takes such keys and counts nothing (`pkg/quota/v1/evaluator/core/pods.go` counts `requests.`
/// alone), so that they are free to mean shares of cards, as HAMi has it (v2.10 `pkg/device/quota.go`).
const LIMITS: &str = "limits.";

/// A ResourceQuota.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ResourceQuota {
    /// Name and namespace.
    pub metadata: Metadata,
    /// What is wanted.
    pub spec: ResourceQuotaSpec,
}

/// `spec` of a ResourceQuota.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceQuotaSpec {
    /// Bounds by key, such as `limits.nvidia.com/gpumem`.
    #[serde(deserialize_with = "nullable")]
    pub hard: BTreeMap<String, Quantity>,
    /// Which pods it is about; none: all.
    #[serde(deserialize_with = "nullable")]
    pub scopes: Vec<String>,
    /// Which pods it is about, in more words.
    pub scope_selector: Option<Present>,
}

impl ResourceQuota {
    /// The bounds on limits of resources, by the resource's name.
    pub fn limits(&self) -> impl Iterator<Item = (&str, &Quantity)> {
        self.spec.hard.iter().filter_map(|(key, hard)| Some((key.strip_prefix(LIMITS)?, hard)))
    }

    /// Whether it is about some of the namespace's pods only.
    pub fn is_scoped(&self) -> bool {
        !self.spec.scopes.is_empty() || self.spec.scope_selector.is_some()
    }
}

/// The key under which a ResourceQuota bounds a resource.
pub fn key_of(resource: &str) -> String {
    format!("{LIMITS}{resource}")
}

/// The bound in whole units; the error says why it is none.
pub fn units(hard: &Quantity) -> Result<u64, String> {
    let amount = hard.amount().map_err(|error| error.to_string())?;
    let units = amount.whole().and_then(|units| u64::try_from(units).ok());
    units.ok_or_else(|| format!("`{hard}` is no whole number of 0 or more"))
}
