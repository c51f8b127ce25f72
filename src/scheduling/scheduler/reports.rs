//! What people are told, and what leaves the scheduler.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{audit::Audits, conditions::Conditions};
use crate::{
    device::ProfileName,
    scheduling::{effect::Effect, finding::Findings, model::measure::Measure},
};

/// What people are told, and when it is told again.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Why pods wait.
    pub(super) conditions: Conditions,
    /// What is found wrong on nodes.
    pub(super) findings: Findings,
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
