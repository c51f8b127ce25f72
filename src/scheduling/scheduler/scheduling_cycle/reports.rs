//! What people are told beside the reason why a pod waits, and what leaves the scheduler.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::scheduling::{
    effect::Effect,
    model::{measure::Measure, message::Details, name::Uid},
};

/// What people are told, and when it is told again.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Reports {
    /// How much of a message stands where the users of a namespace read it.
    pub(in crate::scheduling::scheduler) details: Details,
    /// Conditions that could not be written, and when they are tried again.
    pub(in crate::scheduling::scheduler) retells: BTreeSet<(Timestamp, Uid)>,
}

/// What the adapters take from the scheduler.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Outbox {
    /// What is to be done.
    pub(in crate::scheduling::scheduler) effects: Vec<Effect>,
    /// What was measured.
    pub(in crate::scheduling::scheduler) measures: Vec<Measure>,
}
