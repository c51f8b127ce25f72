//! The values of an expression.

use std::{cmp::Ordering, sync::Arc};

use semver::Version;

use crate::object::Amount;

/// A value. Lists and maps share what they hold.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A number with a sign.
    Int(i64),
    /// A number without a sign.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(Arc<[Value]>),
    /// A map.
    Map(Map),
    /// A Kubernetes quantity.
    Quantity(Amount),
    /// A version.
    Version(Arc<Version>),
    /// A value that may be absent.
    Optional(Option<Arc<Value>>),
    /// A type, by its name.
    Type(&'static str),
}

/// A map; keys are unique.
#[derive(Clone, Debug, Default)]
pub struct Map {
    entries: Arc<[(Value, Value)]>,
    /// Whether a missing key has an empty map instead of an error.
    has_every_key: bool,
}

impl Map {
    /// A map of these entries, whose keys are unique.
    pub fn new(entries: impl IntoIterator<Item = (Value, Value)>) -> Self {
        Self { entries: entries.into_iter().collect(), has_every_key: false }
    }

    /// The same with an empty map for each key that is missing: so Kubernetes has domains of attributes and capacities.
    #[must_use]
    pub fn with_every_key(self) -> Self {
        Self { has_every_key: true, ..self }
    }

    /// The value of a key; `None`: there is none.
    pub fn get(&self, key: &Value) -> Option<Value> {
        let found = self.entries.iter().find(|(known, _)| known.equals(key)).map(|(_, value)| value.clone());
        found.or_else(|| self.has_every_key.then(|| Value::Map(Self::default())))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Each key, in order.
    pub fn keys(&self) -> impl Iterator<Item = &Value> {
        self.entries.iter().map(|(key, _)| key)
    }
}

impl Value {
    /// A text.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// A list.
    pub fn list(elements: impl IntoIterator<Item = Self>) -> Self {
        Self::List(elements.into_iter().collect())
    }

    /// The name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Version(_) => "kubernetes.Semver",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
        }
    }

    /// Whether both are the same value. Numbers of different types are compared by what they count; other values of different
    /// types are not the same.
    pub fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Version(a), Self::Version(b)) => a.cmp_precedence(b).is_eq(),
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.equals(b))
            }
            (Self::Map(a), Self::Map(b)) => {
                let holds = |(key, value): &(Self, Self)| b.get(key).is_some_and(|other| other.equals(value));
                a.len() == b.len() && a.entries.iter().all(holds)
            }
            (Self::Optional(a), Self::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => a.equals(b),
                (a, b) => a.is_none() && b.is_none(),
            },
            _ => self.number_order(other).is_some_and(Ordering::is_eq),
        }
    }

    /// The order of two values that have one: numbers, texts and truth values.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => self.number_order(other),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "CEL compares with floating point numbers so")]
    fn number_order(&self, other: &Self) -> Option<Ordering> {
        let double = |value: &Self| match value {
            Self::Int(number) => Some(*number as f64),
            Self::Uint(number) => Some(*number as f64),
            Self::Double(number) => Some(*number),
            _ => None,
        };
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Uint(a), Self::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            _ => double(self)?.partial_cmp(&double(other)?),
        }
    }

    /// How much it costs to read the whole value, where a character or an element costs 1. It stops to count above the limit: parts
    /// are shared, and a value that was made cheaply can be too large to be read.
    pub(super) fn size(&self, limit: u64) -> u64 {
        let counted = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let all = |parts: &mut dyn Iterator<Item = &Self>| {
            let mut size = 1;
            for part in parts {
                if size > limit {
                    break;
                }
                size += part.size(limit - size);
            }
            size
        };
        match self {
            Self::Text(text) => 1 + counted(text.len()),
            Self::List(elements) => all(&mut elements.iter()),
            Self::Map(map) => all(&mut map.entries.iter().flat_map(|(key, value)| [key, value])),
            Self::Optional(Some(inner)) => inner.size(limit),
            _ => 1,
        }
    }
}
