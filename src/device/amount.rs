//! Units: card memory in MiB, compute in what its profile counts it in, and parts of one card in percent. A bare number of these exists
//! nowhere else.
//!
//! Of memory and compute that pods hold, an amount may be unreadable. It is held as a number that no card has, so that sums, comparisons and
//! codecs need no second case, and only this file knows that number: [`MiB::known`] and [`Cores::known`] return `None` for it.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign},
};

/// Card memory, in MiB.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct MiB(u64);

/// An amount of compute, in the unit of the cards' profile ([`CoreUnit`]).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Cores(u32);

/// What a card's compute is counted in.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CoreUnit {
    /// Percent of one card; there may be more than 100 where a node plugin scales it.
    #[default]
    Percent,
    /// The card's own compute units, of which each model has another number.
    Units,
}

/// A part of one card's memory or compute, in percent.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Percent(u32);

/// What messages say of an amount that can't be read.
const UNREADABLE: &str = "an unreadable amount";

impl MiB {
    /// How many bytes one has.
    pub const BYTES: u64 = 1 << 20;

    /// An amount that can't be read: more than any card has, and the most that an assignment can state.
    pub const UNREAD: Self = Self(i32::MAX.unsigned_abs() as u64);

    /// The amount; `None` where an unreadable amount is among it.
    pub fn known(self) -> Option<Self> {
        (self < Self::UNREAD).then_some(self)
    }

    /// What this comes to on a card of that memory: all of it where an unreadable amount is among it.
    #[must_use]
    pub fn of_card(self, memory: Self) -> Self {
        self.known().unwrap_or(memory)
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

impl Cores {
    /// An amount that can't be read: more than any card has, and the most that an assignment can state.
    pub const UNREAD: Self = Self(i32::MAX.unsigned_abs());
    /// One whole card, where compute is counted in percent.
    pub const WHOLE: Self = Self(100);
    /// No claim on compute.
    pub const NONE: Self = Self(0);

    /// The amount; `None` where an unreadable amount is among it.
    pub fn known(self) -> Option<Self> {
        (self < Self::UNREAD).then_some(self)
    }

    /// What this comes to on a card of that compute: all of it where an unreadable amount is among it.
    #[must_use]
    pub fn of_card(self, cores: Self) -> Self {
        self.known().unwrap_or(cores)
    }

    /// This many percent or units.
    pub const fn new(cores: u32) -> Self {
        Self(cores)
    }

    /// The number of percent or units.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// That part of this compute, rounded down.
    #[must_use]
    pub fn part(self, percent: Percent) -> Self {
        let part = u64::from(self.0) * u64::from(percent.0) / 100;
        Self(u32::try_from(part).unwrap_or(u32::MAX))
    }

    /// The part of `whole` that this is, rounded down to whole percent; 0 of nothing.
    pub fn percent_of(self, whole: Self) -> Percent {
        let percent = (u64::from(self.0) * 100).checked_div(whole.0.into()).unwrap_or(0);
        Percent(u32::try_from(percent).unwrap_or(u32::MAX))
    }

    /// What is left after `taken`; nothing where more was taken than there is.
    #[must_use]
    pub const fn left(self, taken: Self) -> Self {
        Self(self.0.saturating_sub(taken.0))
    }
}

impl CoreUnit {
    /// Many of it: `percent of compute`, `compute units`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Percent => "percent of compute",
            Self::Units => "compute units",
        }
    }

    /// The amount with its unit: `30 %`, `96 compute units`.
    pub fn words(self, cores: Cores) -> String {
        match (cores.known(), self) {
            (None, _) => UNREADABLE.to_owned(),
            (Some(cores), Self::Percent) => format!("{} %", cores.0),
            (Some(Cores(1)), Self::Units) => "1 compute unit".to_owned(),
            (Some(cores), Self::Units) => format!("{} {}", cores.0, self.name()),
        }
    }

    /// What is used of what there is: `120 of 100 percent of compute`.
    pub fn words_of(self, used: Cores, whole: Cores) -> String {
        let used = used.known().map_or_else(|| UNREADABLE.to_owned(), |used| used.0.to_string());
        format!("{used} of {} {}", whole.0, self.name())
    }
}

impl Percent {
    /// One whole card.
    pub const WHOLE: Self = Self(100);
    /// Nothing of a card.
    pub const NONE: Self = Self(0);

    /// This many percent of one card.
    pub const fn new(percent: u32) -> Self {
        Self(percent)
    }

    /// The number of percent.
    pub const fn get(self) -> u32 {
        self.0
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

impl Add for Cores {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cores {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Cores {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

impl fmt::Display for MiB {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(known) => write!(formatter, "{} MiB", known.0),
            None => formatter.write_str(UNREADABLE),
        }
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
        assert_eq!(Cores::new(3).left(Cores::new(4)), Cores::NONE);
    }

    #[test]
    fn an_amount_is_written_with_its_unit_and_an_unreadable_one_without_a_number() {
        let words = |cores| [CoreUnit::Percent, CoreUnit::Units].map(|unit| unit.words(Cores::new(cores)));
        assert_eq!(words(96), ["96 %", "96 compute units"]);
        assert_eq!(words(1)[1], "1 compute unit");
        let unread = Cores::UNREAD + Cores::new(30);
        assert_eq!(CoreUnit::Units.words(unread), UNREADABLE);
        assert_eq!(
            CoreUnit::Percent.words_of(unread, Cores::WHOLE),
            "an unreadable amount of 100 percent of compute"
        );
        assert_eq!((MiB::UNREAD + MiB::new(1)).to_string(), UNREADABLE);
        assert_eq!(MiB::new(1).to_string(), "1 MiB");
    }
}
