//! Units: card memory in MiB, and percent of one card. A bare number of either exists nowhere else.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign},
};

/// Card memory, in MiB.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MiB(u64);

/// Percent of one card: of its compute, or of its memory. Compute may exceed 100 where a node plugin scales it.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Percent(u32);

impl MiB {
    /// More than any card has, and the most that a share can say: held where an amount can't be read.
    pub const UNREAD: Self = Self(i32::MAX.unsigned_abs() as u64);

    /// What this comes to on a card of that memory: all of it where an unreadable amount is among it.
    #[must_use]
    pub fn of_card(self, memory: Self) -> Self {
        if self < Self::UNREAD { self } else { memory }
    }

    /// This many MiB.
    pub const fn new(mib: u64) -> Self {
        Self(mib)
    }

    /// The number of MiB.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// That part of this memory, rounded down to whole MiB.
    #[must_use]
    pub fn part(self, percent: Percent) -> Self {
        let part = u128::from(self.0) * u128::from(percent.0) / 100;
        Self(u64::try_from(part).unwrap_or(u64::MAX))
    }

    /// What is left after `taken`; nothing where more was taken than there is.
    #[must_use]
    pub const fn left(self, taken: Self) -> Self {
        Self(self.0.saturating_sub(taken.0))
    }
}

impl Percent {
    /// More than any card has, and the most that a share can say: held where an amount can't be read.
    pub const UNREAD: Self = Self(i32::MAX.unsigned_abs());

    /// What this comes to on a card of that compute: all of it where an unreadable amount is among it.
    #[must_use]
    pub fn of_card(self, cores: Self) -> Self {
        if self < Self::UNREAD { self } else { cores }
    }

    /// One whole card.
    pub const WHOLE: Self = Self(100);
    /// No claim on compute.
    pub const NONE: Self = Self(0);

    /// This many percent of one card.
    pub const fn new(percent: u32) -> Self {
        Self(percent)
    }

    /// The number of percent.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// What is left after `taken`; nothing where more was taken than there is.
    #[must_use]
    pub const fn left(self, taken: Self) -> Self {
        Self(self.0.saturating_sub(taken.0))
    }
}

impl Add for MiB {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for MiB {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for MiB {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl Add for Percent {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Percent {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Percent {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for MiB {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} MiB", self.0)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} %", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_rounded_down_and_never_overflows() {
        assert_eq!(MiB::new(1001).part(Percent::new(50)), MiB::new(500));
        assert_eq!(MiB::new(u64::MAX).part(Percent::WHOLE), MiB::new(u64::MAX));
        assert_eq!(MiB::new(u64::MAX).part(Percent::new(200)), MiB::new(u64::MAX));
    }

    #[test]
    fn nothing_is_left_of_what_was_overdrawn() {
        assert_eq!(MiB::new(3).left(MiB::new(4)), MiB::new(0));
        assert_eq!(Percent::new(3).left(Percent::new(4)), Percent::NONE);
    }
}
