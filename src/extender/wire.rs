//! The protocol's objects (`k8s.io/kube-scheduler/extender/v1/types.go`): keys are the names of Go's fields, and what is not there is
//! `null`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    object::Pod,
    scheduling::{NodeName, PodKey},
};

/// `ExtenderArgs`.
#[derive(Clone, Debug, Deserialize)]
pub struct ExtenderArgs {
    /// The pod.
    #[serde(rename = "Pod")]
    pub pod: Pod,
    /// The nodes in full, where the extender keeps no cache of its own.
    #[serde(rename = "Nodes", default)]
    pub nodes: Option<NodeList>,
    /// The nodes' names, where it does.
    #[serde(rename = "NodeNames", default)]
    pub node_names: Option<Vec<String>>,
}

/// A `v1` `NodeList`, of which only names are read.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NodeList {
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    items: Vec<Value>,
}

impl ExtenderArgs {
    /// The names of the nodes that are asked about.
    pub fn names(&self) -> Vec<String> {
        let full = || self.nodes.iter().flat_map(|nodes| &nodes.items).map(|node| name(node).to_owned());
        self.node_names.clone().unwrap_or_else(|| full().collect())
    }
}

impl NodeList {
    /// The list with these nodes alone.
    #[must_use]
    pub fn only(mut self, names: &[String]) -> Self {
        self.items.retain(|node| names.iter().any(|wanted| wanted == name(node)));
        self
    }
}

fn name(node: &Value) -> &str {
    node["metadata"]["name"].as_str().unwrap_or_default()
}

/// `ExtenderFilterResult`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FilterResult {
    /// The nodes that fit, where they were sent in full.
    #[serde(rename = "Nodes")]
    pub nodes: Option<NodeList>,
    /// The names of the nodes that fit, where names were sent.
    #[serde(rename = "NodeNames")]
    pub node_names: Option<Vec<String>>,
    /// Nodes that do not fit, and why.
    #[serde(rename = "FailedNodes")]
    pub failed: BTreeMap<String, String>,
    /// Nodes on which preemption would not help, and why.
    #[serde(rename = "FailedAndUnresolvableNodes")]
    pub unresolvable: BTreeMap<String, String>,
    /// Why nothing can be said; empty: it can.
    #[serde(rename = "Error")]
    pub error: String,
}

/// `HostPriority`.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct HostPriority {
    /// The node.
    #[serde(rename = "Host")]
    pub host: String,
    /// Its score, 0 to 10.
    #[serde(rename = "Score")]
    pub score: i64,
}

/// `ExtenderBindingArgs`.
#[derive(Clone, Debug, Deserialize)]
pub struct BindingArgs {
    #[serde(rename = "PodName")]
    name: String,
    #[serde(rename = "PodNamespace")]
    namespace: String,
    #[serde(rename = "PodUID")]
    uid: String,
    #[serde(rename = "Node")]
    node: String,
}

impl BindingArgs {
    /// The pod and its node.
    pub fn read(self) -> (PodKey, NodeName) {
        let Self { name, namespace, uid, node } = self;
        let pod = PodKey { uid: uid.into(), namespace: namespace.into(), name: name.into() };
        (pod, node.as_str().into())
    }
}

/// `ExtenderBindingResult`.
#[derive(Clone, Debug, Serialize)]
pub struct BindingResult {
    /// Why the pod is not bound; empty: it is.
    #[serde(rename = "Error")]
    pub error: String,
}

/// `ExtenderPreemptionArgs`.
#[derive(Clone, Debug, Deserialize)]
pub struct PreemptionArgs {
    /// The pod.
    #[serde(rename = "Pod")]
    pub pod: Pod,
    #[serde(rename = "NodeNameToVictims", default)]
    full: Option<BTreeMap<String, NodeVictims>>,
    #[serde(rename = "NodeNameToMetaVictims", default)]
    meta: Option<BTreeMap<String, MetaVictims>>,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeVictims {
    #[serde(rename = "Pods", default)]
    pods: Option<Vec<Pod>>,
    #[serde(rename = "NumPDBViolations", default)]
    violations: i64,
}

/// `MetaVictims`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MetaVictims {
    /// The pods.
    #[serde(rename = "Pods", default, deserialize_with = "null_is_none")]
    pub pods: Vec<MetaPod>,
    #[serde(rename = "NumPDBViolations", default)]
    violations: i64,
}

/// `MetaPod`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct MetaPod {
    #[serde(rename = "UID")]
    uid: String,
}

impl PreemptionArgs {
    /// The victims on each node, by uid alone.
    pub fn victims(self) -> BTreeMap<String, MetaVictims> {
        let meta = |victims: NodeVictims| MetaVictims {
            pods: victims
                .pods
                .unwrap_or_default()
                .into_iter()
                .map(|pod| MetaPod { uid: pod.metadata.uid })
                .collect(),
            violations: victims.violations,
        };
        let full = self.full.unwrap_or_default().into_iter().map(|(node, victims)| (node, meta(victims)));
        self.meta.unwrap_or_else(|| full.collect())
    }
}

impl MetaVictims {
    /// The uids of the victims.
    pub fn uids(&self) -> Vec<String> {
        self.pods.iter().map(|pod| pod.uid.clone()).collect()
    }
}

/// `ExtenderPreemptionResult`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PreemptionResult {
    /// The nodes that are kept, each with a victim at least.
    #[serde(rename = "NodeNameToMetaVictims")]
    pub victims: BTreeMap<String, MetaVictims>,
}

/// Go writes an empty list as `null`.
fn null_is_none<'de, D: serde::Deserializer<'de>>(reader: D) -> Result<Vec<MetaPod>, D::Error> {
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}
