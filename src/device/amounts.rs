//! Amounts in dimensions that are named by whoever publishes a device: percent, bytes or a count, each by its name.
//!
//! Which names there are is no business of this file: a dialect reads names and units.

use std::{borrow::Cow, fmt};

use smallvec::SmallVec;

/// What one of a named dimension is.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Unit {
    /// Percent of one device.
    Percent,
    /// Bytes.
    Bytes,
    /// Things that are counted.
    Count,
}

/// A named dimension and its unit: amounts of two dimensions are never compared with each other.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct NamedDimension {
    name: Cow<'static, str>,
    unit: Unit,
}

impl NamedDimension {
    /// The dimension of this name.
    pub fn new(name: &str, unit: Unit) -> Self {
        Self { name: Cow::Owned(name.to_owned()), unit }
    }

    /// As [`new`](Self::new), for a name in the program, of which copies cost nothing.
    pub const fn known(name: &'static str, unit: Unit) -> Self {
        Self { name: Cow::Borrowed(name), unit }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its unit.
    pub const fn unit(&self) -> Unit {
        self.unit
    }
}

impl fmt::Display for NamedDimension {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// How much in each dimension. A dimension that is absent is not published, which is not the same as 0.
#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Amounts(
    /// By dimension. There are so few that they are looked through.
    SmallVec<[(NamedDimension, u64); 3]>,
);

impl Amounts {
    /// How much there is in a dimension; `None`: the dimension is absent.
    pub fn get(&self, dimension: &NamedDimension) -> Option<u64> {
        self.0.iter().find(|(own, _)| own == dimension).map(|(_, amount)| *amount)
    }

    /// Sets the amount of one dimension.
    pub fn set(&mut self, dimension: NamedDimension, amount: u64) {
        match self.place(&dimension) {
            Ok(at) => self.0[at].1 = amount,
            Err(at) => self.0.insert(at, (dimension, amount)),
        }
    }

    /// Where a dimension stands; an error is where it would.
    fn place(&self, dimension: &NamedDimension) -> Result<usize, usize> {
        self.0.binary_search_by(|(own, _)| own.cmp(dimension))
    }

    /// Each dimension and its amount, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&NamedDimension, u64)> {
        self.0.iter().map(|(dimension, amount)| (dimension, *amount))
    }

    /// Whether every amount is 0, as it is where there is none.
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|(_, amount)| *amount == 0)
    }

    /// Whether these fit into what is free, by the dimensions that both have, at least one: a device need not publish every dimension.
    /// Source: koordinator `quotav1.LessThanOrEqual`.
    pub fn fit(&self, free: &Self) -> bool {
        let mut known = self.iter().filter_map(|(dimension, amount)| Some((amount, free.get(dimension)?)));
        let mut any = false;
        let all = known.all(|(amount, free)| {
            any = true;
            amount <= free
        });
        any && all
    }

    /// What is left of these once `used` is taken, by the dimensions of these; nothing where more is used than there is.
    #[must_use]
    pub fn left(&self, used: &Self) -> Self {
        let mut left = self.clone();
        for (dimension, amount) in &mut left.0 {
            *amount = amount.saturating_sub(used.get(dimension).unwrap_or(0));
        }
        left
    }

    /// These, and at most so much in each dimension that is bounded.
    #[must_use]
    pub fn at_most(&self, bound: &Self) -> Self {
        let mut least = self.clone();
        for (dimension, amount) in &mut least.0 {
            *amount = bound.get(dimension).map_or(*amount, |bound| bound.min(*amount));
        }
        least
    }

    /// Adds other amounts to these.
    pub fn add(&mut self, other: &Self) {
        for (dimension, amount) in other.iter() {
            match self.place(dimension) {
                Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(amount),
                Err(at) => self.0.insert(at, (dimension.clone(), amount)),
            }
        }
    }
}

impl FromIterator<(NamedDimension, u64)> for Amounts {
    fn from_iter<I: IntoIterator<Item = (NamedDimension, u64)>>(amounts: I) -> Self {
        let mut all = Self::default();
        amounts.into_iter().for_each(|(dimension, amount)| all.set(dimension, amount));
        all
    }
}

/// Two dimensions of one thing, as an amount and in percent of a device's whole: what is given in one of them is known in the other.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Proportion {
    /// The amount.
    pub amount: NamedDimension,
    /// The percentage.
    pub percent: NamedDimension,
}

impl Proportion {
    /// Adds the dimension that is missing, rounded down, from what the whole device has; where both or neither are there, nothing changes.
    pub fn complete(&self, amounts: &mut Amounts, whole: &Amounts) {
        let Some(whole) = whole.get(&self.amount).filter(|whole| *whole > 0) else { return };
        match (amounts.get(&self.amount), amounts.get(&self.percent)) {
            (Some(amount), None) => amounts.set(self.percent.clone(), scaled(amount, 100, whole)),
            (None, Some(percent)) => amounts.set(self.amount.clone(), scaled(percent, whole, 100)),
            _ => {}
        }
    }
}

/// `amount` × `by` ÷ `of`, rounded down.
fn scaled(amount: u64, by: u64, of: u64) -> u64 {
    u64::try_from(u128::from(amount) * u128::from(by) / u128::from(of)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(name: &str) -> NamedDimension {
        NamedDimension::new(name, Unit::Count)
    }

    fn amounts(of: &[(&str, u64)]) -> Amounts {
        of.iter().map(|(name, amount)| (dimension(name), *amount)).collect()
    }

    #[test]
    fn what_a_device_does_not_publish_is_not_compared_but_something_must_be() {
        let free = amounts(&[("core", 50)]);
        assert!(amounts(&[("core", 50), ("other", 9)]).fit(&free));
        assert!(!amounts(&[("core", 51), ("other", 0)]).fit(&free));
        assert!(!amounts(&[("other", 1)]).fit(&free));
        assert!(!amounts(&[]).fit(&free));
    }

    #[test]
    fn nothing_is_left_of_what_was_overdrawn() {
        let left = amounts(&[("core", 50), ("memory", 8)]).left(&amounts(&[("core", 60), ("x", 1)]));
        assert_eq!(left, amounts(&[("core", 0), ("memory", 8)]));
        assert!(!left.is_zero());
    }

    #[test]
    fn an_amount_is_known_in_percent_and_back_without_overflow() {
        let proportion = Proportion { amount: dimension("bytes"), percent: dimension("percent") };
        let whole = amounts(&[("bytes", 24 << 30)]);
        let complete = |given: &[(&str, u64)]| {
            let mut given = amounts(given);
            proportion.complete(&mut given, &whole);
            given
        };
        assert_eq!(complete(&[("bytes", 3 << 30)]), amounts(&[("bytes", 3 << 30), ("percent", 12)]));
        assert_eq!(complete(&[("percent", 50)]), amounts(&[("bytes", 12 << 30), ("percent", 50)]));
        assert_eq!(complete(&[("bytes", 1), ("percent", 60)]), amounts(&[("bytes", 1), ("percent", 60)]));
        assert_eq!(complete(&[("core", 1)]), amounts(&[("core", 1)]));
        assert_eq!(scaled(u64::MAX, 100, 1), u64::MAX);
    }
}
