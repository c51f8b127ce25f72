//! What a search has found: the devices of each claim, and the alternatives for which they were chosen.

use super::{attempt::Choice, score::AllocationScore};

/// Devices for all claims.
#[derive(Clone, Debug)]
pub(super) struct Solution {
    /// By claim, in the order of their requests.
    pub(super) choices: Vec<Vec<Choice>>,
    /// By claim and request.
    pub(super) alternatives: Vec<Vec<usize>>,
    /// By which solutions are compared.
    pub(super) score: AllocationScore,
}
