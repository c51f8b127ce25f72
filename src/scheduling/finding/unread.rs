//! Pods of which nobody can tell which cards they hold.
//!
//! What counts for them on the cards of their node is folded from the same ledger.

use crate::{
    device::UnknownCards,
    scheduling::{
        model::{message::Message, name::NodeName},
        world::ledger::Charge,
    },
};

/// A pod whose assignment can't be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnreadAssignment {
    /// Its node.
    pub node: NodeName,
    /// The annotation, and what is wrong with it.
    pub why: String,
    /// What counts for it.
    pub counted: Counted,
}

/// What counts on the cards of a node for a pod whose cards are unknown, until its assignment is repaired or the pod ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Counted {
    /// Everything: no further pod is placed on them.
    Everything,
    /// What the pod asks for, on each of them.
    Request,
    /// What was read of it before.
    Before,
    /// Nothing: what the pod asks for can't be read either.
    Nothing,
}

impl UnreadAssignment {
    /// What can't be read of the pod that is charged with this; `None`: all of it can.
    pub(super) fn of(charge: &Charge) -> Option<Self> {
        let why = charge.unread()?;
        let unread = || charge.allocations.iter().filter(|allocation| allocation.unread.is_some());
        let counted = if unread().any(|allocation| allocation.unknown == Some(UnknownCards::Everything)) {
            Counted::Everything
        } else if unread().any(|allocation| allocation.unknown.is_some()) {
            Counted::Request
        } else if charge.shares().next().is_some() {
            Counted::Before
        } else {
            Counted::Nothing
        };
        Some(Self { node: charge.node.clone(), why, counted })
    }

    pub(super) fn message(&self) -> Message {
        let Self { node, why, counted } = self;
        let counts = match counted {
            Counted::Everything => "places no further Pods on them until this is repaired or the Pod ends",
            Counted::Request => {
                "counts what the Pod asks for on each of them until this is repaired or the Pod ends"
            }
            Counted::Before => "goes by what it could read before",
            Counted::Nothing => "counts none of them, since what the Pod asks for can't be read either",
        };
        Message::with_own(
            format!("{why}: Berth can't read which GPUs of node {node} the Pod holds, and {counts}"),
            format!("{why}: Berth can't read which GPUs of its node the Pod holds, and {counts}"),
        )
    }
}
