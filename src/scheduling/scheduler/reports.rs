//! What people are told beside the reason why a pod waits, and what leaves the scheduler.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{audit::Audits, said::Said};
use crate::{
    device::{CardId, ProfileName},
    scheduling::{
        effect::Effect,
        model::{measure::Measure, message::Details, name::Uid},
    },
};

/// What people are told, and when it is told again.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// How much of a message stands where the users of a namespace read it.
    pub(super) details: Details,
    /// Cards of which more is held than there is, in words.
    pub(super) excess: Said<CardId>,
    /// Pods of which some cards are unknown, and why.
    pub(super) unread: Said<Uid>,
    /// Pods that ask for shares and carry no assignment, and the message of their Event.
    pub(super) unassigned: Said<Uid>,
    /// Conditions that could not be written, and when they are tried again.
    pub(super) retells: BTreeSet<(Timestamp, Uid)>,
    /// Plugins whose devices on a node have changed by an object of their own.
    pub(super) changed_devices: BTreeSet<ProfileName>,
    /// What the last comparison has left to be decided on trial.
    pub(super) audits: Audits,
    /// When the ledger and the pods are compared next.
    pub(super) next_audit: Option<Timestamp>,
}

/// What the adapters take from the scheduler.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// What is to be done.
    pub(super) effects: Vec<Effect>,
    /// What was measured.
    pub(super) measures: Vec<Measure>,
}
