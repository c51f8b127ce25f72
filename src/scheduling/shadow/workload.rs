//! The workload that a pod is one of: the controller that made it, and the Deployment behind a ReplicaSet.

use std::{fmt, sync::Arc};

use crate::scheduling::model::pod::PodInfo;

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
    /// The workload of a pod; `None`: no controller made the pod.
    pub(super) fn of(pod: &PodInfo) -> Option<Self> {
        let controller = pod.origin.as_ref()?.controller.as_ref()?;
        let (kind, name) = (controller.kind(), controller.name());
        let hash = pod.footprint.labels.get(TEMPLATE_HASH).filter(|_| kind == "ReplicaSet");
        let deployment = hash.and_then(|hash| name.strip_suffix(hash.as_str())?.strip_suffix('-'));
        Some(match deployment {
            Some(deployment) => Self { kind: "Deployment".into(), name: deployment.into() },
            None => Self { kind: kind.into(), name: name.into() },
        })
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.kind, self.name)
    }
}
