//! Everything that can happen to the scheduler: one closed list.

use super::{
    decide::comparison::ComparedClaims,
    effect::PrebindWrite,
    model::{
        kept_room::RoomStatus,
        kind::Kind,
        name::{NodeName, Uid},
        node::NodeInfo,
        other_schedulers::OtherSchedulers,
        pod::{Ask, PodInfo, PodKey},
    },
    packing::renewal::RenewedMix,
    plan::eviction::Eviction,
    world::{
        object::Object,
        quota::{QuotaInfo, QuotaKey},
    },
};
use crate::device::{LockName, LockOwner};
use jiff::Timestamp;
use std::sync::Arc;

pub use super::model::outcome::{
    BindOutcome, EvictionOutcome, LockOutcome, ReleaseOutcome, Setback, TellOutcome, WithdrawOutcome,
    WriteOutcome,
};

/// Pods of a list, each in memory of its own, where it stays when it is taken in.
#[derive(Clone, Debug, Default)]
#[expect(clippy::vec_box, reason = "a pod stays where it is when the list goes")]
pub struct PodList(Vec<Box<PodInfo>>);

impl PodList {
    /// Each pod.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &PodInfo> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Each pod, taken out of the list.
    pub fn into_pods(self) -> impl ExactSizeIterator<Item = Box<PodInfo>> {
        self.0.into_iter()
    }
}

impl FromIterator<PodInfo> for PodList {
    fn from_iter<I: IntoIterator<Item = PodInfo>>(pods: I) -> Self {
        Self(pods.into_iter().map(Box::new).collect())
    }
}

impl From<Vec<Box<PodInfo>>> for PodList {
    fn from(pods: Vec<Box<PodInfo>>) -> Self {
        Self(pods)
    }
}

/// What is seen of pods.
#[derive(Clone, Debug)]
pub enum PodChange {
    /// Every pod that there is: what is not among them is gone.
    Listed(PodList),
    /// A pod, new or changed.
    Seen(Box<PodInfo>),
    /// A pod is gone; whether its node is done with it is not known.
    Gone(Uid),
    /// A pod has ended: its node is done with it.
    Ended(Uid),
}

/// What is seen of nodes.
#[derive(Clone, Debug)]
pub enum NodeChange {
    /// Every node that there is: what is not among them is gone.
    Listed(Vec<NodeInfo>),
    /// A node, new or changed.
    Seen(Box<NodeInfo>),
    /// A node is gone.
    Gone(NodeName),
}

/// What is seen of quotas.
#[derive(Clone, Debug)]
pub enum QuotaChange {
    /// Every quota that there is: what is not among them is gone.
    Listed(Vec<QuotaInfo>),
    /// A quota, new or changed.
    Seen(QuotaInfo),
    /// A quota is gone.
    Gone(QuotaKey),
}

/// What is seen of other objects that plugins read.
#[derive(Clone, Debug)]
pub enum ObjectChange {
    /// Every object of a kind that there is: what is not among them is gone.
    Listed(Kind, Vec<Object>),
    /// The API server does not serve this kind: there are no objects of it.
    Unserved(Kind),
    /// An object, new or changed.
    Seen(Object),
    /// The kind and the full name of an object that is gone.
    Gone(Kind, Arc<str>),
    /// Whether other schedulers run that take node locks, by their pods.
    OtherSchedulers(OtherSchedulers),
}

/// What was read at the API server to settle a doubt.
#[derive(Clone, Debug)]
pub enum ReadAnswer {
    /// The pod as it is at the API server, read since the outcome of its Binding was unknown; `None`: it is gone.
    Pod {
        /// The pod.
        pod: PodKey,
        /// What it looks like.
        found: Option<Box<PodInfo>>,
    },
    /// The node as it is at the API server, read since the outcome of its lock was unknown; `None`: it is gone.
    Node {
        /// The node.
        node: NodeName,
        /// What it looks like.
        found: Option<Box<NodeInfo>>,
        /// The pods that are bound to it and have not succeeded, read after it.
        pods: Vec<PodInfo>,
    },
    /// Whether the holder of a lock, of which nothing was seen, is there.
    Holder {
        /// Whom the lock names.
        owner: LockOwner,
        /// Since when it is held.
        since: Timestamp,
        /// What the pod looks like.
        found: Option<Box<PodInfo>>,
    },
}

/// What was computed beside the decisions, since it takes longer than one of these may.
#[derive(Clone, Debug)]
pub enum Computed {
    /// A comparison of claims with devices is over.
    Claims(ComparedClaims),
    /// Rooms have been valued for the pods that may come.
    Mix(RenewedMix),
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// A pod, or all of them.
    Pod(PodChange),
    /// A node, or all of them.
    Node(NodeChange),
    /// A quota, or all of them.
    Quota(QuotaChange),
    /// An object of another kind that plugins read, or all of one kind.
    Object(ObjectChange),
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
        /// What became of the room that was kept for it; `None`: that was not written.
        room: Option<RoomStatus>,
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
    /// What came of giving locks back.
    LockReleased {
        /// On which node.
        node: NodeName,
        /// The version that the node had to have.
        resource_version: String,
        /// Which locks.
        locks: Vec<LockName>,
        /// What came of it.
        outcome: ReleaseOutcome,
    },
    /// What was read to settle a doubt.
    Read(ReadAnswer),
    /// What came of saying why a pod waits.
    Told {
        /// Which pod.
        pod: PodKey,
        /// What its condition says now.
        message: String,
        /// What came of it.
        outcome: TellOutcome,
    },
    /// What was computed beside the decisions.
    Computed(Computed),
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
