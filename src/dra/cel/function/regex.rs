//! Functions of regular expressions. CEL has the syntax of RE2, and so has the crate.

use regex::{Regex, RegexBuilder};

use super::{EvaluationError, Row, Style, Value, unreadable};

pub(super) const TABLE: &[Row] = &[
    ("matches", Style::Global, 2, 2, matches),
    ("matches", Style::Member, 2, 2, matches),
    ("find", Style::Member, 2, 2, find),
    ("findAll", Style::Member, 2, 3, find_all),
];

/// How many bytes a compiled expression may take.
const LARGEST: usize = 1 << 20;

fn compiled(pattern: &str, function: &'static str) -> Result<Regex, EvaluationError> {
    let built = RegexBuilder::new(pattern).size_limit(LARGEST).dfa_size_limit(LARGEST).build();
    built.map_err(|error| unreadable(function, error))
}

fn matches(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let [Value::Text(text), Value::Text(pattern)] = arguments else { return Ok(None) };
    Ok(Some(Value::Bool(compiled(pattern, "matches")?.is_match(text))))
}

fn find(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let [Value::Text(text), Value::Text(pattern)] = arguments else { return Ok(None) };
    let found = compiled(pattern, "find")?.find(text).map_or("", |found| found.as_str());
    Ok(Some(Value::text(found)))
}

fn find_all(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let (text, pattern, most) = match arguments {
        [Value::Text(text), Value::Text(pattern)] => (text, pattern, usize::MAX),
        [Value::Text(text), Value::Text(pattern), Value::Int(most)] => {
            (text, pattern, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Ok(None),
    };
    let pattern = compiled(pattern, "findAll")?;
    Ok(Some(Value::list(pattern.find_iter(text).take(most).map(|found| Value::text(found.as_str())))))
}
