//! The functions that expressions may call: a closed table, with the number of arguments and the size of the result of each.
//!
//! Those of CEL, of optional values, of texts, and those that make a list of a list are the crate's. Those of durations and timestamps, of sets, and
//! those of Kubernetes for quantities, versions, addresses, URLs, named formats, lists and regular expressions stand here. A function that is not in the table can't
//! be called, since its cost could not be estimated.

mod format;
mod list;
mod map;
mod named_format;
mod network;
mod quantity;
mod regex;
mod set;
mod time;
mod url;
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
    /// A number, a truth value, a quantity, a time, or an address.
    Single,
    /// A text that a number has.
    Spelled,
    /// The first argument, or a part of it.
    First,
    /// A part of the first text, with `%41` or `\n` for a character, or all of it between quotation marks.
    Escaped,
    /// The first text with the elements of the second argument in it.
    Formatted,
    /// A few texts about the second argument.
    Reasons,
    /// A truth value that is found by comparing each element of the first argument with each of the second.
    Crossed,
    /// One of the arguments, or an element of one.
    OneOf,
    /// An element of the first argument.
    Element,
    /// A list of the elements of the lists in the first argument.
    Flattened,
    /// A list of elements of the first argument, each of which is compared with the others.
    Unique,
    /// The first argument, its elements in their order.
    Sorted,
    /// The first argument, its elements in the order of the elements of the second.
    SortedBy,
    /// A list of all numbers below the first argument.
    Counted,
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
    /// A number, by what clocks show in a time zone.
    Zoned,
}

/// Adds functions to an environment.
type Extension = fn(&mut Env) -> Result<(), DeclarationError>;

