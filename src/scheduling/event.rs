//! Everything that can happen to the scheduler: one closed list.

use super::{
    decide::comparison::ComparedClaims,
    effect::PrebindWrite,
    model::{
        kind::Kind,
        name::{NodeName, Uid},
        node::NodeInfo,
        pod::{Ask, PodInfo, PodKey},
    },
    plan::eviction::Eviction,
    world::{
        object::Object,
        quota::{QuotaInfo, QuotaKey},
    },
};
use crate::device::{LockName, LockOwner};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Every pod that there is: what is not among them is gone.
    Pods(Vec<PodInfo>),
    /// A pod, new or changed.
    PodSeen(Box<PodInfo>),
    /// A pod is gone; whether its node is done with it is not known.
    PodGone(Uid),
    /// A pod has ended: its node is done with it.
    PodEnded(Uid),
    /// Every node that there is: what is not among them is gone.
    Nodes(Vec<NodeInfo>),
    /// A node, new or changed.
    NodeSeen(Box<NodeInfo>),
    /// A node is gone.
    NodeGone(NodeName),
    /// Every quota that there is: what is not among them is gone.
    Quotas(Vec<QuotaInfo>),
    /// A quota, new or changed.
    QuotaSeen(QuotaInfo),
    /// A quota is gone.
    QuotaGone(QuotaKey),
    /// Every object that there is of another kind that plugins read: what is not among them is gone.
    Listed(Kind, Vec<Object>),
    /// The API server does not serve this kind: there are no objects of it.
    Unserved(Kind),
    /// An object of another kind, new or changed.
    Seen(Object),
    /// An object of another kind is gone.
    Gone(Kind, Arc<str>),
    /// What came of taking the locks that a pod needs on a node.
    LockAnswered {
        /// For which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// Which locks.
        locks: Vec<LockName>,
        /// What came of it.
        outcome: LockOutcome,
    },
    /// What came of a Binding.
    BindAnswered {
        /// Of which pod.
        pod: PodKey,
        /// To which node.
        node: NodeName,
        /// What came of it.
        outcome: BindOutcome,
    },
    /// What came of a write for one of a pod's claims.
    Prebound {
        /// For which pod.
        pod: PodKey,
        /// What was to be written.
        write: PrebindWrite,
        /// What came of it.
        outcome: WriteOutcome,
    },
    /// What came of writing which node is kept for a pod.
    Nominated {
        /// Which pod.
        pod: PodKey,
        /// The node; `None`: none is any more.
        node: Option<NodeName>,
        /// What came of it.
        outcome: WriteOutcome,
    },
    /// What came of deleting a pod to make room for another.
    Preempted {
        /// The pod that was to go.
        pod: PodKey,
        /// The pod that needs the room.
        preemptor: PodKey,
        /// What came of it; a pod that is gone counts as written.
        outcome: WriteOutcome,
    },
    /// What came of withdrawing the assignment of a dead pod.
    Withdrawn {
        /// Which pod.
        pod: PodKey,
        /// On which node.
        node: NodeName,
        /// What came of it.
        outcome: WithdrawOutcome,
    },
    /// What came of evicting a pod from a node of a closed zone.
    EvictionAnswered {
        /// Which pod.
        eviction: Eviction,
        /// What came of it.
        outcome: EvictionOutcome,
    },
    /// The pod as it is at the API server, read since the outcome of its Binding was unknown; `None`: it is gone.
    PodRead {
        /// The pod.
        pod: PodKey,
        /// What it looks like.
        found: Option<Box<PodInfo>>,
    },
    /// What came of giving a lock back.
    LockReleased {
        /// On which node.
        node: NodeName,
        /// What came of it.
        outcome: ReleaseOutcome,
    },
    /// The node as it is at the API server, read since the outcome of its lock was unknown; `None`: it is gone.
    NodeRead {
        /// The node.
        node: NodeName,
        /// What it looks like.
        found: Option<Box<NodeInfo>>,
        /// The pods that are bound to it and have not succeeded, read after it.
        pods: Vec<PodInfo>,
    },
    /// Whether the holder of a lock, of which nothing was seen, is there.
    HolderRead {
        /// Whom the lock names.
        owner: LockOwner,
        /// Since when it is held.
        since: Timestamp,
        /// What the pod looks like.
        found: Option<Box<PodInfo>>,
    },
    /// What came of saying why a pod waits.
    Told {
        /// Which pod.
        pod: PodKey,
        /// What was said.
        message: String,
        /// What came of it.
        outcome: TellOutcome,
    },
    /// A comparison of claims with devices is over.
    ClaimsCompared(ComparedClaims),
    /// A pod with this ask may come. Nobody vouches for it: it is prepared for, and nothing is decided or held for it.
    Hinted(Arc<Ask>),
    /// A pod is gone for whose node's device plugin another has seen that it may be at work until then.
    Vacated {
        /// Which node.
        node: NodeName,
        /// Until when it is left alone.
        until: Timestamp,
    },
    /// kube-scheduler has chosen a node for a pod: its cards are chosen there, and it is bound.
    Directed {
        /// Which pod.
        pod: Uid,
        /// Its node.
        node: NodeName,
    },
    /// The pod is not to be bound to the node that was chosen, unless that is under way.
    Undirected {
        /// Which pod.
        pod: Uid,
    },
    /// A deadline has passed.
    Tick,
}

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
