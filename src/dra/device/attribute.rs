//! Attributes, as constraints compare them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::{dra::cel::DeviceValue, object::resource_slice::DeviceAttribute};

/// The values of an attribute: one, or those of a list. Values of different types are never the same.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum AttributeValues {
    /// Numbers.
    Ints(BTreeSet<i64>),
    /// Truth values.
    Bools(BTreeSet<bool>),
    /// Texts.
    Texts(BTreeSet<String>),
    /// Versions, as they are written: semver.org knows one spelling of each.
    Versions(BTreeSet<String>),
}

/// Attributes that a claim computes of one device, by their full names.
pub(in crate::dra) type DerivedValues = BTreeMap<Arc<str>, AttributeValues>;

impl AttributeValues {
    /// The values; `None` where there are none of a known kind.
    pub(super) fn read(attribute: &DeviceAttribute) -> Option<Self> {
        fn all<T: Clone + Ord>(list: Option<&Vec<T>>, one: Option<&T>) -> Option<BTreeSet<T>> {
            let list = list.filter(|list| !list.is_empty());
            list.map(|list| list.iter().cloned().collect()).or_else(|| Some(BTreeSet::from([one?.clone()])))
        }
        let DeviceAttribute { int, bool, string, version, ints, bools, strings, versions } = attribute;
        let ints = all(ints.as_ref(), int.as_ref()).map(Self::Ints);
        let bools = || all(bools.as_ref(), bool.as_ref()).map(Self::Bools);
        let texts = || all(strings.as_ref(), string.as_ref()).map(Self::Texts);
        let versions = || all(versions.as_ref(), version.as_ref()).map(Self::Versions);
        ints.or_else(bools).or_else(texts).or_else(versions)
    }

    /// What an expression makes of a device, as an attribute; `None`: it is a list of different types. An empty list has nothing in common with any.
    pub(in crate::dra) fn of(value: DeviceValue) -> Option<Self> {
        let values = match value {
            DeviceValue::List(values) => values,
            one => vec![one],
        };
        match values.first() {
            None => Some(Self::Texts(BTreeSet::new())),
            Some(DeviceValue::Int(_)) => all(values, |value| match value {
                DeviceValue::Int(number) => Some(number),
                _ => None,
            })
            .map(Self::Ints),
            Some(DeviceValue::Bool(_)) => all(values, |value| match value {
                DeviceValue::Bool(value) => Some(value),
                _ => None,
            })
            .map(Self::Bools),
            Some(DeviceValue::Text(_)) => all(values, |value| match value {
                DeviceValue::Text(text) => Some(text),
                _ => None,
            })
            .map(Self::Texts),
            Some(DeviceValue::Version(_)) => all(values, |value| match value {
                DeviceValue::Version(version) => Some(version.to_string()),
                _ => None,
            })
            .map(Self::Versions),
            Some(DeviceValue::Quantity(_) | DeviceValue::List(_)) => None,
        }
    }

    /// The values that both have; `None` where there are none.
    pub(in crate::dra) fn shared(&self, other: &Self) -> Option<Self> {
        fn both<T: Clone + Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> Option<BTreeSet<T>> {
            let shared: BTreeSet<T> = a.intersection(b).cloned().collect();
            (!shared.is_empty()).then_some(shared)
        }
        match (self, other) {
            (Self::Ints(a), Self::Ints(b)) => both(a, b).map(Self::Ints),
            (Self::Bools(a), Self::Bools(b)) => both(a, b).map(Self::Bools),
            (Self::Texts(a), Self::Texts(b)) => both(a, b).map(Self::Texts),
            (Self::Versions(a), Self::Versions(b)) => both(a, b).map(Self::Versions),
            _ => None,
        }
    }
}

/// Each value as one of this type; `None`: one is of another.
fn all<T: Ord>(values: Vec<DeviceValue>, one: impl Fn(DeviceValue) -> Option<T>) -> Option<BTreeSet<T>> {
    values.into_iter().map(one).collect()
}

/// The attributes by full names: a name without a domain belongs to the driver's, and one that is spelled in full comes first.
pub(super) fn by_full_name(
    driver: &str,
    attributes: &BTreeMap<String, DeviceAttribute>,
) -> BTreeMap<String, Option<AttributeValues>> {
    let (full, short): (Vec<_>, Vec<_>) = attributes.iter().partition(|(name, _)| name.contains('/'));
    let short = short
        .into_iter()
        .map(|(name, attribute)| (format!("{driver}/{name}"), AttributeValues::read(attribute)));
    let full = full.into_iter().map(|(name, attribute)| (name.clone(), AttributeValues::read(attribute)));
    short.chain(full).collect()
}
