//! Functions of versions (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/semverlib.go`).

use std::{cmp::Ordering, sync::Arc};

use semver::Version;

use super::{EvaluationError, Row, Style, Value, unreadable};

pub(super) const TABLE: &[Row] =
    &[
        ("semver", Style::Global, 1, 2, read),
        ("isSemver", Style::Global, 1, 2, is_version),
        ("major", Style::Member, 1, 1, |arguments| part(arguments, |version| version.major)),
        ("minor", Style::Member, 1, 1, |arguments| part(arguments, |version| version.minor)),
        ("patch", Style::Member, 1, 1, |arguments| part(arguments, |version| version.patch)),
        ("isGreaterThan", Style::Member, 2, 2, |arguments| {
            Ok(order(arguments).map(|order| Value::Bool(order.is_gt())))
        }),
        ("isLessThan", Style::Member, 2, 2, |arguments| {
            Ok(order(arguments).map(|order| Value::Bool(order.is_lt())))
        }),
        ("compareTo", Style::Member, 2, 2, |arguments| {
            Ok(order(arguments).map(|order| Value::Int(order as i64)))
        }),
    ];

fn read(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Some(version) = parsed(arguments) else { return Ok(None) };
    let version = version.map_err(|error| unreadable("semver", error))?;
    Ok(Some(Value::Version(Arc::new(version))))
}

fn is_version(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    Ok(parsed(arguments).map(|version| Value::Bool(version.is_ok())))
}

/// The second argument: whether a version may have a leading `v`, leading zeros, and fewer than three numbers.
fn parsed(arguments: &[Value]) -> Option<Result<Version, semver::Error>> {
    match arguments {
        [Value::Text(text)] | [Value::Text(text), Value::Bool(false)] => Some(Version::parse(text)),
        [Value::Text(text), Value::Bool(true)] => Some(Version::parse(&normalized(text))),
        _ => None,
    }
}

fn normalized(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let mut parts: Vec<_> = numbers.split('.').map(without_zeros).collect();
    while parts.len() < 3 {
        parts.push("0");
    }
    parts.join(".") + rest
}

fn without_zeros(number: &str) -> &str {
    match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        trimmed => trimmed,
    }
}

fn part(arguments: &[Value], part: fn(&Version) -> u64) -> Result<Option<Value>, EvaluationError> {
    let Value::Version(version) = &arguments[0] else { return Ok(None) };
    let number = i64::try_from(part(version)).map_err(|error| unreadable("semver", error))?;
    Ok(Some(Value::Int(number)))
}

fn order(arguments: &[Value]) -> Option<Ordering> {
    match (&arguments[0], &arguments[1]) {
        (Value::Version(a), Value::Version(b)) => Some(a.cmp_precedence(b)),
        _ => None,
    }
}
