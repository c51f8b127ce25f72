//! What kubelet asks a device plugin for, and why a plugin may refuse.
//!
//! It must not answer: the plugins do.

use std::sync::Mutex;

use super::api::Calls;
use super::audit::Violation;
use super::node::Node;
use super::record::Record;
use super::view::{Container, Pod};

/// One container's Allocate. The real call holds device ids only; the pod is here to check the plugin's choice.
pub(super) struct Ask<'a> {
    pub(super) calls: &'a Calls,
    pub(super) record: &'a Record,
    pub(super) node: &'a Node,
    /// The pod that kubelet admits.
    pub(super) pod: &'a Pod,
    /// The container's place among init and app containers.
    pub(super) place: usize,
    /// How many device ids kubelet chose.
    pub(super) wanted: usize,
    /// Whether the test told this Allocate to fail.
    pub(super) fault: Option<Fault>,
    /// What Cambricon's plugin keeps in mind from call to call.
    pub(super) cut: &'a Mutex<Option<CutForPod>>,
}

/// The part of a card that Cambricon's plugin has cut for a pod, between the two calls for its container.
#[derive(Debug)]
pub(super) struct CutForPod {
    pub(super) pod: String,
    pub(super) instance: String,
}

/// A failure that a test ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault;

/// Why an Allocate failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("no pod of this node awaits its devices")]
    NoPod,
    #[error("the node lock `{0}` cannot be read")]
    Lock(String),
    #[error("devices to allocate: {0}")]
    Devices(String),
    #[error("no devices are left to allocate")]
    NothingLeft,
    #[error("device number not matched: {wanted} asked, {found} assigned")]
    Count { wanted: usize, found: usize },
    #[error("MIG slice: {0}")]
    Slice(String),
    #[error("compute units: {0}")]
    Units(String),
    #[error("the node lock `{0}` is not the pod's")]
    Unlocked(String),
    #[error("{0} pods or several containers of one await their devices")]
    Several(usize),
    #[error("ordered to fail")]
    Told,
    #[error("api server: {0}")]
    Api(#[from] kube::Error),
}

impl Ask<'_> {
    pub(super) fn container(&self) -> &Container {
        self.pod.in_kubelet_order().nth(self.place).expect("kubelet asks for containers of this pod")
    }

    pub(super) fn is_faulty(&self) -> bool {
        self.fault.is_some()
    }

    pub(super) fn note(&self, violation: Violation) {
        self.record.violation(violation);
    }

    /// A clean-up that the plugin tries and does not answer for.
    pub(super) fn settle(&self, outcome: kube::Result<()>) {
        if let Err(error) = outcome {
            self.record.trouble(format!("node {}, pod {}: {error}", self.node.name, self.pod.key()));
        }
    }
}
