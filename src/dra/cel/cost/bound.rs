//! How large a value can be.

use std::sync::Arc;

use crate::dra::cel::view::{LONGEST_TEXT, MOST_NAMES, MOST_VALUES};

/// How many characters a number has at most as a text.
const LONGEST_NUMBER: u64 = 400;

/// How many characters `format` writes of a number at most: 309 digits in groups of three, a point, and as many digits as a precision may ask for.
const LONGEST_FORMATTED: u64 = 700;

/// How many reasons a format has at most why a text is not of it.
const MOST_REASONS: u64 = 4;

/// How many characters a reason has at most, but for the text that it quotes.
const LONGEST_REASON: u64 = 500;

/// How many characters of a text cost as much as a step (cel-go `common/costs.go`, `StringTraversalCostFactor`).
pub(super) const CHARACTERS: u64 = 10;

/// The largest that a value can be.
#[derive(Clone, Debug)]
pub(super) struct CostBound {
    /// What it costs to read or to copy all of it: 1 for each value in it, and 1 for every [`CHARACTERS`] of its texts.
    pub(super) size: u64,
    /// How many elements a list or a map has, or characters a text.
    pub(super) length: u64,
    /// The largest of its elements, keys and values; `None`: no larger than the whole.
    part: Option<Arc<CostBound>>,
}

fn counted(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

impl CostBound {
    /// A value without parts.
    pub(super) fn single() -> Self {
        Self { size: 1, length: 0, part: None }
    }

    /// A text of so many characters.
    pub(super) fn text(length: u64) -> Self {
        Self { size: (length / CHARACTERS).saturating_add(1), length, part: None }
    }

    /// A text that a number has.
    pub(super) fn number() -> Self {
        Self::text(LONGEST_NUMBER)
    }

    /// A list of so many parts of a text that has so many characters.
    pub(super) fn parts(count: u64, characters: u64) -> Self {
        let size = count.saturating_add(characters / CHARACTERS).saturating_add(1);
        Self { size, length: count, part: Some(Arc::new(Self::text(characters))) }
    }

    /// A list of these elements.
    pub(super) fn list(elements: Vec<Self>) -> Self {
        let length = counted(elements.len());
        let size = elements.iter().fold(1, |size: u64, element| size.saturating_add(element.size));
        let part = elements.into_iter().reduce(|one, other| one.or(&other)).unwrap_or_else(Self::single);
        Self { size, length, part: Some(Arc::new(part)) }
    }

    /// So many elements of which none is larger than this.
    pub(super) fn of(element: Self, length: u64) -> Self {
        let size = element.size.saturating_mul(length).saturating_add(1);
        Self { size, length, part: Some(Arc::new(element)) }
    }

    /// An element, a key or a value.
    pub(super) fn part(&self) -> Self {
        match &self.part {
            Some(part) => Self::clone(part),
            None => self.clone(),
        }
    }

    /// The elements of lists that are elements of this one, beside its elements that are no lists.
    pub(super) fn flattened(&self) -> Self {
        let element = self.part();
        let length = self.length.saturating_mul(element.length.max(1)).min(self.size);
        Self { size: self.size, length, part: Some(Arc::new(element.or(&element.part()))) }
    }

    /// A list of pairs: the index and the element of each element, or the key and the value of each entry.
    pub(super) fn pairs(&self) -> Self {
        let part = self.part();
        let pair = Self {
            size: part.size.saturating_mul(2).saturating_add(1),
            length: 2,
            part: Some(Arc::new(part)),
        };
        // Of a list, the second is an index; of a map, keys and values are counted as one.
        let size = self.size.saturating_add(self.length.saturating_mul(2));
        Self { size, length: self.length, part: Some(Arc::new(pair)) }
    }

    /// The values in this one that are no lists, or of which one is known only that it is part of an element.
    pub(super) fn flattened_deep(&self) -> Self {
        let size = self.part().size;
        // It can be a text.
        let element = Self { size, length: size.saturating_mul(CHARACTERS), part: None };
        Self { size: self.size, length: self.size, part: Some(Arc::new(element)) }
    }

    /// Whichever of both is larger, in each respect.
    pub(super) fn or(&self, other: &Self) -> Self {
        let part = match (&self.part, &other.part) {
            (None, None) => None,
            _ => Some(Arc::new(self.part().or(&other.part()))),
        };
        Self { size: self.size.max(other.size), length: self.length.max(other.length), part }
    }

    /// Both, one behind the other.
    pub(super) fn and(&self, other: &Self) -> Self {
        let (size, length) = (self.size.saturating_add(other.size), self.length.saturating_add(other.length));
        Self { size, length, ..self.or(other) }
    }

    /// What `format` writes of this list by a text of so many characters. A number has at most [`LONGEST_FORMATTED`] characters, and a character of a
    /// text in a list is written as at most four; it takes less time than reading as many characters one by one.
    pub(super) fn formatted(&self, text: &Self) -> Self {
        let size = self.size.saturating_mul(4).saturating_add(self.length.saturating_mul(16));
        let length = self.size.saturating_mul(LONGEST_FORMATTED).saturating_add(text.length);
        Self { size: size.saturating_add(text.size), length, part: None }
    }

    /// Why a text of so many characters is not of a format: at most [`MOST_REASONS`], which are of fixed texts but for one that quotes it.
    pub(super) fn reasons(&self) -> Self {
        let length = self.length.saturating_mul(4).saturating_add(LONGEST_REASON);
        let reason = Self { size: self.size.saturating_add(4), length, part: None };
        Self {
            size: reason.size.saturating_add(MOST_REASONS),
            length: MOST_REASONS,
            part: Some(Arc::new(reason)),
        }
    }

    /// The name of a domain, an attribute or a capacity.
    pub(super) fn name() -> Self {
        Self::text(counted(LONGEST_TEXT))
    }

    /// The variable `device`.
    pub(super) fn device() -> Self {
        let size = Self::domains().size.saturating_mul(2);
        Self { size, length: counted(LONGEST_TEXT), part: Some(Arc::new(Self::domains())) }
    }

    /// A field of the device.
    pub(super) fn of_field(field: &str) -> Self {
        match field {
            "driver" => Self::name(),
            "allowMultipleAllocations" => Self::single(),
            _ => Self::domains(),
        }
    }

    /// The attributes or the capacities by domain. No key of either map is larger than the values, so a loop over keys costs no more than is
    /// estimated.
    fn domains() -> Self {
        let text = Self::name().size;
        let size = (counted(MOST_VALUES) + 2 * counted(MOST_NAMES)) * (text + 1);
        let value = Self::of(Self::name(), counted(MOST_VALUES)).or(&Self::name());
        let names = Self { size, length: counted(MOST_NAMES), part: Some(Arc::new(value)) };
        Self { size, length: counted(MOST_NAMES), part: Some(Arc::new(names)) }
    }
}
