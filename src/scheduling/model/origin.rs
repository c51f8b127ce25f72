//! What a pod that waits is made from: it moves the scores of nodes and decides nowhere whether a node fits.

use std::sync::Arc;

use super::images::normalized;
use crate::object::{Pod, metadata::Controller};

/// What a pod is made from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Origin {
    /// The images that the pod's node must have.
    pub images: PodImages,
    /// The controller that made the pod.
    pub controller: Option<Controller>,
}

/// The images of a pod.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PodImages {
    /// The normalized names: of each init container, each container and each image volume, in this order. A name may be there twice.
    pub names: Vec<Arc<str>>,
    /// How many containers the pod has, init containers among them.
    pub containers: usize,
}

impl PodImages {
    /// The images that a pod states.
    pub fn of_pod(pod: &Pod) -> Self {
        let containers = || pod.spec.init_containers.iter().chain(&pod.spec.containers);
        let volumes = pod.spec.volumes.iter().filter_map(|volume| volume.image.as_ref());
        let stated = containers()
            .map(|container| container.image.as_str())
            .chain(volumes.map(|image| image.reference.as_str()));
        Self { names: stated.map(|name| normalized(name).into()).collect(), containers: containers().count() }
    }
}
