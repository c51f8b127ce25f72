//! What leaves the scheduler.

use crate::scheduling::{effect::Effect, model::measure::Measure, world::ledger::EndedCharges};

/// What the adapters take from the scheduler.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Outbox {
    /// What is to be done.
    pub(in crate::scheduling::scheduler) effects: Vec<Effect>,
    /// What was measured.
    pub(in crate::scheduling::scheduler) measures: Vec<Measure>,
    /// What pods held that have ended, or hold something else now.
    pub(in crate::scheduling::scheduler) ended: EndedCharges,
}
