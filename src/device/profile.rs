//! How one family of cards is shared, as plain data for the one allocator.

use std::fmt;

use super::amount::Percent;

/// The name of a profile and of the dialect that it belongs to, as logs, metrics and messages say it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ProfileName(pub &'static str);

impl fmt::Display for ProfileName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
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
}

/// How one family of cards is shared.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Profile {
    /// Its name.
    pub name: ProfileName,
    /// What makes one card fuller than another.
    pub blend: Blend,
    /// Which of two equals is taken.
    pub tie: Tie,
    /// How much compute a card has to give.
    pub core_budget: CoreBudget,
}
