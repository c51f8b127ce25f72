//! What operators make of two values.

use super::{EvaluationError, syntax::Operator, value::Value};

/// The value of an operator; both operands have been paid for.
pub(super) fn apply(operator: Operator, left: &Value, right: &Value) -> Result<Value, EvaluationError> {
    let ordered = |holds: fn(std::cmp::Ordering) -> bool| match left.order(right) {
        Some(order) => Ok(Value::Bool(holds(order))),
        None if is_nan(left) || is_nan(right) => Ok(Value::Bool(false)),
        None => Err(no_overload(operator.name(), &[left, right])),
    };
    match operator {
        Operator::Equal => Ok(Value::Bool(left.equals(right))),
        Operator::NotEqual => Ok(Value::Bool(!left.equals(right))),
        Operator::Less => ordered(std::cmp::Ordering::is_lt),
        Operator::LessOrEqual => ordered(std::cmp::Ordering::is_le),
        Operator::Greater => ordered(std::cmp::Ordering::is_gt),
        Operator::GreaterOrEqual => ordered(std::cmp::Ordering::is_ge),
        Operator::In => match right {
            Value::List(elements) => Ok(Value::Bool(elements.iter().any(|element| element.equals(left)))),
            Value::Map(map) => Ok(Value::Bool(map.get(left).is_some())),
            _ => Err(no_overload(operator.name(), &[left, right])),
        },
        Operator::Add => match (left, right) {
            (Value::Text(a), Value::Text(b)) => Ok(Value::Text(format!("{a}{b}").into())),
            (Value::List(a), Value::List(b)) => Ok(Value::list(a.iter().chain(b.iter()).cloned())),
            _ => arithmetic(operator, left, right),
        },
        _ => arithmetic(operator, left, right),
    }
}

/// No function or operator of this name takes values of these types.
pub(super) fn no_overload(name: &'static str, arguments: &[&Value]) -> EvaluationError {
    let types = arguments.iter().map(|argument| argument.type_name()).collect();
    EvaluationError::NoSuchOverload { name, types }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Double(number) if number.is_nan())
}

fn arithmetic(operator: Operator, left: &Value, right: &Value) -> Result<Value, EvaluationError> {
    const OVERFLOW: EvaluationError = EvaluationError::Arithmetic("integer overflow");
    let by_zero = matches!(right, Value::Int(0) | Value::Uint(0));
    match (operator, left, right) {
        (Operator::Divide, Value::Int(_) | Value::Uint(_), _) if by_zero => {
            Err(EvaluationError::Arithmetic("division by zero"))
        }
        (Operator::Remainder, Value::Int(_) | Value::Uint(_), _) if by_zero => {
            Err(EvaluationError::Arithmetic("modulus by zero"))
        }
        (_, Value::Int(a), Value::Int(b)) => {
            let number = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            number.map(Value::Int).ok_or(OVERFLOW)
        }
        (_, Value::Uint(a), Value::Uint(b)) => {
            let number = match operator {
                Operator::Add => a.checked_add(*b),
                Operator::Subtract => a.checked_sub(*b),
                Operator::Multiply => a.checked_mul(*b),
                Operator::Divide => a.checked_div(*b),
                _ => a.checked_rem(*b),
            };
            number.map(Value::Uint).ok_or(OVERFLOW)
        }
        (Operator::Add, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Operator::Subtract, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Operator::Multiply, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        (Operator::Divide, Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        _ => Err(no_overload(operator.name(), &[left, right])),
    }
}
