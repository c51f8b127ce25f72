//! Whether a node has cards for a pod: its device plugin answers, what it registered can be read, and the cards have room.

use crate::{
    device::{Assignment, Quota},
    scheduling::{
        allocate::allocate,
        filter::Scene,
        reason::{NodeReasons, Reason},
        snapshot::Agent,
    },
};

/// Fails on a node whose device plugin owes an answer for too long: it would mix up two pods.
pub(super) fn test_agent(scene: &Scene<'_>) -> Result<(), NodeReasons> {
    match scene.node.agent {
        Agent::Silent => Err(vec![Reason::SilentAgent]),
        Agent::Answering => Ok(()),
    }
}

/// The shares that the node would give each container within the namespace's quota.
pub(in crate::scheduling) fn shares(scene: &Scene<'_>, quota: Quota) -> Result<Assignment, NodeReasons> {
    let (ask, node) = (scene.ask, scene.node);
    let offer = node.info.offer(&ask.profile.name).ok_or_else(|| vec![Reason::NoDevices])?;
    if node.expired.contains(&ask.profile.name) {
        return Err(vec![Reason::ExpiredRegistration]);
    }
    let inventory = offer.inventory.as_ref().ok_or_else(|| vec![Reason::UnreadableDevices])?;
    if inventory.cards().is_empty() {
        return Err(vec![Reason::NoDevices]);
    }
    if node.usage.unread().iter().any(|other| node.info.may_be_cards_of(inventory.cards(), other)) {
        return Err(vec![Reason::UnreadableAssignment]);
    }
    allocate(&ask.request, inventory, &node.usage, &ask.profile, quota)
}
