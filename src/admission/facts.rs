//! The facts that the rules read beside the request: the settings, and the state of the cluster.
//!
//! Read-only: other modules collect them. A fact that is not known yet denies nothing.

use std::{collections::BTreeMap, sync::Arc};

use super::{inventory::InventorySummary, namespace_quota::NamespaceQuota, settings::AdmissionSettings};
use crate::{
    dialect::Dialects,
    object::{Metadata, Namespace},
};

/// Everything beside the request that an answer depends on.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Settings.
    pub settings: AdmissionSettings,
    /// The dialects that are spoken.
    pub dialects: Dialects,
    /// Namespaces, by name; one that is not known has no hints.
    pub namespaces: Arc<BTreeMap<String, Namespace>>,
    /// Nodes and cards; `None`: not known yet.
    pub inventory: Option<Arc<InventorySummary>>,
    /// Quotas of shares, by namespace.
    pub quotas: Arc<BTreeMap<String, NamespaceQuota>>,
    /// Groups of pods, by namespace and name, with their mark `volcano.sh/preemptable` as it stands.
    pub pod_groups: Arc<BTreeMap<(String, String), Option<String>>>,
}

impl Facts {
    /// Facts with the settings, and without anything of the cluster yet.
    pub fn new(settings: AdmissionSettings, dialects: Dialects) -> Self {
        Self {
            settings,
            dialects,
            namespaces: Arc::default(),
            inventory: None,
            quotas: Arc::default(),
            pod_groups: Arc::default(),
        }
    }

    /// The namespace of that name, if it is known.
    pub fn namespace(&self, name: &str) -> Option<&Metadata> {
        self.namespaces.get(name).map(|namespace| &namespace.metadata)
    }
}
