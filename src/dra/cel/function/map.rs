//! What loops with two variables go over and make: lists of pairs, and maps (cel-go `ext/comprehensions.go`). No expression can name these functions.
#![expect(clippy::needless_pass_by_value, reason = "the crate has one type for all functions")]

use std::collections::HashMap;

use cel::{
    DeclarationError, Env, ExecutionError,
    common::{
        types::{CelBool, CelInt, CelList, CelMap, CelMapKey, CelString, CelUInt, DYN_TYPE, Kind, LIST_TYPE},
        value::{CowVal, Val},
    },
};

use super::{
    list::{self, Called},
    unreadable,
};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_overload(super::PAIRS, "pairs(dyn)", vec![DYN_TYPE], pairs)?;
    env.add_overload(super::MAP_OF_PAIRS, "pairs(list)", vec![LIST_TYPE], map_of_pairs)?;
    env.add_overload(super::MAP_OF_MAPS, "maps(list)", vec![LIST_TYPE], map_of_maps)
}

fn pairs<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let over = arguments[0].as_ref();
    let mut pairs: Vec<Box<dyn Val + 'v>> = Vec::new();
    let mut add = |first: Box<dyn Val + 'v>, second: Box<dyn Val + 'v>| {
        pairs.push(Box::new(CelList::from(vec![first, second])));
    };
    match over.get_type().kind() {
        Kind::List => {
            for (at, element) in (0..).zip(list::of(over, "a loop")?) {
                add(Box::new(CelInt::from(at)), element.clone_as_boxed());
            }
        }
        Kind::Map => {
            for (key, value) in entries(over, "a loop")? {
                add(key.clone_as_boxed(), value.into_owned());
            }
        }
        _ => return Err(unreadable("a loop", "the value is neither a list nor a map")),
    }
    Ok(CowVal::owned(CelList::from(pairs)))
}

/// The keys and values of a map.
pub(super) fn entries<'b, 'v>(
    map: &'b (dyn Val + 'v),
    function: &str,
) -> Result<Vec<(&'b (dyn Val + 'v), CowVal<'b, 'v>)>, ExecutionError> {
    let values = map.as_indexer().ok_or_else(|| unreadable(function, "the value is no map"))?;
    list::of(map, function)?.into_iter().map(|key| Ok((key, values.get(key)?))).collect()
}

fn map_of_pairs<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let mut entries = Entries::default();
    for pair in list::of(&*arguments[0], "transformMap")? {
        if let [key, value] = list::of(pair, "transformMap")?[..] {
            entries.add(key, value.clone_as_boxed(), "transformMap")?;
        }
    }
    Ok(entries.map())
}

fn map_of_maps<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let mut all = Entries::default();
    for map in list::of(&*arguments[0], "transformMapEntry")? {
        if map.get_type().kind() != Kind::Map {
            return Err(unreadable("transformMapEntry", "the value is no map"));
        }
        for (key, value) in entries(map, "transformMapEntry")? {
            all.add(key, value.into_owned(), "transformMapEntry")?;
        }
    }
    Ok(all.map())
}

/// The entries of a map that is made of others.
#[derive(Default)]
struct Entries<'v>(HashMap<CelMapKey<'v>, Box<dyn Val + 'v>>);

impl<'v> Entries<'v> {
    /// Adds an entry. A key that is there is an error, and so is one that is the same number as one that is there (cel-go `common/types/map.go`,
    /// `InsertMapKeyValue`).
    fn add(&mut self, key: &dyn Val, value: Box<dyn Val + 'v>, function: &str) -> Result<(), ExecutionError> {
        let (key, other) = if let Some(text) = key.downcast_ref::<CelString>() {
            (CelMapKey::String(text.inner().to_owned().into()), None)
        } else if let Some(number) = key.downcast_ref::<CelInt>() {
            let other = u64::try_from(*number.inner()).ok().map(|same| CelMapKey::UInt(CelUInt::from(same)));
            (CelMapKey::Int(CelInt::from(*number.inner())), other)
        } else if let Some(number) = key.downcast_ref::<CelUInt>() {
            let other = i64::try_from(*number.inner()).ok().map(|same| CelMapKey::Int(CelInt::from(same)));
            (CelMapKey::UInt(CelUInt::from(*number.inner())), other)
        } else if let Some(truth) = key.downcast_ref::<CelBool>() {
            (CelMapKey::Bool(CelBool::from(*truth.inner())), None)
        } else {
            return Err(unreadable(function, "a key is neither a text, a whole number nor a truth value"));
        };
        let is_there = other.is_some_and(|other| self.0.contains_key(&other));
        if is_there || self.0.insert(key, value).is_some() {
            return Err(unreadable(function, "two entries have the same key"));
        }
        Ok(())
    }

    fn map<'b>(self) -> CowVal<'b, 'v>
    where
        'v: 'b,
    {
        CowVal::owned(CelMap::from(self.0))
    }
}
