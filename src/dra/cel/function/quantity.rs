//! Functions of Kubernetes quantities (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/quantity.go`).

use super::{EvaluationError, Row, Style, Value, unreadable};
use crate::object::{Amount, Quantity};

pub(super) const TABLE: &[Row] =
    &[
        ("quantity", Style::Global, 1, 1, read),
        ("isQuantity", Style::Global, 1, 1, is_quantity),
        ("sign", Style::Member, 1, 1, sign),
        ("isInteger", Style::Member, 1, 1, is_integer),
        ("asInteger", Style::Member, 1, 1, as_integer),
        ("asApproximateFloat", Style::Member, 1, 1, as_approximate_float),
        ("isGreaterThan", Style::Member, 2, 2, |arguments| {
            Ok(order(arguments).map(|order| Value::Bool(order.is_gt())))
        }),
        ("isLessThan", Style::Member, 2, 2, |arguments| {
            Ok(order(arguments).map(|order| Value::Bool(order.is_lt())))
        }),
        ("compareTo", Style::Member, 2, 2, |arguments| {
            Ok(order(arguments).map(|order| Value::Int(order as i64)))
        }),
        ("add", Style::Member, 2, 2, |arguments| Ok(computed(arguments, Amount::plus))),
        ("sub", Style::Member, 2, 2, |arguments| Ok(computed(arguments, Amount::minus))),
    ];

fn read(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Text(text) = &arguments[0] else { return Ok(None) };
    let amount = Quantity::from(&**text).amount().map_err(|error| unreadable("quantity", error))?;
    Ok(Some(Value::Quantity(amount)))
}

fn is_quantity(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Text(text) = &arguments[0] else { return Ok(None) };
    Ok(Some(Value::Bool(Quantity::from(&**text).amount().is_ok())))
}

fn sign(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Quantity(amount) = &arguments[0] else { return Ok(None) };
    Ok(Some(Value::Int(amount.cmp(&Amount::default()) as i64)))
}

fn is_integer(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Quantity(amount) = &arguments[0] else { return Ok(None) };
    Ok(Some(Value::Bool(integer(*amount).is_some())))
}

fn as_integer(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Quantity(amount) = &arguments[0] else { return Ok(None) };
    let number = integer(*amount).ok_or_else(|| unreadable("asInteger", "the quantity is no integer"))?;
    Ok(Some(Value::Int(number)))
}

fn integer(amount: Amount) -> Option<i64> {
    amount.whole().and_then(|units| i64::try_from(units).ok())
}

fn as_approximate_float(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Quantity(amount) = &arguments[0] else { return Ok(None) };
    Ok(Some(Value::Double(amount.approximate())))
}

fn order(arguments: &[Value]) -> Option<std::cmp::Ordering> {
    match (&arguments[0], &arguments[1]) {
        (Value::Quantity(a), Value::Quantity(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn computed(arguments: &[Value], compute: fn(Amount, Amount) -> Amount) -> Option<Value> {
    match (&arguments[0], &arguments[1]) {
        (Value::Quantity(a), Value::Quantity(b)) => Some(Value::Quantity(compute(*a, *b))),
        (Value::Quantity(a), Value::Int(b)) => Some(Value::Quantity(compute(*a, Amount::units(*b)))),
        _ => None,
    }
}
