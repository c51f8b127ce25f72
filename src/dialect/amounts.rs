//! Whole numbers out of resource quantities: exactly, or not at all.

use super::unreadable::{Problem, Unreadable};
use crate::object::{Amount, Container, Quantity};

/// The largest number that the node plugins can read: they hold quantities in 32 bits.
const LARGEST: i128 = i32::MAX as i128;

/// The value of a resource of a container: its limit, or its request where there is no limit.
pub(super) struct ResourceReader<'a> {
    container: &'a Container,
    path: &'a str,
}

impl<'a> ResourceReader<'a> {
    pub(super) fn new(container: &'a Container, path: &'a str) -> Self {
        Self { container, path }
    }

    /// The path of a resource, in limits or requests, wherever it stands.
    pub(super) fn field(&self, name: &str) -> String {
        let section = if self.container.resources.limit(name).is_some() { "limits" } else { "requests" };
        format!("{}.resources.{section}[{name}]", self.path)
    }

    /// Whether the container requests some of the resource: an amount that is not 0.
    pub(super) fn requests(&self, name: &str) -> bool {
        self.container.resources.limit_or_request(name).is_some_and(|quantity| !quantity.is_zero())
    }

    /// A number of things, or of MiB (`unit` says of what), `factor` of which make one on the wire.
    pub(super) fn number(&self, name: &str, unit: &str, factor: u32) -> Result<Option<u32>, Unreadable> {
        let largest = LARGEST / i128::from(factor.max(1));
        self.read(name, largest, |quantity| {
            let (unit, hint) = match (unit, factor) {
                ("MiB", 0 | 1) => (unit.to_owned(), memory_hint(quantity, 1)),
                ("MiB", factor) => (format!("units of {factor} MiB"), memory_hint(quantity, factor)),
                _ => (unit.to_owned(), String::new()),
            };
            format!("`{quantity}` is more than the {largest} that a node can read; write {unit}{hint}")
        })
    }

    /// A percentage of one card, 0 to 100.
    pub(super) fn percentage(&self, name: &str) -> Result<Option<u32>, Unreadable> {
        self.read(name, 100, |quantity| format!("`{quantity}` is more than 100 percent of one card"))
    }

    fn read(
        &self,
        name: &str,
        largest: i128,
        too_large: impl Fn(&Quantity) -> String,
    ) -> Result<Option<u32>, Unreadable> {
        let Some(quantity) = self.container.resources.limit_or_request(name) else {
            return Ok(None);
        };
        let refuse = |message: String| Unreadable::new(Problem::Quantity, self.field(name), message);
        let amount = quantity.amount().map_err(|error| refuse(error.to_string()))?;
        let whole = amount.whole().ok_or_else(|| refuse(format!("`{quantity}` is not a whole number")))?;
        if whole < 0 {
            return Err(refuse(format!("`{quantity}` is negative")));
        }
        if whole > largest {
            return Err(refuse(too_large(quantity)));
        }
        Ok(Some(u32::try_from(whole).expect("whole is between 0 and i32::MAX")))
    }
}

/// `16Gi` where so many MiB a unit are meant: what to write instead.
fn memory_hint(quantity: &Quantity, unit: u32) -> String {
    let bytes = quantity.amount().ok().and_then(Amount::whole);
    let unit = i128::from(unit) << 20;
    let units = bytes.filter(|bytes| bytes % unit == 0).map(|bytes| bytes / unit);
    units.map_or_else(String::new, |units| format!(": `{units}` for {quantity}"))
}
