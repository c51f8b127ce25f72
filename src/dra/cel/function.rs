//! The functions that expressions may call: a closed table with the number of arguments of each.
//!
//! Those of CEL, its strings extension, and those of Kubernetes for quantities, versions, lists and regular expressions.
#![expect(clippy::unnecessary_wraps, reason = "the functions of a table have one type")]

mod conversion;
mod list;
mod quantity;
mod regex;
mod text;
mod version;

use super::{EvaluationError, operator::no_overload, value::Value};

/// A function of an expression. The receiver of a member function is its first argument.
#[derive(Clone, Debug)]
pub(super) struct Function {
    name: &'static str,
    /// One for each kind of value that it is defined for.
    overloads: Vec<Overload>,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// `name(a, b)`.
    Global,
    /// `a.name(b)`.
    Member,
}

/// `None`: it takes no values of these types.
type Overload = fn(&[Value]) -> Result<Option<Value>, EvaluationError>;

/// Name, style, the fewest and the most arguments with the receiver, and what it does.
type Row = (&'static str, Style, usize, usize, Overload);

const TABLES: &[&[Row]] =
    &[conversion::TABLE, list::TABLE, quantity::TABLE, regex::TABLE, text::TABLE, version::TABLE];

impl Function {
    /// The function that is called so.
    pub(super) fn named(name: &str, style: Style, arguments: usize) -> Option<Self> {
        let fits = |row: &&Row| row.0 == name && row.1 == style && (row.2..=row.3).contains(&arguments);
        let mut rows = TABLES.iter().copied().flatten().filter(fits).peekable();
        let name = rows.peek()?.0;
        Some(Self { name, overloads: rows.map(|row| row.4).collect() })
    }

    /// Its value for these arguments.
    pub(super) fn call(&self, arguments: &[Value]) -> Result<Value, EvaluationError> {
        for overload in &self.overloads {
            if let Some(value) = overload(arguments)? {
                return Ok(value);
            }
        }
        Err(no_overload(self.name, &arguments.iter().collect::<Vec<_>>()))
    }
}

/// A text that a function can't read.
#[expect(clippy::needless_pass_by_value, reason = "errors are handed over as they come")]
fn unreadable(function: &'static str, message: impl ToString) -> EvaluationError {
    EvaluationError::Unreadable { function, message: message.to_string() }
}
