//! What came of a write at the API server, and for how long one may still take effect.

use jiff::SignedDuration;

/// The longest time after the sending of a write in which the write can still take effect. Who carries out effects must hold to it; the
/// scheduler waits so long before it relies on a write that had no answer not arriving.
pub const REACH: SignedDuration = SignedDuration::from_secs(6);

/// A write that was not answered with a yes or a no, and how long the API server asks to be left alone after it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Setback {
    /// What was heard of it.
    pub why: String,
    /// For so long it is not sent again; zero: nothing was asked for.
    pub wait: SignedDuration,
}

/// What came of taking a lock.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LockOutcome {
    /// It is ours.
    Taken {
        /// The node's version since then.
        resource_version: String,
    },
    /// The node has changed since it was read: decide again on what it is now.
    Stale,
    /// It is not ours: the API server has too much to do.
    Throttled(Setback),
    /// It may or may not be ours: a lost answer, a server error.
    Failed(Setback),
    /// The API server will not have it.
    Refused(String),
}

/// What came of giving a lock back.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReleaseOutcome {
    /// It is free, or the node is gone.
    Done,
    /// It may or may not be free.
    Failed {
        /// For so long it is not tried again; zero: nothing was asked for.
        wait: SignedDuration,
    },
}

/// What came of saying why a pod waits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TellOutcome {
    /// The pod's condition has been written, or the pod is gone.
    Done,
    /// It may or may not say so; or the pod has changed since it was read.
    Failed {
        /// For so long it is not said again; zero: nothing was asked for.
        wait: SignedDuration,
    },
}

/// What came of a write that binds a claim, nominates a node or preempts a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum WriteOutcome {
    /// It is written.
    Written {
        /// The object's version since then.
        resource_version: String,
    },
    /// It may or may not be written: the object has changed, a lost answer, a server error.
    Failed(Setback),
    /// The API server does not accept it.
    Refused(String),
}

/// What came of withdrawing an assignment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WithdrawOutcome {
    /// Nobody is served with it any more, or the pod is gone.
    Done,
    /// It may or may not be withdrawn.
    Failed,
}

/// What came of an eviction.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EvictionOutcome {
    /// The pod is on its way out.
    Granted,
    /// It is gone.
    Gone,
    /// The API server does not evict it now: a PodDisruptionBudget, too many requests, a missing right.
    Refused(String),
    /// It may or may not be on its way out.
    Doubtful,
}

/// What came of a Binding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum BindOutcome {
    /// The pod is bound.
    Bound,
    /// It is not bound by this: the API server has too much to do.
    Throttled(Setback),
    /// It may or may not be bound, or be gone: a conflict, a lost answer, a server error.
    Doubtful(Setback),
    /// The API server will not have it.
    Refused(String),
}
