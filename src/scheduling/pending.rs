//! Why a pod waits: one closed list. A reason carries names and amounts; the adapters make it into text.

use std::{mem::discriminant, sync::Arc};

use jiff::Timestamp;

use super::{
    decide::{blame::Blame, fit_error::FitError},
    model::{
        kind::Kind,
        message::Message,
        pod::{Demand, PodKey},
    },
    node_flow::NodeFailure,
    plan::gang::GangReason,
    prebind::PrebindReason,
    queue::AttemptHistory,
};

/// A pod that wants a place and has none yet.
#[derive(Clone, Debug)]
pub struct PendingPod {
    /// Its names.
    pub key: PodKey,
    /// Its priority.
    pub priority: i32,
    /// When it was created.
    pub created: Timestamp,
    /// What it asks for; `None`: that can't be read.
    pub demand: Option<Demand>,
    /// How often it was decided without finding a place or without getting it.
    pub attempts: u32,
    /// Why it waits; `None`: it has not been refused.
    pub reason: Option<PendingReason>,
    /// Why its attempts failed since this scheduler decides; `None`: none has.
    pub history: Option<Arc<AttemptHistory<PendingReason>>>,
}

/// Why a pod waits.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PendingReason {
    /// Its request can't be read, or it requests no share; what is wrong, in the words of what has read it.
    Request(Arc<str>),
    /// No node would have it.
    Fit(Arc<FitError>),
    /// It could not be bound to the node that was chosen.
    Node(NodeFailure),
    /// It waits for its claims, or can't be placed for them.
    Claims(PrebindReason),
    /// Objects of these kinds, which decide on where it may go, are not listed.
    Lists(Vec<Kind>),
    /// Its gang can't be placed.
    Gang(GangReason),
}

impl PendingReason {
    /// Why the pod waits, as far as that is counted.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Request(_) => Blame::Request,
            Self::Fit(error) => error.blame(),
            Self::Node(failure) => failure.blame(),
            Self::Claims(_) => Blame::Claims,
            Self::Lists(_) => Blame::Lists,
            Self::Gang(reason) => reason.blame(),
        }
    }

    /// What the pod is told, in full and without what is not the pod's owner's. It may be long.
    pub fn message(&self) -> Message {
        match self {
            Self::Request(why) => Message::from(why.to_string()),
            Self::Fit(error) => error.message(),
            Self::Node(failure) => failure.message(),
            Self::Claims(reason) => reason.message(),
            Self::Lists(kinds) => Message::from(unlisted(kinds)),
            Self::Gang(reason) => reason.message(),
        }
    }

    /// Whether both are of one kind, whatever the nodes, amounts and times that they name.
    pub fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fit(one), Self::Fit(other)) => one.is_alike(other),
            (Self::Node(one), Self::Node(other)) => discriminant(one) == discriminant(other),
            (Self::Claims(one), Self::Claims(other)) => discriminant(one) == discriminant(other),
            (Self::Gang(one), Self::Gang(other)) => one.is_alike(other),
            _ => self == other,
        }
    }

    /// Whether an error says the same, but for how much of a quota is used: see [`FitError::repeats`].
    pub fn is_repeated_by(&self, error: &FitError) -> bool {
        matches!(self, Self::Fit(said) if error.repeats(said))
    }
}

fn unlisted(kinds: &[Kind]) -> String {
    let mut missing: Vec<&str> = kinds.iter().map(|kind| kind.resource()).collect();
    // A kind that is read in two versions is named once.
    missing.dedup();
    let missing = missing.join(", ");
    if kinds.iter().all(|kind| Kind::DEVICES_BY_TYPE.contains(kind)) {
        format!(
            "the Pod asks for devices, and these are not listed yet: {missing}; Berth's ServiceAccount must be allowed to list and watch them"
        )
    } else {
        format!(
            "the Pod has claims, and these are not listed yet: {missing}; Berth's ServiceAccount must be allowed to list and watch them"
        )
    }
}

impl From<Arc<FitError>> for PendingReason {
    fn from(error: Arc<FitError>) -> Self {
        Self::Fit(error)
    }
}

impl From<FitError> for PendingReason {
    fn from(error: FitError) -> Self {
        Self::Fit(Arc::new(error))
    }
}

impl From<NodeFailure> for PendingReason {
    fn from(failure: NodeFailure) -> Self {
        Self::Node(failure)
    }
}

impl From<PrebindReason> for PendingReason {
    fn from(reason: PrebindReason) -> Self {
        Self::Claims(reason)
    }
}

impl From<GangReason> for PendingReason {
    fn from(reason: GangReason) -> Self {
        Self::Gang(reason)
    }
}
