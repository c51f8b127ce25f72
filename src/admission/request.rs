//! What is asked: one pod at one stage of admission.

use crate::object::Pod;

/// The stage of admission that asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// The mutating call: what can't be read is denied, what is missing is patched in.
    Mutate,
    /// The validating call: the final pod is judged; nothing is patched.
    Validate,
}

/// What is being done to the pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation<'a> {
    /// The pod is new.
    Create,
    /// The pod exists, and this is how it is stored now.
    Update(&'a Pod),
    /// The pod is to go.
    Delete,
    /// A subresource is opened.
    Connect,
}

/// One review.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The stage that asks.
    pub stage: Stage,
    /// What is being done.
    pub operation: Operation<'a>,
    /// The namespace of the request; the pod's own may be empty at this time.
    pub namespace: &'a str,
    /// The pod as it would be stored.
    pub pod: &'a Pod,
}
