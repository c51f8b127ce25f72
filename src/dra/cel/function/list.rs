//! Functions of lists and maps, and `includes`, which is the same for an attribute with one value and with several.

use std::cmp::Ordering;

use super::{EvaluationError, Row, Style, Value, unreadable};
use crate::dra::cel::{operator, syntax::Operator};

pub(super) const TABLE: &[Row] = &[
    ("size", Style::Global, 1, 1, size),
    ("size", Style::Member, 1, 1, size),
    ("includes", Style::Member, 2, 2, includes),
    ("indexOf", Style::Member, 2, 2, |arguments| Ok(position(arguments, |found| found.next()))),
    ("lastIndexOf", Style::Member, 2, 2, |arguments| Ok(position(arguments, |found| found.last()))),
    ("isSorted", Style::Member, 1, 1, is_sorted),
    ("min", Style::Member, 1, 1, |arguments| extreme(arguments, "min", Ordering::is_lt)),
    ("max", Style::Member, 1, 1, |arguments| extreme(arguments, "max", Ordering::is_gt)),
    ("sum", Style::Member, 1, 1, sum),
];

fn size(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let count = match &arguments[0] {
        Value::List(elements) => elements.len(),
        Value::Map(map) => map.len(),
        Value::Text(text) => text.chars().count(),
        _ => return Ok(None),
    };
    Ok(Some(Value::Int(i64::try_from(count).unwrap_or(i64::MAX))))
}

/// Kubernetes, KEP-5491: one of the values where there are several, else the value itself.
fn includes(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let found = match &arguments[0] {
        Value::List(elements) => elements.iter().any(|element| element.equals(&arguments[1])),
        value => value.equals(&arguments[1]),
    };
    Ok(Some(Value::Bool(found)))
}

fn position(
    arguments: &[Value],
    choose: fn(&mut dyn Iterator<Item = usize>) -> Option<usize>,
) -> Option<Value> {
    let Value::List(elements) = &arguments[0] else { return None };
    let mut found = (0..elements.len()).filter(|at| elements[*at].equals(&arguments[1]));
    let at = choose(&mut found).and_then(|at| i64::try_from(at).ok());
    Some(Value::Int(at.unwrap_or(-1)))
}

fn is_sorted(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::List(elements) = &arguments[0] else { return Ok(None) };
    let orders: Option<Vec<_>> = elements.windows(2).map(|pair| pair[0].order(&pair[1])).collect();
    Ok(orders.map(|orders| Value::Bool(orders.iter().all(|order| order.is_le()))))
}

fn extreme(
    arguments: &[Value],
    name: &'static str,
    is_better: fn(Ordering) -> bool,
) -> Result<Option<Value>, EvaluationError> {
    let Value::List(elements) = &arguments[0] else { return Ok(None) };
    let mut best = elements.first().ok_or_else(|| unreadable(name, "the list is empty"))?;
    for element in elements.iter() {
        let Some(order) = element.order(best) else { return Ok(None) };
        if is_better(order) {
            best = element;
        }
    }
    Ok(Some(best.clone()))
}

fn sum(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::List(elements) = &arguments[0] else { return Ok(None) };
    let mut elements = elements.iter();
    let Some(first) = elements.next() else { return Ok(Some(Value::Int(0))) };
    let sum = elements.try_fold(first.clone(), |sum, next| operator::apply(Operator::Add, &sum, next));
    sum.map(Some)
}
