//! What a namespace may take of cards: which amounts a quota can bound, in which unit, and whether an amount stays within what is left.
//!
//! It must not know where the bound was set and which pod holds what.

use super::{
    amount::{Cores, MiB},
    usage::CardUsage,
};

/// An amount that a quota can bound.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Dimension {
    /// Shares, each of one card.
    Cards,
    /// Memory of all cards together.
    Memory,
    /// Compute of all cards together, in the unit of their profile.
    Cores,
}

impl Dimension {
    /// How much of it: shares, MiB, or compute in the unit of the cards' profile.
    pub fn of(self, usage: CardUsage) -> u64 {
        match self {
            Self::Cards => usage.slots.into(),
            Self::Memory => usage.memory.get(),
            Self::Cores => usage.cores.get().into(),
        }
    }
}

/// A resource that counts such an amount.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CountedAmount<'a> {
    /// Its name.
    pub resource: &'a str,
    /// What it counts.
    pub dimension: Dimension,
    /// How many MiB one unit of it is; 1 for what is no memory.
    pub unit: u32,
}

/// What the pod's namespace may still take of cards; none: as much as there is.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Quota {
    /// Shares, each of one card.
    pub cards: Option<u32>,
    /// Memory of all cards together.
    pub memory: Option<MiB>,
    /// Compute of all cards together.
    pub cores: Option<Cores>,
}

impl Quota {
    /// Whether so much may still be taken.
    pub fn admits(&self, total: CardUsage) -> bool {
        self.cards.is_none_or(|left| total.slots <= left)
            && self.memory.is_none_or(|left| total.memory <= left)
            && self.cores.is_none_or(|left| total.cores <= left)
    }

    /// With this bound too; amounts beyond what can be counted bound nothing.
    #[must_use]
    pub fn bounded(mut self, dimension: Dimension, left: u64) -> Self {
        let narrow = |left: u64| u32::try_from(left).unwrap_or(u32::MAX);
        match dimension {
            Dimension::Cards => self.cards = Some(least(self.cards, narrow(left))),
            Dimension::Memory => self.memory = Some(least(self.memory, MiB::new(left))),
            Dimension::Cores => self.cores = Some(least(self.cores, Cores::new(narrow(left)))),
        }
        self
    }
}

fn least<T: Ord>(known: Option<T>, other: T) -> T {
    match known {
        Some(known) => known.min(other),
        None => other,
    }
}
