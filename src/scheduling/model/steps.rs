//! What decisions cost, in counted steps: the scheduler knows no clock, so a limit on its work is a limit on steps.
//!
//! A step is about what looking at one remembered verdict takes: 15 ns on a core of 3 GHz (`benches/decide`, a known class at 10,000
//! nodes). The other costs are multiples of it, measured by the same bench. They decide only when work goes on, never what is decided.

use std::ops::ControlFlow;

use crate::dra::Toll;

/// So many steps take about a millisecond.
pub const PER_MILLISECOND: u64 = 66_000;

/// Looking at a node whose verdict is remembered.
pub const LOOK: u64 = 1;

/// Testing a node by the plugins that look at more than one.
pub const TEST: u64 = 16;

/// Finding out how high a node may score for a class, without judging it.
pub const ESTIMATE: u64 = 8;

/// Judging a node anew for a class, beside what the class demands of it.
pub const JUDGE: u64 = 64;

/// Comparing one requirement of a pod with a node, or one selector with a pod.
pub const COMPARE: u64 = 2;

/// Adding up anew what a node's pods hold, for each of them.
pub const FOLD: u64 = 8;

/// Adding up anew what the claims of a pool hold, for each of them, as often as a pod is taken off and put back in a search for victims.
pub const FOLD_CLAIM: u64 = 80;

/// Adding a pod of a group to those that go.
pub const LIST_VICTIM: u64 = 6;

/// Taking a pod off its node on trial, and putting it back.
pub const TRY_POD: u64 = 1_300;

/// Trying one device for a claim.
pub const TRY_DEVICE: u64 = 160;

/// Describing one device of a node.
pub const DESCRIBE_DEVICE: u64 = 64;

/// Evaluating a selector, beside what the evaluation itself costs.
pub const EVALUATE: u64 = 64;

/// Each unit of what an evaluation costs, as it was estimated.
pub const EVALUATED: u64 = 3;

/// How many steps an attempt to find devices is about to take.
pub fn of_toll(toll: Toll) -> u64 {
    match toll {
        Toll::Evaluation { cost } => cost.saturating_mul(EVALUATED).saturating_add(EVALUATE),
        Toll::Search { steps } => steps.saturating_mul(TRY_DEVICE),
    }
}

/// Steps that may still be taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Allowance {
    left: u64,
}

impl Allowance {
    /// As many as it takes.
    pub const UNLIMITED: Self = Self { left: u64::MAX };

    /// So many.
    pub const fn of(steps: u64) -> Self {
        Self { left: steps }
    }

    /// Takes the steps of an attempt to find devices, unless there are too few.
    pub fn take(&mut self, toll: Toll) -> ControlFlow<()> {
        self.pay(of_toll(toll))
    }

    /// Takes so many steps, unless there are too few.
    pub fn pay(&mut self, steps: u64) -> ControlFlow<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }

    /// As many, but no more than the other.
    #[must_use]
    pub fn at_most(self, other: Self) -> Self {
        Self { left: self.left.min(other.left) }
    }

    /// So many fewer; none where there are not so many.
    #[must_use]
    pub fn less(self, steps: u64) -> Self {
        Self { left: self.left.saturating_sub(steps) }
    }

    /// How many are left.
    pub fn left(self) -> u64 {
        self.left
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self::UNLIMITED
    }
}

/// Counts steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Steps(u64);

impl Steps {
    /// Counts `count` times this cost.
    pub fn add(&mut self, cost: u64, count: usize) {
        self.0 = self.0.saturating_add(cost.saturating_mul(u64::try_from(count).unwrap_or(u64::MAX)));
    }

    /// How many there were.
    pub fn count(self) -> u64 {
        self.0
    }
}
