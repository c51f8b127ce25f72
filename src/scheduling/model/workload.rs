//! The workload that a pod is one of: the controller that made it, and the Deployment behind a ReplicaSet.

use std::{fmt, sync::Arc};

use super::{label_set::LabelSet, origin::Origin};
use crate::object::{Pod, metadata::Controller, selector::LabelValues};

/// The label by which a Deployment names its ReplicaSets (kubernetes `pkg/controller/deployment/sync.go`).
const TEMPLATE_HASH: &str = "pod-template-hash";

/// What made a pod, in the pod's namespace.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Workload {
    /// Its kind.
    pub kind: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl Workload {
    /// The workload of a pod that waits, by what it is made from and its labels; `None`: no controller made the pod.
    pub(in crate::scheduling) fn of(origin: Option<&Origin>, labels: &LabelSet) -> Option<Self> {
        let controller = origin?.controller.as_ref()?;
        Some(Self::of_controller(controller, labels.value(TEMPLATE_HASH)))
    }

    /// The workload of a pod; a pod that no controller made is its own.
    pub fn of_pod(pod: &Pod) -> Self {
        match &pod.metadata.controller {
            Some(controller) => Self::of_controller(controller, pod.metadata.label(TEMPLATE_HASH)),
            None => Self { kind: "Pod".into(), name: pod.metadata.name.as_str().into() },
        }
    }

    /// The workload of a pod with this value of the label [`TEMPLATE_HASH`].
    fn of_controller(controller: &Controller, hash: Option<&str>) -> Self {
        let (kind, name) = (controller.kind(), controller.name());
        let hash = hash.filter(|_| kind == "ReplicaSet");
        let deployment = hash.and_then(|hash| name.strip_suffix(hash)?.strip_suffix('-'));
        match deployment {
            Some(deployment) => Self { kind: "Deployment".into(), name: deployment.into() },
            None => Self { kind: kind.into(), name: name.into() },
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.kind, self.name)
    }
}
