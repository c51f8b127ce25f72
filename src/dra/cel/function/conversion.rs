//! Functions that turn a value of one type into one of another, and those of optional values.

use super::{EvaluationError, Row, Style, Value, unreadable};

pub(super) const TABLE: &[Row] = &[
    ("bool", Style::Global, 1, 1, to_bool),
    ("double", Style::Global, 1, 1, to_double),
    ("dyn", Style::Global, 1, 1, |arguments| Ok(Some(arguments[0].clone()))),
    ("int", Style::Global, 1, 1, to_int),
    ("string", Style::Global, 1, 1, to_text),
    ("type", Style::Global, 1, 1, |arguments| Ok(Some(Value::Type(arguments[0].type_name())))),
    ("uint", Style::Global, 1, 1, to_uint),
    ("optional.of", Style::Global, 1, 1, |arguments| {
        Ok(Some(Value::Optional(Some(arguments[0].clone().into()))))
    }),
    ("optional.none", Style::Global, 0, 0, |_| Ok(Some(Value::Optional(None)))),
    ("hasValue", Style::Member, 1, 1, has_value),
    ("value", Style::Member, 1, 1, value),
    ("or", Style::Member, 2, 2, or),
    ("orValue", Style::Member, 2, 2, or_value),
];

const RANGE: EvaluationError = EvaluationError::Arithmetic("the number is out of range");

fn to_bool(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    match &arguments[0] {
        Value::Bool(value) => Ok(Some(Value::Bool(*value))),
        Value::Text(text) => match &**text {
            "true" | "True" | "TRUE" | "t" | "1" => Ok(Some(Value::Bool(true))),
            "false" | "False" | "FALSE" | "f" | "0" => Ok(Some(Value::Bool(false))),
            _ => Err(unreadable("bool", "the text is neither true nor false")),
        },
        _ => Ok(None),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a floating point number is asked for")]
fn to_double(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    Ok(Some(Value::Double(match &arguments[0] {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::Uint(number) => *number as f64,
        Value::Text(text) => text.parse().map_err(|error| unreadable("double", error))?,
        _ => return Ok(None),
    })))
}

#[expect(clippy::cast_possible_truncation, reason = "the range is compared before")]
fn to_int(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    Ok(Some(Value::Int(match &arguments[0] {
        Value::Int(number) => *number,
        Value::Uint(number) => i64::try_from(*number).map_err(|_| RANGE)?,
        Value::Double(number) if *number > -LIMIT && *number < LIMIT => *number as i64,
        Value::Double(_) => return Err(RANGE),
        Value::Text(text) => text.parse().map_err(|error| unreadable("int", error))?,
        _ => return Ok(None),
    })))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is compared before")]
fn to_uint(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    Ok(Some(Value::Uint(match &arguments[0] {
        Value::Uint(number) => *number,
        Value::Int(number) => u64::try_from(*number).map_err(|_| RANGE)?,
        Value::Double(number) if *number >= 0.0 && *number < LIMIT => *number as u64,
        Value::Double(_) => return Err(RANGE),
        Value::Text(text) => text.parse().map_err(|error| unreadable("uint", error))?,
        _ => return Ok(None),
    })))
}

fn to_text(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    Ok(Some(Value::text(&match &arguments[0] {
        Value::Text(text) => return Ok(Some(Value::Text(text.clone()))),
        Value::Bool(value) => value.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Version(version) => version.to_string(),
        _ => return Ok(None),
    })))
}

fn has_value(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Optional(inner) = &arguments[0] else { return Ok(None) };
    Ok(Some(Value::Bool(inner.is_some())))
}

fn value(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let Value::Optional(inner) = &arguments[0] else { return Ok(None) };
    let inner = inner.as_ref().ok_or_else(|| unreadable("value", "the optional value is absent"))?;
    Ok(Some(Value::clone(inner)))
}

fn or(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    Ok(match (&arguments[0], &arguments[1]) {
        (Value::Optional(Some(_)), Value::Optional(_)) => Some(arguments[0].clone()),
        (Value::Optional(None), other @ Value::Optional(_)) => Some(other.clone()),
        _ => None,
    })
}

fn or_value(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    Ok(match &arguments[0] {
        Value::Optional(Some(inner)) => Some(Value::clone(inner)),
        Value::Optional(None) => Some(arguments[1].clone()),
        _ => None,
    })
}
