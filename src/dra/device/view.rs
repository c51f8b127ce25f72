//! What an expression sees of a device (kubernetes `dynamic-resource-allocation/cel/compile.go`).

use semver::Version;

use super::own_name;
use crate::{
    dra::cel::{DeviceValue, DeviceVariable, EvaluationError},
    object::resource_slice::{DeviceAttribute, SliceDevice},
};

/// What an expression sees of a device.
#[derive(Clone, Debug)]
pub(in crate::dra) struct DeviceView {
    /// The variable `device`; the error is why no expression has a value for the device.
    pub(in crate::dra) variable: Result<DeviceVariable, EvaluationError>,
    /// Whether it sees no more of attributes than constraints compare: none is a list, and none has two spellings.
    pub(in crate::dra) is_plain: bool,
}

impl DeviceView {
    /// Of a device of this driver.
    pub(super) fn of(driver: &str, device: &SliceDevice) -> Self {
        let is_short_too =
            |name: &str| own_name(name, driver).is_some_and(|own| device.attributes.contains_key(own));
        let is_plain = device.attributes.iter().all(|(name, value)| !value.is_list() && !is_short_too(name));
        Self { variable: variable(driver, device), is_plain }
    }
}

fn variable(driver: &str, device: &SliceDevice) -> Result<DeviceVariable, EvaluationError> {
    let attributes = device
        .attributes
        .iter()
        .map(|(name, attribute)| Ok((name.as_str(), attribute_value(name, attribute)?)));
    let capacity = device.capacity.iter().map(|(name, capacity)| {
        let amount = capacity.value.amount();
        let amount = amount.map_err(|error| unreadable(name, &error))?;
        Ok((name.as_str(), DeviceValue::Quantity(amount)))
    });
    let attributes = attributes.collect::<Result<Vec<_>, EvaluationError>>()?;
    let capacity = capacity.collect::<Result<Vec<_>, EvaluationError>>()?;
    DeviceVariable::new(driver, attributes, capacity, device.allow_multiple_allocations)
}

fn attribute_value(name: &str, attribute: &DeviceAttribute) -> Result<DeviceValue, EvaluationError> {
    let DeviceAttribute { int, bool, string, version, ints, bools, strings, versions } = attribute;
    let read = |text: &String| {
        Version::parse(text).map(DeviceValue::Version).map_err(|error| unreadable(name, &error))
    };
    let value = if let Some(ints) = ints {
        DeviceValue::List(ints.iter().copied().map(DeviceValue::Int).collect())
    } else if let Some(bools) = bools {
        DeviceValue::List(bools.iter().copied().map(DeviceValue::Bool).collect())
    } else if let Some(strings) = strings {
        DeviceValue::List(strings.iter().cloned().map(DeviceValue::Text).collect())
    } else if let Some(versions) = versions {
        DeviceValue::List(versions.iter().map(read).collect::<Result<_, _>>()?)
    } else if let Some(int) = int {
        DeviceValue::Int(*int)
    } else if let Some(bool) = bool {
        DeviceValue::Bool(*bool)
    } else if let Some(string) = string {
        DeviceValue::Text(string.clone())
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
