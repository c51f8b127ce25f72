//! The functions that expressions may call: a closed table, with the number of arguments and the size of the result of each.
//!
//! Those of CEL, of optional values and of texts are the crate's. Those of Kubernetes for quantities, versions, lists and regular expressions stand
//! here. A function that is not in the table can't be called, since its cost could not be estimated.

mod list;
mod quantity;
mod regex;
mod version;

use cel::{DeclarationError, Env, ExecutionError, extensions};

/// How a function is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Style {
    /// `name(a, b)`.
    Global,
    /// `a.name(b)`.
    Member,
}

/// What a function makes of its arguments, the largest that it can be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FunctionOutcome {
    /// A number, a truth value, a quantity or a version.
    Single,
    /// A text that a number has.
    Spelled,
    /// The first argument, or a part of it.
    First,
    /// One of the arguments, or an element of one.
    OneOf,
    /// A number that is found by comparing the second argument at each place of the first.
    Place,
    /// The first text, with the third one at each place.
    Replaced,
    /// A list of the parts of the first text.
    Parts,
    /// The elements of the first argument, with the second one between them.
    Joined,
    /// A truth value, by a regular expression.
    Matched,
    /// A part of the first text, by a regular expression.
    Found,
    /// A list of parts of the first text, by a regular expression.
    AllFound,
}

/// Name, style, the fewest and the most arguments with the receiver, and the outcome.
type Row = (&'static str, Style, usize, usize, FunctionOutcome);

const TABLE: &[Row] = {
    use FunctionOutcome::{
        AllFound, First, Found, Joined, Matched, OneOf, Parts, Place, Replaced, Single, Spelled,
    };
    use Style::{Global, Member};
    &[
        ("bool", Global, 1, 1, Single),
        ("double", Global, 1, 1, Single),
        ("dyn", Global, 1, 1, First),
        ("int", Global, 1, 1, Single),
        ("string", Global, 1, 1, Spelled),
        ("type", Global, 1, 1, Single),
        ("uint", Global, 1, 1, Single),
        ("size", Global, 1, 1, Single),
        ("size", Member, 1, 1, Single),
        ("optional.of", Global, 1, 1, First),
        ("optional.ofNonZeroValue", Global, 1, 1, First),
        ("optional.none", Global, 0, 0, Single),
        ("hasValue", Member, 1, 1, Single),
        ("value", Member, 1, 1, First),
        ("or", Member, 2, 2, OneOf),
        ("orValue", Member, 2, 2, OneOf),
        ("contains", Member, 2, 2, Single),
        ("startsWith", Member, 2, 2, Single),
        ("endsWith", Member, 2, 2, Single),
        ("lowerAscii", Member, 1, 1, First),
        ("upperAscii", Member, 1, 1, First),
        ("trim", Member, 1, 1, First),
        ("reverse", Member, 1, 1, First),
        ("charAt", Member, 2, 2, First),
        ("indexOf", Member, 2, 3, Place),
        ("lastIndexOf", Member, 2, 3, Place),
        ("substring", Member, 2, 3, First),
        ("replace", Member, 3, 4, Replaced),
        ("split", Member, 2, 3, Parts),
        ("join", Member, 1, 2, Joined),
        ("includes", Member, 2, 2, Single),
        ("isSorted", Member, 1, 1, Single),
        ("min", Member, 1, 1, OneOf),
        ("max", Member, 1, 1, OneOf),
        ("sum", Member, 1, 1, Single),
        ("matches", Global, 2, 2, Matched),
        ("matches", Member, 2, 2, Matched),
        ("find", Member, 2, 2, Found),
        ("findAll", Member, 2, 3, AllFound),
        ("quantity", Global, 1, 1, Single),
        ("isQuantity", Global, 1, 1, Single),
        ("sign", Member, 1, 1, Single),
        ("isInteger", Member, 1, 1, Single),
        ("asInteger", Member, 1, 1, Single),
        ("asApproximateFloat", Member, 1, 1, Single),
        ("add", Member, 2, 2, Single),
        ("sub", Member, 2, 2, Single),
        ("isGreaterThan", Member, 2, 2, Single),
        ("isLessThan", Member, 2, 2, Single),
        ("compareTo", Member, 2, 2, Single),
        ("semver", Global, 1, 2, Spelled),
        ("isSemver", Global, 1, 2, Single),
        ("major", Member, 1, 1, Single),
        ("minor", Member, 1, 1, Single),
        ("patch", Member, 1, 1, Single),
    ]
};

/// What the function that is called so makes of its arguments; `None`: there is none.
pub(super) fn outcome(name: &str, style: Style, arguments: usize) -> Option<FunctionOutcome> {
    let fits = |row: &&Row| row.0 == name && row.1 == style && (row.2..=row.3).contains(&arguments);
    TABLE.iter().find(fits).map(|row| row.4)
}

/// The functions of the table, and more of the crate's that no expression can call.
pub(super) fn environment() -> Env {
    let mut environment = Env::stdlib();
    let all =
        [extensions::strings, list::extension, quantity::extension, regex::extension, version::extension];
    for extension in all as [fn(&mut Env) -> Result<(), DeclarationError>; 5] {
        environment.add_extension(extension).expect("no two functions have one name and the same arguments");
    }
    environment
}

/// A text that a function can't read.
fn unreadable(function: &str, message: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, message)
}
