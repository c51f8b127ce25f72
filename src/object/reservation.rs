//! Capacity of a node that is kept for pods to come, as Koordinator's `Reservation` states it.
//!
//! Source: koordinator a7a1b76 `apis/scheduling/v1alpha1/reservation_types.go`. The object is cluster-scoped.

use serde::Deserialize;

use super::{
    Labels, NodeSelectorTerm, Taint,
    container::ResourceMap,
    metadata::{Controller, Metadata},
    nullable,
    selector::LabelSelector,
};

/// Capacity of a node that is kept for some pods.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Reservation {
    /// Its name, its labels, and in an annotation the devices that it holds.
    pub metadata: Metadata,
    /// Which pods may use it, and how.
    #[serde(deserialize_with = "nullable")]
    pub spec: ReservationSpec,
    /// Where it is, and what it holds.
    #[serde(deserialize_with = "nullable")]
    pub status: ReservationStatus,
}

/// `spec` of a `Reservation`, as far as it decides which pods may use it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ReservationSpec {
    /// The pods that may use it: those that one of these is about.
    #[serde(deserialize_with = "nullable")]
    pub owners: Vec<ReservationOwner>,
    /// Whether it ends with the first pod that uses it; absent: it does.
    pub allocate_once: Option<bool>,
    /// `Aligned` or `Restricted`; empty: as `Aligned`.
    #[serde(deserialize_with = "nullable")]
    pub allocate_policy: String,
    /// Whether no further pod may use it.
    #[serde(deserialize_with = "nullable")]
    pub unschedulable: bool,
    /// Taints that a pod must tolerate to use it.
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
}

/// `status` of a `Reservation`.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ReservationStatus {
    /// `Pending`, `Available`, `Waiting`, `Succeeded` or `Failed`.
    #[serde(deserialize_with = "nullable")]
    pub phase: String,
    /// The node that it is on.
    #[serde(deserialize_with = "nullable")]
    pub node_name: String,
    /// What it holds for its owners together.
    #[serde(deserialize_with = "nullable")]
    pub allocatable: ResourceMap,
}

/// Pods: those for which all that is stated holds; without any statement every pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ReservationOwner {
    /// One pod.
    pub object: Option<OwnerObject>,
    /// The pods of a controller.
    pub controller: Option<OwnerController>,
    /// Pods by their labels.
    pub label_selector: Option<LabelSelector>,
}

/// A pod; what is empty is not compared.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct OwnerObject {
    /// Its uid.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its namespace.
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
}

/// The controller of a pod; what is empty is not compared.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerController {
    /// Its group and version.
    #[serde(deserialize_with = "nullable")]
    pub api_version: String,
    /// Its kind.
    #[serde(deserialize_with = "nullable")]
    pub kind: String,
    /// Its name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Its uid.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
    /// The namespace of its pods.
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
}

/// Which Reservations a pod wants, as an annotation of the pod states it: the pod is placed in one of these or nowhere.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ReservationAffinity {
    /// The one of this name; all else is not compared then.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// Those with these labels.
    #[serde(deserialize_with = "nullable")]
    pub reservation_selector: Labels,
    /// Those whose labels meet one of these terms.
    pub required_during_scheduling_ignored_during_execution: Option<ReservationTerms>,
}

/// Terms of which one must be met.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ReservationTerms {
    /// Each term.
    #[serde(deserialize_with = "nullable")]
    pub reservation_selector_terms: Vec<NodeSelectorTerm>,
}

impl ReservationAffinity {
    /// Whether the Reservation of this name with these labels is one of those.
    pub fn admits(&self, name: &str, labels: &Labels) -> bool {
        if !self.name.is_empty() {
            return self.name == name;
        }
        let selected = self.reservation_selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        let meets = |term: &NodeSelectorTerm| term.match_fields.is_empty() && term.matches(name, labels);
        let terms = self.required_during_scheduling_ignored_during_execution.as_ref();
        selected && terms.is_none_or(|terms| terms.reservation_selector_terms.iter().any(meets))
    }
}

/// Whether the text is what is stated, or nothing is.
fn is(stated: &str, text: &str) -> bool {
    stated.is_empty() || stated == text
}

impl OwnerObject {
    /// Whether it is the pod with this uid, namespace and name.
    pub fn is_of(&self, uid: &str, namespace: &str, name: &str) -> bool {
        is(&self.uid, uid) && is(&self.namespace, namespace) && is(&self.name, name)
    }
}

impl OwnerController {
    /// Whether it is the controller of a pod of this namespace. Upstream compares each owner of the pod, and not the controller alone.
    pub fn is_of(&self, namespace: &str, controller: &Controller) -> bool {
        is(&self.namespace, namespace)
            && is(&self.api_version, controller.api_version())
            && is(&self.kind, controller.kind())
            && is(&self.name, controller.name())
            && is(&self.uid, controller.uid())
    }
}
