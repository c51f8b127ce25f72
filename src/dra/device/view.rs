//! What an expression sees of a device: the variable `device` (kubernetes `dynamic-resource-allocation/cel/compile.go`).

use std::{collections::BTreeMap, sync::Arc};

use semver::Version;

use crate::{
    dra::cel::{EvaluationError, Map, Value},
    object::resource_slice::{DeviceAttribute, SliceDevice},
};

/// The variable; the error is why no expression has a value for the device.
pub(super) fn of(driver: &str, device: &SliceDevice) -> Result<Value, EvaluationError> {
    let attributes = device
        .attributes
        .iter()
        .map(|(name, attribute)| Ok((name.as_str(), attribute_value(name, attribute)?)));
    let capacity = device.capacity.iter().map(|(name, capacity)| {
        let amount = capacity.value.amount();
        let amount = amount.map_err(|error| unreadable(name, &error))?;
        Ok((name.as_str(), Value::Quantity(amount)))
    });
    let fields = [
        ("driver", Value::text(driver)),
        ("attributes", by_domain(driver, attributes)?),
        ("capacity", by_domain(driver, capacity)?),
        ("allowMultipleAllocations", Value::Bool(device.allow_multiple_allocations)),
    ];
    Ok(Value::Map(Map::new(fields.map(|(name, value)| (Value::text(name), value)))))
}

/// A map of each domain's names; a domain without names is an empty map.
fn by_domain<'a>(
    driver: &'a str,
    named: impl Iterator<Item = Result<(&'a str, Value), EvaluationError>>,
) -> Result<Value, EvaluationError> {
    let mut domains: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
    for named in named {
        let (name, value) = named?;
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        domains.entry(domain).or_default().insert(name, value);
    }
    let map = |names: BTreeMap<&str, Value>| {
        Value::Map(Map::new(names.into_iter().map(|(name, value)| (Value::text(name), value))))
    };
    let domains = domains.into_iter().map(|(domain, names)| (Value::text(domain), map(names)));
    Ok(Value::Map(Map::new(domains).with_every_key()))
}

fn attribute_value(name: &str, attribute: &DeviceAttribute) -> Result<Value, EvaluationError> {
    let DeviceAttribute { int, bool, string, version, ints, bools, strings, versions } = attribute;
    let read = |text: &String| {
        let version = Version::parse(text).map_err(|error| unreadable(name, &error))?;
        Ok(Value::Version(Arc::new(version)))
    };
    let value = if let Some(ints) = ints {
        Value::list(ints.iter().copied().map(Value::Int))
    } else if let Some(bools) = bools {
        Value::list(bools.iter().copied().map(Value::Bool))
    } else if let Some(strings) = strings {
        Value::list(strings.iter().map(|text| Value::text(text)))
    } else if let Some(versions) = versions {
        Value::list(versions.iter().map(read).collect::<Result<Vec<_>, _>>()?)
    } else if let Some(int) = int {
        Value::Int(*int)
    } else if let Some(bool) = bool {
        Value::Bool(*bool)
    } else if let Some(string) = string {
        Value::text(string)
    } else if let Some(version) = version {
        read(version)?
    } else {
        return Err(EvaluationError::UnsupportedAttribute(name.to_owned()));
    };
    Ok(value)
}

fn unreadable(name: &str, error: &dyn std::fmt::Display) -> EvaluationError {
    EvaluationError::UnreadableDevice { name: name.to_owned(), message: error.to_string() }
}
