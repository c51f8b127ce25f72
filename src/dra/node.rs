//! Nodes, and which of them can reach a device.

use std::collections::BTreeSet;

use crate::object::{NodeSelector, resource_claim::AllocationResult, selector::LabelValues};

/// The feature that a kubelet declares which leaves out what a slice says that its driver need not do (KEP-5945; k8s.io/component-helpers v0.37
/// `nodedeclaredfeatures/features/draoptionalnodeoperations`).
const OPTIONAL_OPERATIONS: &str = "DRAOptionalNodeOperations";

/// The node for which devices are chosen.
#[derive(Clone, Copy, Debug)]
pub struct TargetNode<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a dyn LabelValues,
    /// The features that its kubelet declares; `None`: none.
    pub features: Option<&'a BTreeSet<String>>,
}

/// The nodes that can reach a device.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum NodeSelection {
    /// One node.
    Name(String),
    /// Every node.
    All,
    /// The nodes that match.
    Selector(NodeSelector),
    /// What selects them is not known to this version: none.
    Unknown,
}

impl NodeSelection {
    /// The first that is set counts, in this order.
    pub(super) fn read(name: Option<&str>, all: bool, selector: Option<&NodeSelector>) -> Self {
        match (name.filter(|name| !name.is_empty()), all, selector) {
            (Some(name), _, _) => Self::Name(name.to_owned()),
            (None, true, _) => Self::All,
            (None, false, Some(selector)) => Self::Selector(selector.clone()),
            (None, false, None) => Self::Unknown,
        }
    }

    /// Whether the node can reach the device.
    pub fn admits(&self, node: TargetNode<'_>) -> bool {
        match self {
            Self::Name(name) => name == node.name,
            Self::All => true,
            Self::Selector(selector) => node.matches(selector),
            Self::Unknown => false,
        }
    }
}

impl<'a> TargetNode<'a> {
    /// A node whose kubelet declares no features.
    pub fn plain(name: &'a str, labels: &'a dyn LabelValues) -> Self {
        Self { name, labels, features: None }
    }
}

impl TargetNode<'_> {
    /// Whether its kubelet leaves out what a driver need not do.
    pub(super) fn skips_operations(&self) -> bool {
        self.features.is_some_and(|features| features.contains(OPTIONAL_OPERATIONS))
    }

    /// Whether a claim that holds these devices can be used from the node.
    pub fn can_use(&self, allocation: &AllocationResult) -> bool {
        let reaches = allocation.node_selector.as_ref().is_none_or(|selector| self.matches(selector));
        let mut devices = allocation.devices.results.iter();
        reaches && (self.skips_operations() || devices.all(|device| device.skip_node_operations.is_empty()))
    }

    /// Whether the node matches one of the terms.
    pub fn matches(&self, selector: &NodeSelector) -> bool {
        selector.matches(self.name, self.labels)
    }
}
