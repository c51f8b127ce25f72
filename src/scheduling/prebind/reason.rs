//! Why a pod waits for its claims, or can't be placed for them, and the words for that.

use std::sync::Arc;

use jiff::Timestamp;

use crate::scheduling::model::{
    message::{Details, Message},
    name::NodeName,
    prebind_step::PrebindStep,
};

/// Why a pod waits for its claims, or can't be placed on the node for which they were being bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PrebindReason {
    /// The node is gone.
    NodeGone(NodeName),
    /// A volume can't be bound.
    Volume(VolumeFailure),
    /// A claim of devices can't be used.
    Devices {
        /// Its name.
        claim: Arc<str>,
        /// Why not.
        failure: DevicesFailure,
    },
    /// It waits on its node.
    Held {
        /// On which.
        node: NodeName,
        /// Since when.
        since: Timestamp,
        /// When its place goes to another pod that needs it.
        until: Timestamp,
        /// What it waits for.
        awaited: Awaited,
    },
    /// Its place was given to another pod.
    Lost {
        /// On which node.
        node: NodeName,
        /// Since when it had waited there.
        since: Timestamp,
        /// What it had waited for.
        awaited: Awaited,
    },
    /// Pods of its namespace hold as many cards as they may while they wait for volumes.
    PartHeld {
        /// The namespace.
        namespace: Arc<str>,
        /// How many percent of the cluster's cards they may hold.
        percent: u32,
    },
}

/// Why a volume can't be bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VolumeFailure {
    /// There is no claim of this name.
    ClaimNotFound(Arc<str>),
    /// There is no volume of this name.
    VolumeNotFound(Arc<str>),
    /// The claim is bound to a volume that can't be mounted on the node.
    NotMountable {
        /// The volume.
        volume: Arc<str>,
        /// The node.
        node: NodeName,
    },
    /// The provisioner has given up.
    ProvisioningFailed {
        /// The claim.
        claim: Arc<str>,
        /// The node.
        node: NodeName,
    },
    /// What was written to this volume was taken back.
    ClaimRefReset(Arc<str>),
    /// This volume is another claim's.
    BoundToAnother(Arc<str>),
    /// It was not bound in time on this node.
    TimedOut(NodeName),
    /// The API server refuses the write, and answers this.
    Refused(String),
}

/// Whether a claim is given others in place of devices that another claim has, too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OtherDevices {
    /// It is.
    Sought,
    /// It is not, since other pods use it.
    None,
}

/// Why a claim of devices can't be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DevicesFailure {
    /// There is none, or another of this name.
    NotFound,
    /// It is being deleted.
    BeingDeleted,
    /// It was deleted.
    Deleted,
    /// It has its name, and is not the pod's.
    OfAnother,
    /// It asks for what is not on the node.
    ForAnotherNode,
    /// It had devices that another pod was to give it.
    LostDevices,
    /// Its devices are not on this node.
    NotOnNode(NodeName),
    /// It has as many users as it can have, which are so many.
    InUse(usize),
    /// A driver has stated that a device can't be used.
    Condition {
        /// Which device.
        device: Arc<str>,
        /// The type of its condition.
        condition: Arc<str>,
    },
    /// Another scheduler has given this device of it to another claim, too.
    DoubleAllocation(Arc<str>, OtherDevices),
    /// It changes faster than it can be written.
    ChangesTooOften,
    /// It was not ready in time on this node.
    TimedOut(NodeName),
    /// The API server refuses the write, and answers this.
    Refused(String),
}

/// What a pod waits for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Awaited {
    /// This claim of a volume.
    Volume(Arc<str>),
    /// This claim of devices.
    Devices(Arc<str>),
    /// The claims of other pods of its gang.
    Gang,
}

impl PrebindReason {
    /// The claim was not bound in time on this node.
    pub(super) fn timed_out(step: &PrebindStep, node: &NodeName) -> Self {
        match step {
            PrebindStep::Volume(_) => Self::Volume(VolumeFailure::TimedOut(node.clone())),
            PrebindStep::Devices(_) | PrebindStep::Extended(_) | PrebindStep::NodeResources(_) => {
                Self::devices(step.claim(), DevicesFailure::TimedOut(node.clone()))
            }
        }
    }

    /// The API server refuses a write for the claim with this answer.
    pub(super) fn refused(step: &PrebindStep, answer: String) -> Self {
        match step {
            PrebindStep::Volume(_) => Self::Volume(VolumeFailure::Refused(answer)),
            PrebindStep::Devices(_) | PrebindStep::Extended(_) | PrebindStep::NodeResources(_) => {
                Self::devices(step.claim(), DevicesFailure::Refused(answer))
            }
        }
    }

    /// A claim of devices can't be used.
    pub(super) fn devices(claim: &str, failure: DevicesFailure) -> Self {
        Self::Devices { claim: claim.into(), failure }
    }

