//! Hardware slices of a card: which there may be, and which one a share is.

use std::{fmt, sync::Arc};

use super::amount::{Cores, MiB};

/// Where on the card a slice lies.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SlicePlacement {
    /// Its first memory slice.
    pub start: u32,
    /// How many memory slices it takes.
    pub size: u32,
}

impl SlicePlacement {
    /// Whether both take the same memory slice.
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.start.saturating_add(other.size)
            && other.start < self.start.saturating_add(self.size)
    }
}

/// A size of slice, and the places on the card where it may lie.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SliceProfile {
    /// Its name, such as `1g.5gb`.
    pub name: Arc<str>,
    /// Its memory.
    pub memory: MiB,
    /// Its compute, in percent of the card.
    pub cores: Cores,
    /// How many compute slices it takes.
    pub slices: u32,
    /// Where it may lie.
    pub placements: Vec<SlicePlacement>,
}

/// Slices of one size within a geometry.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Instances {
    /// Their name, such as `1g.5gb`.
    pub name: Arc<str>,
    /// The memory of each.
    pub memory: MiB,
    /// How many there are.
    pub count: u32,
}

/// One way to cut up a whole card; slices are numbered through all its instances.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Geometry {
    /// Its name.
    pub group: Arc<str>,
    /// What the card is cut into, in order.
    pub instances: Vec<Instances>,
}

impl Geometry {
    /// Each slice by its number, with its memory.
    pub fn slices(&self) -> impl Iterator<Item = (u32, MiB)> {
        let each =
            self.instances.iter().flat_map(|kind| (0..kind.count).map(move |_| kind.memory)).enumerate();
        each.map_while(|(number, memory)| Some((u32::try_from(number).ok()?, memory)))
    }
}

/// How a card may be cut.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum Slicing {
    /// Not at all, or in a way that is not known.
    #[default]
    Unknown,
    /// Slices are placed one by one.
    Placements(Vec<SliceProfile>),
    /// The card is cut as a whole, in one of these ways.
    Geometries(Vec<Geometry>),
}

impl Slicing {
    /// The memory of this slice; `None`: the card can't be cut so.
    pub fn memory_of(&self, slice: &Slice) -> Option<MiB> {
        match (self, slice) {
            (Self::Placements(profiles), Slice::Placed { profile, .. }) => {
                profiles.iter().find(|known| known.name == *profile).map(|known| known.memory)
            }
            (Self::Geometries(geometries), Slice::Numbered { group, position }) => {
                let geometry = geometries.iter().find(|known| known.group == *group)?;
                geometry.slices().find(|(number, _)| number == position).map(|(_, memory)| memory)
            }
            _ => None,
        }
    }
}

/// The slice that a share is.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Slice {
    /// One that lies at a place.
    Placed {
        /// The name of its profile.
        profile: Arc<str>,
        /// Where it lies.
        placement: SlicePlacement,
    },
    /// One of a whole card's cut.
    Numbered {
        /// The name of the cut.
        group: Arc<str>,
        /// Its number.
        position: u32,
    },
}

impl fmt::Display for Slice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Placed { profile, placement } => {
                write!(formatter, "{profile}@{}:{}", placement.start, placement.size)
            }
            Self::Numbered { group, position } => write!(formatter, "{group}-{position}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_do_not_overlap() {
        let first = SlicePlacement { start: 0, size: 2 };
        assert!(!first.overlaps(SlicePlacement { start: 2, size: 2 }));
        assert!(first.overlaps(SlicePlacement { start: 1, size: 4 }));
        assert!(!SlicePlacement { start: 3, size: 1 }.overlaps(first));
    }

    #[test]
    fn slices_are_numbered_through_all_kinds() {
        let kind = |memory, count| Instances { name: "k".into(), memory: MiB::new(memory), count };
        let geometry = Geometry { group: "g".into(), instances: vec![kind(10, 2), kind(5, 1)] };
        let slices: Vec<_> = geometry.slices().map(|(number, memory)| (number, memory.get())).collect();
        assert_eq!(slices, [(0, 10), (1, 10), (2, 5)]);
    }
}
