//! The order of rows: by name, or by what is used.

use std::cmp::Ordering;

use clap::ValueEnum;

/// The order of rows.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum SortBy {
    /// The most memory in use first.
    Memory,
    /// The most compute in use first.
    Cores,
    /// By name.
    Name,
}

/// What can be sorted.
pub(super) trait Sortable {
    /// Its name.
    fn name(&self) -> (&str, &str);
    /// In MiB.
    fn memory_used(&self) -> u64;
    /// In percent of a card, or in a card's own units.
    fn cores_used(&self) -> f64;
}

impl SortBy {
    /// Sorts rows.
    pub(super) fn sort<T: Sortable>(self, rows: &mut [T]) {
        rows.sort_by(|one, other| self.compare(one, other));
    }

    fn compare<T: Sortable>(self, one: &T, other: &T) -> Ordering {
        let larger = match self {
            Self::Name => Ordering::Equal,
            Self::Memory => other.memory_used().cmp(&one.memory_used()),
            Self::Cores => other.cores_used().total_cmp(&one.cores_used()),
        };
        larger.then_with(|| one.name().cmp(&other.name()))
    }

    /// The next one, by which a key goes on.
    pub(super) fn next(self) -> Self {
        match self {
            Self::Name => Self::Memory,
            Self::Memory => Self::Cores,
            Self::Cores => Self::Name,
        }
    }

    /// As the screen calls it.
    pub(super) fn called(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Memory => "memory",
            Self::Cores => "compute",
        }
    }
}
