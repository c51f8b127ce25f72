//! How one family of cards is shared, as plain data for the one allocator.

use std::{fmt, sync::Arc};

use super::amount::{CoreUnit, Cores};

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

/// How much compute a card has to give, and what it is counted in.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum CoreBudget {
    /// The percent that its plugin registered.
    Registered,
    /// So many percent, whatever was registered.
    Fixed(Cores),
    /// The compute units that its plugin registered; shares are asked for in percent of them and given in units.
    Units,
}

impl CoreBudget {
    /// What a card has to give of which its plugin registered so much.
    pub fn of(self, registered: Cores) -> Cores {
        match self {
            Self::Registered | Self::Units => registered,
            Self::Fixed(budget) => budget,
        }
    }

    /// What compute is counted in.
    pub fn unit(self) -> CoreUnit {
        match self {
            Self::Registered | Self::Fixed(_) => CoreUnit::Percent,
            Self::Units => CoreUnit::Units,
        }
    }

    /// Whether so much is all compute of a card that has `budget` to give: in percent at least one whole card, whatever it is scaled to.
    pub fn is_whole(self, cores: Cores, budget: Cores) -> bool {
        let least = match self.unit() {
            CoreUnit::Percent => Cores::WHOLE,
            CoreUnit::Units => Cores::new(1),
        };
        cores >= least && cores >= budget
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
    fn all_units_of_a_small_card_are_a_whole_card() {
        let is_whole =
            |budget: CoreBudget, cores, whole| budget.is_whole(Cores::new(cores), Cores::new(whole));
        assert!(is_whole(CoreBudget::Units, 96, 96) && !is_whole(CoreBudget::Units, 100, 304));
        assert!(!is_whole(CoreBudget::Units, 0, 0));
        assert!(is_whole(CoreBudget::Registered, 100, 100) && !is_whole(CoreBudget::Registered, 100, 200));
        assert!(!is_whole(CoreBudget::Registered, 50, 50));
    }
}
