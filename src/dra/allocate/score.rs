//! How good a solution is: little is left over of shared devices, and devices are close to each other.

use std::collections::BTreeSet;

use super::{CandidateDevice, attempt::AllocationAttempt};
use crate::{dra::device::PCIE_ROOT, object::Amount};

/// The less, the better. What comes first weighs more than all that follows.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct AllocationScore {
    /// Best fit: of each shared device that is used, the part of a capacity that stays free, in thousandths; of several capacities
    /// that of which the most stays free.
    left_over: u64,
    /// Over how many PCIe root complexes the devices are spread, of those that name one.
    roots: usize,
}

impl AllocationScore {
    pub(super) fn of(attempt: &AllocationAttempt<'_>, candidates: &[CandidateDevice<'_>]) -> Self {
        let chosen: BTreeSet<usize> =
            attempt.choices.iter().flatten().map(|choice| choice.candidate).collect();
        let shared = chosen.iter().filter(|at| candidates[**at].device.shareable);
        let roots = chosen.iter().filter_map(|at| candidates[*at].device.attribute(PCIE_ROOT));
        Self {
            left_over: shared.map(|at| left_over(attempt, &candidates[*at], *at)).sum(),
            roots: roots.collect::<BTreeSet<_>>().len(),
        }
    }

    /// Whether no solution can be better.
    pub(super) fn is_ideal(self) -> bool {
        self.left_over == 0 && self.roots <= 1
    }
}

fn left_over(attempt: &AllocationAttempt<'_>, candidate: &CandidateDevice<'_>, at: usize) -> u64 {
    let of = |(name, capacity): (&String, &crate::dra::capacity::Capacity)| {
        let free = capacity.value.amount.minus(candidate.consumed(name)).minus(attempt.shared(at, name));
        thousandths(free, capacity.value.amount)
    };
    candidate.device.capacity.iter().map(of).max().unwrap_or(0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the part is between 0 and 1000")]
fn thousandths(free: Amount, all: Amount) -> u64 {
    let part = free.approximate() / all.approximate() * 1000.0;
    if part.is_finite() { part.clamp(0.0, 1000.0) as u64 } else { 0 }
}
