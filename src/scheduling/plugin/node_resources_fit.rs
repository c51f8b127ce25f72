//! Whether a node has room for what a pod requests of the resources that Kubernetes accounts, and for one more pod.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/noderesources/fit.go`.

use std::{borrow::Cow, sync::Arc};

use super::{
    contract::{Cure, Filter, Reasons, Rejection, SchedulingPlugin, Shortage},
    scene::Scene,
};
use crate::device::DeviceRequest;

/// Rejects a node that has no room for what the pod requests, or for one more pod.
#[derive(Debug)]
pub struct NodeResourcesFit;

impl SchedulingPlugin for NodeResourcesFit {
    const NAME: &'static str = "NodeResourcesFit";

    type Reason = ResourceReason;
}

impl Filter for NodeResourcesFit {
    fn test(scene: &Scene<'_>) -> Result<(), Reasons<ResourceReason>> {
        let short = short(scene);
        if short.is_empty() { Ok(()) } else { Err(short) }
    }
}

/// Every resource of which too little is free. A resource of a dialect's own need not be advertised by the node, nor need one that
/// a claim serves there.
fn short(scene: &Scene<'_>) -> Reasons<ResourceReason> {
    let (node, allocatable) = (scene.node, &scene.node.info.allocatable);
    let mut short = Reasons::new();
    let pods = i64::try_from(node.pods.len()).unwrap_or(i64::MAX);
    if allocatable.names("pods") && pods >= allocatable.get("pods") {
        short.push(ResourceReason::TooManyPods);
    }
    for (name, requested) in scene.ask.resources.iter().filter(|&(_, amount)| amount > 0) {
        let unadvertised = scene.device_resources.contains(name) && !allocatable.names(name);
        let capacity = allocatable.get(name);
        let free = capacity.saturating_sub(node.requested.get(name));
        let counts =
            |device: &&DeviceRequest| device.by_class.as_ref().is_some_and(|by| *by.resource == *name);
        let shares =
            || scene.ask.devices.iter().find(counts).is_some_and(|device| node.serves_by_claim(device));
        let by_claim = || node.class_of(name).is_some() || shares();
        if !unadvertised && requested > free && !by_claim() {
            short.push(ResourceReason::Insufficient { resource: name.into(), requested, free, capacity });
        }
    }
    short
}

/// Why a node has no room.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum ResourceReason {
    /// It has as many pods as it may have.
    #[error("Too many pods")]
    TooManyPods,
    /// It has too little of a resource. Amounts are in thousandths for cpu, else in units.
    #[error("Insufficient {resource}")]
    Insufficient {
        /// The resource's name.
        resource: Arc<str>,
        /// How much the pod requests.
        requested: i64,
        /// How much is free.
        free: i64,
        /// How much there is on the empty node.
        capacity: i64,
    },
}

impl Rejection for ResourceReason {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Self::TooManyPods => "TooManyPods".into(),
            Self::Insufficient { resource, .. } => format!("Insufficient {resource}").into(),
        }
    }

    fn kind(&self) -> Self {
        match self {
            Self::TooManyPods => Self::TooManyPods,
            Self::Insufficient { resource, .. } => {
                Self::Insufficient { resource: resource.clone(), requested: 0, free: 0, capacity: 0 }
            }
        }
    }

    fn cure(&self) -> Cure {
        match self {
            Self::Insufficient { requested, capacity, .. } if requested > capacity => Cure::Nothing,
            _ => Cure::Eviction,
        }
    }

    fn shortage(&self) -> Option<Shortage<'_>> {
        match self {
            Self::TooManyPods => None,
            Self::Insufficient { resource, requested, free, .. } => {
                Some(Shortage { resource, requested: *requested, free: *free })
            }
        }
    }
}