    /// The claim that the pod is no longer a user of, since another claim has one of its devices, too.
    pub(super) fn given_up(&self) -> Option<&Arc<str>> {
        match self {
            Self::Devices { claim, failure: DevicesFailure::DoubleAllocation(..) } => Some(claim),
            _ => None,
        }
    }

    /// What the pod is told.
    pub fn message(&self) -> Message {
        Message::with_own(self.words(Details::Full), self.words(Details::Own))
    }

    /// The reason in words; with [`Details::Own`] without nodes, volumes and what the API server answers, which may name either.
    fn words(&self, details: Details) -> String {
        let or = |full: String, own: &str| chosen(details, full, own);
        match self {
            Self::NodeGone(node) => format!("{} is gone", or(format!("node {node}"), "the node")),
            Self::Volume(failure) => failure.words(details),
            Self::Devices { claim, failure } => format!("resourceclaim {claim:?}{}", failure.words(details)),
            Self::Held { node, since, until, awaited } => format!(
                "waiting on {} since {since} for {}; the place goes to another pod that needs it from {until} on",
                or(format!("node {node}"), "a node"),
                awaited.words()
            ),
            Self::Lost { node, since, awaited } => format!(
                "the place on {} was given to another pod: this one had waited there for {} since {since}",
                or(format!("node {node}"), "its node"),
                awaited.words()
            ),
            Self::PartHeld { namespace, percent } => format!(
                "pods of namespace {namespace} hold {percent}% of the cluster's cards while they wait for volumes \
                 (scheduling.volumes.heldPercent); the pod waits until some of them are bound"
            ),
        }
    }
}

impl VolumeFailure {
    fn words(&self, details: Details) -> String {
        let or = |full: String, own: &str| chosen(details, full, own);
        match self {
            Self::ClaimNotFound(claim) => format!("persistentvolumeclaim {claim:?} not found"),
            Self::VolumeNotFound(volume) => format!("persistentvolume {volume:?} not found"),
            Self::NotMountable { volume, node } => {
                let node = or(format!("node {node:?}"), "the node");
                format!("pv {volume:?} node affinity doesn't match {node}")
            }
            Self::ProvisioningFailed { claim, node } => {
                format!("provisioning failed for PVC {claim:?}{}", or(format!(" on node {node:?}"), ""))
            }
            Self::ClaimRefReset(volume) => {
                format!("ClaimRef got reset for {}", or(format!("pv {volume:?}"), "a pv"))
            }
            Self::BoundToAnother(volume) => {
                format!("{} is bound to another claim", or(format!("pv {volume:?}"), "a pv"))
            }
            Self::TimedOut(node) => {
                format!("binding volumes: timed out{}", or(format!(" on node {node}"), ""))
            }
            Self::Refused(answer) => format!("binding volumes was refused{}", or(format!(": {answer}"), "")),
        }
    }
}

impl DevicesFailure {
    /// What follows the claim's name.
    fn words(&self, details: Details) -> String {
        let or = |full: String, own: &str| chosen(details, full, own);
        match self {
            Self::NotFound => " not found".to_owned(),
            Self::BeingDeleted => " is being deleted".to_owned(),
            Self::Deleted => " was deleted".to_owned(),
            Self::OfAnother => " was not created for this pod".to_owned(),
            Self::ForAnotherNode => " was made for another node".to_owned(),
            Self::LostDevices => " has lost its devices".to_owned(),
            Self::NotOnNode(node) => {
                format!(" has devices that are not on {}", or(format!("node {node}"), "the node"))
            }
            Self::InUse(users) => format!(" is used by {users} pods, which is the most"),
            Self::Condition { device, condition } => {
                format!(": device {device:?} has the condition {condition}")
            }
            Self::DoubleAllocation(device, OtherDevices::Sought) => format!(
                ": device {device:?} was given to another claim at the same time; other devices are looked for"
            ),
            Self::DoubleAllocation(device, OtherDevices::None) => {
                format!(": device {device:?} is allocated to another claim, too")
            }
            Self::ChangesTooOften => " changes too often".to_owned(),
            Self::TimedOut(node) => format!(": timed out{}", or(format!(" on node {node}"), "")),
            Self::Refused(answer) => format!(": the write was refused{}", or(format!(": {answer}"), "")),
        }
    }
}

/// The part of a text that names what is not the pod's owner's, or what stands in its place.
fn chosen(details: Details, full: String, own: &str) -> String {
    match details {
        Details::Full => full,
        Details::Own => own.to_owned(),
    }
}

impl Awaited {
    fn words(&self) -> String {
        match self {
            Self::Volume(claim) => format!("persistentvolumeclaim {claim:?}"),
            Self::Devices(claim) => format!("resourceclaim {claim:?}"),
            Self::Gang => "the claims of its gang".to_owned(),
        }
    }
}
