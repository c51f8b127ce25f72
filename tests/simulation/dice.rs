//! Chance that can be repeated: a seeded sequence (SplitMix64).

use std::time::Duration;

/// A seeded sequence.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True in so many of a thousand cases.
    pub(crate) fn in_thousand(&mut self, cases: u64) -> bool {
        self.below(1000) < cases
    }

    /// A time of up to so many milliseconds.
    pub(crate) fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most + 1))
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        let at = usize::try_from(self.below(of.len() as u64)).unwrap();
        of[at]
    }

    /// One of these, each as often as its weight says.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[(T, u64)]) -> T {
        let mut at = self.below(of.iter().map(|(_, weight)| weight).sum());
        for (choice, weight) in of {
            match at.checked_sub(*weight) {
                None => return *choice,
                Some(rest) => at = rest,
            }
        }
        unreachable!("what is below the sum of all weights is below one of them")
    }
}