/// Name, style, the fewest and the most arguments with the receiver, and the outcome.
type Row = (&'static str, Style, usize, usize, FunctionOutcome);

/// `list.reverse()`: Kubernetes' selectors have it for lists alone, and the crate for texts too. No expression can spell the name.
pub(super) const REVERSE: &str = "list reverse";

/// What `list.sortBy(element, key)` becomes: the list, and its keys. No expression can spell the name.
pub(super) const SORT_BY: &str = "list sortBy";

/// What `text.format(list)` becomes: Kubernetes' selectors write numbers otherwise than the crate. No expression can spell the name.
pub(super) const FORMAT: &str = "text format";

/// What `string(value)` becomes, for the same reason. No expression can spell the name.
pub(super) const STRING: &str = "text of";

/// The indices and elements of a list, or the keys and values of a map, as a list of pairs. No expression can spell the name.
pub(super) const PAIRS: &str = "pairs of";

/// The map that has the pairs of a list. No expression can spell the name.
pub(super) const MAP_OF_PAIRS: &str = "map of pairs";

/// The map that has all entries of the maps in a list. No expression can spell the name.
pub(super) const MAP_OF_MAPS: &str = "map of maps";

const TABLE: &[Row] = {
    use FunctionOutcome::{
        AllFound, Counted, Crossed, Element, Escaped, First, Flattened, Formatted, Found, Joined, Matched,
        OneOf, Parts, Place, Reasons, Replaced, Single, Sorted, SortedBy, Spelled, Unique, Zoned,
    };
    use Style::{Global, Member};
    &[
        ("bool", Global, 1, 1, Single),
        ("bytes", Global, 1, 1, First),
        ("double", Global, 1, 1, Single),
        ("dyn", Global, 1, 1, First),
        ("int", Global, 1, 1, Single),
        ("string", Global, 1, 1, Spelled),
        (STRING, Global, 1, 1, Spelled),
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
        (REVERSE, Global, 1, 1, First),
        ("charAt", Member, 2, 2, First),
        ("indexOf", Member, 2, 3, Place),
        ("lastIndexOf", Member, 2, 3, Place),
        ("substring", Member, 2, 3, First),
        ("replace", Member, 3, 4, Replaced),
        ("split", Member, 2, 3, Parts),
        ("join", Member, 1, 2, Joined),
        ("strings.quote", Global, 1, 1, Escaped),
        ("format", Member, 2, 2, Formatted),
        (FORMAT, Global, 2, 2, Formatted),
        ("includes", Member, 2, 2, Single),
        ("isSorted", Member, 1, 1, Single),
        ("min", Member, 1, 1, OneOf),
        ("max", Member, 1, 1, OneOf),
        ("sum", Member, 1, 1, Single),
        ("slice", Member, 3, 3, First),
        ("flatten", Member, 1, 2, Flattened),
        ("distinct", Member, 1, 1, Unique),
        ("sort", Member, 1, 1, Sorted),
        (SORT_BY, Global, 2, 2, SortedBy),
        ("lists.range", Global, 1, 1, Counted),
        (PAIRS, Global, 1, 1, First),
        (MAP_OF_PAIRS, Global, 1, 1, Flattened),
        (MAP_OF_MAPS, Global, 1, 1, Flattened),
        ("first", Member, 1, 1, Element),
        ("last", Member, 1, 1, Element),
        ("matches", Global, 2, 2, Matched),
        ("matches", Member, 2, 2, Matched),
        ("find", Member, 2, 2, Found),
        ("findAll", Member, 2, 3, AllFound),
        ("quantity", Global, 1, 1, Single),
        ("isQuantity", Global, 1, 1, Single),
        ("sign", Global, 1, 1, Single),
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
        ("duration", Global, 1, 1, Single),
        ("timestamp", Global, 1, 1, Single),
        ("getFullYear", Member, 1, 1, Single),
        ("getFullYear", Member, 2, 2, Zoned),
        ("getMonth", Member, 1, 1, Single),
        ("getMonth", Member, 2, 2, Zoned),
        ("getDate", Member, 1, 1, Single),
        ("getDate", Member, 2, 2, Zoned),
        ("getDayOfMonth", Member, 1, 1, Single),
        ("getDayOfMonth", Member, 2, 2, Zoned),
        ("getDayOfYear", Member, 1, 1, Single),
        ("getDayOfYear", Member, 2, 2, Zoned),
        ("getDayOfWeek", Member, 1, 1, Single),
        ("getDayOfWeek", Member, 2, 2, Zoned),
        ("getHours", Member, 1, 1, Single),
        ("getHours", Member, 2, 2, Zoned),
        ("getMinutes", Member, 1, 1, Single),
        ("getMinutes", Member, 2, 2, Zoned),
        ("getSeconds", Member, 1, 1, Single),
        ("getSeconds", Member, 2, 2, Zoned),
        ("getMilliseconds", Member, 1, 1, Single),
        ("getMilliseconds", Member, 2, 2, Zoned),
        ("ip", Global, 1, 1, Single),
        ("ip", Member, 1, 1, Single),
        ("isIP", Global, 1, 1, Single),
        ("ip.isCanonical", Global, 1, 1, Spelled),
        ("family", Member, 1, 1, Single),
        ("isUnspecified", Member, 1, 1, Single),
        ("isLoopback", Member, 1, 1, Single),
        ("isLinkLocalMulticast", Member, 1, 1, Single),
        ("isLinkLocalUnicast", Member, 1, 1, Single),
        ("isGlobalUnicast", Member, 1, 1, Single),
        ("cidr", Global, 1, 1, Single),
        ("isCIDR", Global, 1, 1, Single),
        ("containsIP", Member, 2, 2, Single),
        ("containsCIDR", Member, 2, 2, Single),
        ("prefixLength", Member, 1, 1, Single),
        ("masked", Member, 1, 1, Single),
        ("url", Global, 1, 1, Escaped),
        ("isURL", Global, 1, 1, Escaped),
        ("getScheme", Member, 1, 1, First),
        ("getHost", Member, 1, 1, First),
        ("getHostname", Member, 1, 1, First),
        ("getPort", Member, 1, 1, First),
        ("getEscapedPath", Member, 1, 1, First),
        ("getQuery", Member, 1, 1, Parts),
        ("format.named", Global, 1, 1, Single),
        ("format.byte", Global, 0, 0, Single),
        ("format.date", Global, 0, 0, Single),
        ("format.datetime", Global, 0, 0, Single),
        ("format.dns1035Label", Global, 0, 0, Single),
        ("format.dns1035LabelPrefix", Global, 0, 0, Single),
        ("format.dns1123Label", Global, 0, 0, Single),
        ("format.dns1123LabelPrefix", Global, 0, 0, Single),
        ("format.dns1123Subdomain", Global, 0, 0, Single),
        ("format.dns1123SubdomainPrefix", Global, 0, 0, Single),
        ("format.labelValue", Global, 0, 0, Single),
        ("format.qualifiedName", Global, 0, 0, Single),
        ("format.uri", Global, 0, 0, Single),
        ("format.uuid", Global, 0, 0, Single),
        ("validate", Member, 2, 2, Reasons),
        ("sets.contains", Global, 2, 2, Crossed),
        ("sets.equivalent", Global, 2, 2, Crossed),
        ("sets.intersects", Global, 2, 2, Crossed),
    ]
};

/// What the function that is called so makes of its arguments; `None`: there is none.
pub(super) fn outcome(name: &str, style: Style, arguments: usize) -> Option<FunctionOutcome> {
    let fits = |row: &&Row| row.0 == name && row.1 == style && (row.2..=row.3).contains(&arguments);
    TABLE.iter().find(fits).map(|row| row.4)
}

/// Whether a function is called `name.function(…)`, where the name is no variable's.
pub(super) fn is_of(name: &str, function: &str) -> bool {
    let is_so =
        |row: &Row| row.0.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) == Some(function);
    TABLE.iter().any(is_so)
}

/// The functions of the table, and more of the crate's that no expression can call.
pub(super) fn environment() -> Env {
    let mut environment = Env::stdlib();
    let all: [Extension; 13] = [
        extensions::lists,
        extensions::strings,
        format::extension,
        list::extension,
        map::extension,
        named_format::extension,
        network::extension,
        quantity::extension,
        regex::extension,
        set::extension,
        time::extension,
        url::extension,
        version::extension,
    ];
    for extension in all {
        environment.add_extension(extension).expect("no two functions have one name and the same arguments");
    }
    environment
}

/// A text that a function can't read.
fn unreadable(function: &str, message: impl ToString) -> ExecutionError {
    ExecutionError::function_error(function, message)
}
