//! The request: one pod at one stage of admission.

use crate::object::Pod;

/// The stage of admission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AdmissionStage {
    /// The mutating call: unreadable requests are denied, and missing values are set by a patch.
    Mutate,
    /// The mutating call about pods without a share, for a namespace that gives all its pods to Berth: the scheduler's name is set by a patch, and
    /// nothing is denied.
    Adopt,
    /// The validating call: the final pod is judged; nothing is patched.
    Validate,
}

/// The operation on the pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation<'a> {
    /// The pod is new.
    Create,
    /// The pod exists, and this is how it is stored now.
    Update(&'a Pod),
    /// The pod is deleted.
    Delete,
    /// A subresource is opened.
    Connect,
}

/// One review.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The stage.
    pub stage: AdmissionStage,
    /// The operation.
    pub operation: Operation<'a>,
    /// The namespace of the request; the pod's own may be empty at this time.
    pub namespace: &'a str,
    /// The pod as it would be stored.
    pub pod: &'a Pod,
}
