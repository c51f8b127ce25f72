//! What an attempt is about to do that may take long: the caller may end the attempt before it.

use std::ops::ControlFlow;

use crate::dra::AllocationError;

/// The search asks once before so many steps.
pub(super) const STEPS_AT_ONCE: u64 = 64;

/// What an attempt is about to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Toll {
    /// Evaluate a selector, of which one evaluation may cost so much, as it was estimated.
    Evaluation {
        /// In the unit of [`crate::dra::cel::COST_LIMIT`].
        cost: u64,
    },
    /// Try so many devices.
    Search {
        /// How many.
        steps: u64,
    },
}

/// Asked before what may take long; after `Break` the attempt ends with [`AllocationError::Interrupted`].
pub type GoOn<'a> = &'a mut dyn FnMut(Toll) -> ControlFlow<()>;

/// Asks before an evaluation.
pub(super) fn before_evaluation(go_on: GoOn<'_>, cost: u64) -> Result<(), AllocationError> {
    match go_on(Toll::Evaluation { cost }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(AllocationError::Interrupted),
    }
}
