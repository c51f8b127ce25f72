//! The variable `device`: what an expression sees of a device.
//!
//! A cost that is estimated once holds for every device, so a device has limits too. They are those of the API or wider (kubernetes
//! `staging/src/k8s.io/api/resource/v1/types.go`).

use std::{any::Any, collections::HashMap, sync::Arc};

use cel::{
    ExecutionError,
    common::{
        traits::{Container, Indexer, Iterable, Sizer},
        types::{CelBool, CelInt, CelList, CelMap, CelMapKey, CelString, Kind, MAP_TYPE, Type},
        value::{CowVal, StaticVal, Val},
    },
    context::VariableResolver,
};

use super::{
    EvaluationError,
    value::{CelQuantity, CelVersion},
};
use crate::object::Amount;

/// How many attributes and capacities a device may have; the API allows 32.
pub(super) const MOST_NAMES: usize = 64;
/// How many values the attributes may have in all; the API allows 48.
pub(super) const MOST_VALUES: usize = 64;
/// How many bytes a domain, a name or a text may have.
pub(super) const LONGEST_TEXT: usize = 64;

/// A value of an attribute or a capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceValue {
    /// A truth value.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// A version.
    Version(semver::Version),
    /// An amount.
    Quantity(Amount),
    /// Several values.
    List(Vec<DeviceValue>),
}

/// The variable `device`.
#[derive(Clone, Debug)]
pub struct DeviceVariable(Arc<CelMap<'static>>);

/// Values by domain and name.
type ByDomain<'a> = HashMap<&'a str, HashMap<&'a str, DeviceValue>>;

impl DeviceVariable {
    /// What is seen of a device of this driver: attributes and capacities by their names, which are of the driver's domain where they name none.
    pub fn new<'a>(
        driver: &'a str,
        attributes: impl IntoIterator<Item = (&'a str, DeviceValue)>,
        capacity: impl IntoIterator<Item = (&'a str, DeviceValue)>,
        allows_multiple_allocations: bool,
    ) -> Result<Self, EvaluationError> {
        let attributes = by_domain(driver, attributes);
        let capacity = by_domain(driver, capacity);
        within_limits(&[driver], &attributes, &capacity)?;
        let fields: [(&str, Box<dyn Val>); 4] = [
            ("driver", Box::new(CelString::from(driver.to_owned()))),
            ("attributes", Box::new(Domains::new(attributes))),
            ("capacity", Box::new(Domains::new(capacity))),
            ("allowMultipleAllocations", Box::new(CelBool::from(allows_multiple_allocations))),
        ];
        Ok(Self(Arc::new(map(fields))))
    }
}

impl VariableResolver for DeviceVariable {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        (variable == "device").then(|| CowVal::Borrowed(&*self.0))
    }
}

fn by_domain<'a>(driver: &'a str, named: impl IntoIterator<Item = (&'a str, DeviceValue)>) -> ByDomain<'a> {
    let mut domains = ByDomain::new();
    for (name, value) in named {
        let (domain, name) = name.split_once('/').unwrap_or((driver, name));
        domains.entry(domain).or_default().insert(name, value);
    }
    domains
}

fn within_limits(
    driver: &[&str],
    attributes: &ByDomain<'_>,
    capacity: &ByDomain<'_>,
) -> Result<(), EvaluationError> {
    let all = || attributes.iter().chain(capacity);
    let names = || all().flat_map(|(_, names)| names);
    let values: Vec<&DeviceValue> =
        attributes.values().flatten().flat_map(|(_, value)| value.values()).collect();
    let texts = values.iter().filter_map(|value| match value {
        DeviceValue::Text(text) => Some(text.len()),
        DeviceValue::Version(version) => Some(version.to_string().len()),
        _ => None,
    });
    let spelled = driver.iter().chain(all().map(|(domain, _)| domain)).chain(names().map(|(name, _)| name));
    let longest = texts.chain(spelled.map(|name| name.len())).max().unwrap_or(0);
    let found = [
        (names().count(), MOST_NAMES, "attributes and capacities"),
        (values.len(), MOST_VALUES, "values of attributes"),
        (longest, LONGEST_TEXT, "bytes in a name or a value"),
    ];
    match found.into_iter().find(|(count, most, _)| count > most) {
        None => Ok(()),
        Some((count, most, what)) => {
            Err(EvaluationError::LargeDevice(format!("{count} {what}, and {most} are allowed")))
        }
    }
}

impl DeviceValue {
    /// The single values.
    fn values(&self) -> Vec<&Self> {
        match self {
            Self::List(values) => values.iter().collect(),
            one => vec![one],
        }
    }

    /// As an expression has made it; `None`: no attribute has such a value.
    pub(super) fn of(value: &dyn Val) -> Option<Self> {
        if value.get_type().kind() == Kind::List {
            let mut elements = value.as_iterable()?.iter();
            let elements = std::iter::from_fn(|| elements.next());
            return elements.map(Self::one_of).collect::<Option<_>>().map(Self::List);
        }
        Self::one_of(value)
    }

    fn one_of(value: &dyn Val) -> Option<Self> {
        if let Some(value) = value.downcast_ref::<CelBool>() {
            return Some(Self::Bool(*value.inner()));
        }
        if let Some(number) = value.downcast_ref::<CelInt>() {
            return Some(Self::Int(*number.inner()));
        }
        if let Some(text) = value.downcast_ref::<CelString<'_>>() {
            return Some(Self::Text(text.inner().to_owned()));
        }
        value.downcast_ref::<CelVersion>().map(|version| Self::Version(version.0.clone()))
    }

    fn into_val(self) -> Box<dyn Val> {
        match self {
            Self::Bool(value) => Box::new(CelBool::from(value)),
            Self::Int(number) => Box::new(CelInt::from(number)),
            Self::Text(text) => Box::new(CelString::from(text)),
            Self::Version(version) => Box::new(CelVersion(version)),
            Self::Quantity(amount) => Box::new(CelQuantity(amount)),
            Self::List(values) => {
                let values: Vec<Box<dyn Val>> = values.into_iter().map(Self::into_val).collect();
                Box::new(CelList::from(values))
            }
        }
    }
}

fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Box<dyn Val>)>) -> CelMap<'static> {
    let key = |name: &str| CelMapKey::String(CelString::from(name.to_owned()));
    let entries: HashMap<_, _> = entries.into_iter().map(|(name, value)| (key(name), value)).collect();
    CelMap::from(entries)
}

/// A map of each domain's names; a domain without names is an empty map.
#[derive(Clone, Debug)]
struct Domains(CelMap<'static>);

impl Domains {
    fn new(domains: ByDomain<'_>) -> Self {
        let domains = domains.into_iter().map(|(domain, names)| {
            let names = names.into_iter().map(|(name, value)| (name, value.into_val()));
            (domain, Box::new(map(names)) as Box<dyn Val>)
        });
        Self(map(domains))
    }
}

impl Val for Domains {
    fn get_type(&self) -> &Type {
        Self::cel_type()
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(&self.0)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        self.0.as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(&self.0)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        match other.downcast_ref::<Self>() {
            Some(other) => self.0.equals(&other.0),
            None => self.0.equals(other),
        }
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Domains {}

impl Indexer for Domains {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        match Indexer::get(&self.0, key) {
            Err(ExecutionError::NoSuchKey(_)) if key.get_type().kind() == Kind::String => {
                Ok(CowVal::owned(CelMap::default()))
            }
            found => found,
        }
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        self.get(key).map(CowVal::into_owned)
    }
}
