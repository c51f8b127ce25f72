//! Why devices could not be chosen, beside that none are free.

use super::{
    cel::{CompileError, EvaluationError},
    device::DeviceId,
};

/// How many devices a claim can be given (kubernetes `api/resource/v1`, `AllocationResultsMaxSize`).
pub const MOST_RESULTS: usize = 32;

/// What keeps a claim from being decided, or an attempt from being finished. The text names the object, the field and the reason.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum AllocationError {
    /// A field of a claim is not what it must be.
    #[error("claim {claim}: {field}: {reason}")]
    Claim {
        /// The claim's full name.
        claim: String,
        /// The field below the claim.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// A request asks for a class that does not exist.
    #[error("claim {claim}, request {request}: could not retrieve device class {class}")]
    ClassMissing {
        /// The claim's full name.
        claim: String,
        /// The request, or the alternative of one.
        request: String,
        /// The class.
        class: String,
    },
    /// A request is not one that this version serves, or asks for what can't be given.
    #[error("claim {claim}, request {request}: {reason}")]
    Request {
        /// The claim's full name.
        claim: String,
        /// The request, or the alternative of one.
        request: String,
        /// What is wrong.
        reason: String,
    },
    /// A selector can't be read.
    #[error("{object}: {field}: CEL compile error: {reason}")]
    Selector {
        /// The claim or the class, with its kind.
        object: String,
        /// The field below it.
        field: String,
        /// What is wrong.
        reason: Box<CompileError>,
    },
    /// A selector has no value for a device.
    #[error("{object}: {field} on device {device}: CEL runtime error: {reason}")]
    Evaluation {
        /// The claim or the class, with its kind.
        object: String,
        /// The field below it.
        field: String,
        /// The device.
        device: Box<DeviceId>,
        /// What is wrong.
        reason: Box<EvaluationError>,
    },
    /// A device that would do can't be given, since this version does not do what a field of it asks for.
    #[error("device {device}: {field} is not served")]
    UnservedDevice {
        /// The device.
        device: Box<DeviceId>,
        /// The field of the device.
        field: &'static str,
    },
    /// What a field of a device says can't be made out for its allocation.
    #[error("device {device}: {field}: {reason}")]
    Device {
        /// The device.
        device: Box<DeviceId>,
        /// The field of the device.
        field: String,
        /// What is wrong.
        reason: String,
    },
    /// A claim asks for more devices than it can be given.
    #[error("claim {claim}: number of requested devices {count} exceeds the claim limit of {MOST_RESULTS}")]
    TooManyDevices {
        /// The claim's full name.
        claim: String,
        /// How many it asks for at least.
        count: usize,
    },
    /// A request asks for all devices, and a pool's are not all known.
    #[error(
        "claim {claim}, request {request}: asks for all devices, but resource pool {pool} is currently {state}"
    )]
    UnsettledPool {
        /// The claim's full name.
        claim: String,
        /// The request, or the alternative of one.
        request: String,
        /// Driver and pool.
        pool: String,
        /// `being updated` or `invalid`, with the reason.
        state: String,
    },
    /// A request asks for all devices, and a constraint refuses one of them.
    #[error(
        "claim {claim}, request {request}: cannot add device {device} because a claim constraint would not be satisfied"
    )]
    Constraint {
        /// The claim's full name.
        claim: String,
        /// The request, or the alternative of one.
        request: String,
        /// The device.
        device: Box<DeviceId>,
    },
    /// Nothing was found, and pools were left out since what they publish contradicts itself.
    #[error("invalid resource pools were encountered: {0}")]
    InvalidPools(String),
    /// The caller ended the attempt before it was decided.
    #[error("the attempt was interrupted")]
    Interrupted,
    /// The search took more steps than it may.
    #[error("no devices were found within {0} steps of the search")]
    SearchLimit(u64),
}

impl AllocationError {
    /// The text without the device or the pool that it names, which another's driver publishes and whose name may be a node's; `None`: it
    /// names none. What an expression made of a device is left out too, since the expression may have written anything of it there.
    pub fn without_devices(&self) -> Option<String> {
        match self {
            Self::Evaluation { object, field, .. } => {
                Some(format!("{object}: {field}: CEL runtime error on a device"))
            }
            Self::UnservedDevice { field, .. } => Some(format!("{field} of a device is not served")),
            Self::Device { field, reason, .. } => Some(format!("{field} of a device: {reason}")),
            Self::UnsettledPool { claim, request, .. } => Some(format!(
                "claim {claim}, request {request}: asks for all devices, but a resource pool is currently not complete"
            )),
            Self::Constraint { claim, request, .. } => Some(format!(
                "claim {claim}, request {request}: cannot add a device because a claim constraint would not be satisfied"
            )),
            Self::InvalidPools(_) => Some("invalid resource pools were encountered".to_owned()),
            _ => None,
        }
    }
}
