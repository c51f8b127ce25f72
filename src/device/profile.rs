//! How one family of cards is shared, as plain data for the one allocator.

use std::{fmt, sync::Arc};

use super::amount::Percent;

/// The name of a profile and of the dialect that it belongs to, as logs, metrics and messages say it.
///
/// Settings may bring such names; a clone is the same text.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ProfileName(Arc<str>);

impl ProfileName {
    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ProfileName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What makes one card fuller than another.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Blend {
    /// Slots, compute and memory, each as a part of the card, in equal weights.
    Even,
    /// Memory when packing, containers when spreading.
    MemoryThenSlots,
}

/// Which of two equally full cards is taken.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Tie {
    /// The one on the higher NUMA node, then of the higher number.
    Highest,
    /// The one of the lower number.
    Lowest,
}

/// How much compute a card has to give.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CoreBudget {
    /// What its plugin registered.
    Registered,
    /// This much, whatever was registered.
    Fixed(Percent),
    /// What its plugin registered, in compute units; a share asks for a part of them.
    Parts,
}

impl CoreBudget {
    /// What a card has to give of which its plugin registered so much.
    pub fn of(self, registered: Percent) -> Percent {
        match self {
            Self::Registered | Self::Parts => registered,
            Self::Fixed(budget) => budget,
        }
    }

    /// What a share that asks for so much takes of such a card; of compute units at least one.
    pub fn share(self, asked: Percent, registered: Percent) -> Percent {
        match self {
            Self::Parts if asked > Percent::NONE => {
                let units = u64::from(registered.get()) * u64::from(asked.get()) / 100;
                Percent::new(u32::try_from(units.max(1)).unwrap_or(u32::MAX))
            }
            Self::Registered | Self::Fixed(_) | Self::Parts => asked,
        }
    }
}

/// How many hardware slices of one card a pod may be given.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SlicesOfCard {
    /// As many as there are.
    Several,
    /// One.
    One,
}

/// How one family of cards is shared.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: ProfileName,
    /// What makes one card fuller than another.
    pub blend: Blend,
    /// Which of two equals is taken.
    pub tie: Tie,
    /// How much compute a card has to give.
    pub core_budget: CoreBudget,
    /// How many hardware slices of one card a pod may be given.
    pub slices: SlicesOfCard,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_cards_compute_units_is_at_least_one() {
        let share =
            |asked, registered| CoreBudget::Parts.share(Percent::new(asked), Percent::new(registered)).get();
        assert_eq!([share(100, 304), share(50, 304), share(1, 40), share(0, 304)], [304, 152, 1, 0]);
        assert_eq!(CoreBudget::Registered.share(Percent::new(30), Percent::new(304)).get(), 30);
    }
}
