//! The value of an expression for one device, and what it costs.

use std::sync::Arc;

use super::{
    COST_LIMIT, EvaluationError,
    operator::{apply, no_overload},
    syntax::{Access, Fold, Kind, Node},
    value::{Map, Value},
};

/// An evaluation under way.
pub(super) struct Evaluation<'a> {
    device: &'a Value,
    /// The variables of macros, the innermost last.
    variables: Vec<(Arc<str>, Value)>,
    cost: u64,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(device: &'a Value) -> Self {
        Self { device, variables: Vec::new(), cost: 0 }
    }

    /// Adds to the cost.
    pub(super) fn pay(&mut self, cost: u64) -> Result<(), EvaluationError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > COST_LIMIT { Err(EvaluationError::TooExpensive) } else { Ok(()) }
    }

    /// Adds what it costs to read values.
    fn pay_for<'v>(&mut self, values: impl IntoIterator<Item = &'v Value>) -> Result<(), EvaluationError> {
        values.into_iter().try_for_each(|value| self.pay(value.size(COST_LIMIT)))
    }

    pub(super) fn value(&mut self, node: &Node) -> Result<Value, EvaluationError> {
        self.pay(1)?;
        match &*node.kind {
            Kind::Literal(value) => Ok(value.clone()),
            Kind::Device => Ok(self.device.clone()),
            Kind::Variable(name) => Ok(self.variable(name)),
            Kind::List(elements) => {
                let elements = elements.iter().map(|element| self.value(element));
                elements.collect::<Result<Vec<_>, _>>().map(Value::list)
            }
            Kind::Map(entries) => self.map(entries),
            Kind::Select { operand, field, access } => {
                let operand = self.value(operand)?;
                self.found(&operand, &Value::Text(field.clone()), *access)
            }
            Kind::Index { operand, key, access } => {
                let operand = self.value(operand)?;
                let key = self.value(key)?;
                self.found(&operand, &key, *access)
            }
            Kind::Has { operand, field } => self.has(operand, field),
            Kind::Not(operand) => match self.value(operand)? {
                Value::Bool(value) => Ok(Value::Bool(!value)),
                other => Err(no_overload("!", &[&other])),
            },
            Kind::Negate(operand) => negated(&self.value(operand)?),
            Kind::Binary(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.pay_for([&left, &right])?;
                apply(*operator, &left, &right)
            }
            Kind::And(operands) => self.decided(operands, "&&", false),
            Kind::Or(operands) => self.decided(operands, "||", true),
            Kind::Conditional { condition, then, otherwise } => match self.value(condition)? {
                Value::Bool(true) => self.value(then),
                Value::Bool(false) => self.value(otherwise),
                other => Err(no_overload("?:", &[&other])),
            },
            Kind::Call { function, arguments } => {
                let arguments = arguments.iter().map(|argument| self.value(argument));
                let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
                self.pay_for(&arguments)?;
                let value = function.call(&arguments)?;
                self.pay_for([&value])?;
                Ok(value)
            }
            Kind::Bind { variable, value, body } => {
                let value = self.value(value)?;
                self.with(variable, value, body)
            }
            Kind::Comprehension { over, variable, test, body, fold } => {
                let over = self.value(over)?;
                self.comprehension(&over, variable, test.as_ref(), body, *fold)
            }
        }
    }

    fn variable(&self, name: &Arc<str>) -> Value {
        let found = self.variables.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone()).expect("the parser lets through declared variables only")
    }

    fn with(&mut self, variable: &Arc<str>, value: Value, body: &Node) -> Result<Value, EvaluationError> {
        self.variables.push((variable.clone(), value));
        let result = self.value(body);
        self.variables.pop();
        result
    }

    fn map(&mut self, entries: &[(Node, Node)]) -> Result<Value, EvaluationError> {
        let mut found: Vec<(Value, Value)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.value(key)?;
            if !matches!(key, Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Text(_)) {
                return Err(no_overload("{}", &[&key]));
            }
            self.pay(u64::try_from(found.len()).unwrap_or(u64::MAX))?;
            if found.iter().any(|(known, _)| known.equals(&key)) {
                return Err(EvaluationError::Arithmetic("a map has the same key twice"));
            }
            found.push((key, self.value(value)?));
        }
        Ok(Value::Map(Map::new(found)))
    }

    /// An element or a field; with optional access, an optional value.
    fn found(&mut self, operand: &Value, key: &Value, access: Access) -> Result<Value, EvaluationError> {
        self.pay_for([key])?;
        if let Value::Optional(inner) = operand {
            let found = inner.as_ref().map(|inner| element(inner, key));
            return optional(found.unwrap_or(Err(EvaluationError::NoSuchKey(String::new()))));
        }
        let found = element(operand, key);
        if access == Access::Optional { optional(found) } else { found }
    }

    fn has(&mut self, operand: &Node, field: &Arc<str>) -> Result<Value, EvaluationError> {
        let operand = self.value(operand)?;
        let operand = match &operand {
            Value::Optional(None) => return Ok(Value::Bool(false)),
            Value::Optional(Some(inner)) => inner,
            other => other,
        };
        match element(operand, &Value::Text(field.clone())) {
            Ok(_) => Ok(Value::Bool(true)),
            Err(EvaluationError::NoSuchKey(_)) => Ok(Value::Bool(false)),
            Err(error) => Err(error),
        }
    }

    /// `&&` and `||`: one operand that decides is enough, whatever the others are, errors included.
    fn decided(&mut self, operands: &[Node], name: &'static str, by: bool) -> Result<Value, EvaluationError> {
        let mut failed = None;
        for operand in operands {
            match self.value(operand) {
                Ok(Value::Bool(value)) if value == by => return Ok(Value::Bool(by)),
                Ok(Value::Bool(_)) => {}
                Err(EvaluationError::TooExpensive) => return Err(EvaluationError::TooExpensive),
                Ok(other) => failed = failed.or_else(|| Some(no_overload(name, &[&other]))),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!by)), Err)
    }

    fn comprehension(
        &mut self,
        over: &Value,
        variable: &Arc<str>,
        test: Option<&Node>,
        body: &Node,
        fold: Fold,
    ) -> Result<Value, EvaluationError> {
        let elements: Vec<Value> = match over {
            Value::List(elements) => elements.to_vec(),
            Value::Map(map) => map.keys().cloned().collect(),
            other => return Err(no_overload("comprehension", &[other])),
        };
        let mut kept = Vec::new();
        let (mut count, mut failed) = (0, None);
        for element in elements {
            if let Some(test) = test
                && !truth(&self.with(variable, element.clone(), test)?)?
            {
                continue;
            }
            let value = self.with(variable, element.clone(), body);
            match (fold, value.as_ref().map_err(Clone::clone).and_then(truth)) {
                (Fold::Map, _) => kept.push(value?),
                (_, Err(EvaluationError::TooExpensive)) => return Err(EvaluationError::TooExpensive),
                (Fold::All, Ok(false)) => return Ok(Value::Bool(false)),
                (Fold::Exists, Ok(true)) => return Ok(Value::Bool(true)),
                (Fold::All | Fold::Exists, Err(error)) => failed = failed.or(Some(error)),
                (_, Err(error)) => return Err(error),
                (Fold::ExistsOne, Ok(true)) => count += 1,
                (Fold::Filter, Ok(true)) => kept.push(element),
                _ => {}
            }
        }
        match (fold, failed) {
            (Fold::All | Fold::Exists, Some(error)) => Err(error),
            (Fold::All, None) => Ok(Value::Bool(true)),
            (Fold::Exists, None) => Ok(Value::Bool(false)),
            (Fold::ExistsOne, _) => Ok(Value::Bool(count == 1)),
            (Fold::Filter | Fold::Map, _) => Ok(Value::list(kept)),
        }
    }
}

fn truth(value: &Value) -> Result<bool, EvaluationError> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(EvaluationError::NotBool(other.type_name())),
    }
}

fn negated(value: &Value) -> Result<Value, EvaluationError> {
    match value {
        Value::Int(number) => {
            let negated = number.checked_neg().map(Value::Int);
            negated.ok_or(EvaluationError::Arithmetic("integer overflow"))
        }
        Value::Double(number) => Ok(Value::Double(-number)),
        other => Err(no_overload("-", &[other])),
    }
}

/// The value of a key, or the element at a place.
fn element(operand: &Value, key: &Value) -> Result<Value, EvaluationError> {
    match (operand, key) {
        (Value::Map(map), key) => map.get(key).ok_or_else(|| EvaluationError::NoSuchKey(in_words(key))),
        (Value::List(elements), Value::Int(at)) => {
            let found = usize::try_from(*at).ok().and_then(|at| elements.get(at)).cloned();
            found.ok_or(EvaluationError::IndexOutOfBounds(*at))
        }
        _ => Err(no_overload("[]", &[operand, key])),
    }
}

fn in_words(key: &Value) -> String {
    match key {
        Value::Text(text) => text.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        other => other.type_name().to_owned(),
    }
}

/// What is missing is absent; an optional value stays one.
fn optional(found: Result<Value, EvaluationError>) -> Result<Value, EvaluationError> {
    match found {
        Ok(Value::Optional(inner)) => Ok(Value::Optional(inner)),
        Ok(value) => Ok(Value::Optional(Some(value.into()))),
        Err(EvaluationError::NoSuchKey(_) | EvaluationError::IndexOutOfBounds(_)) => {
            Ok(Value::Optional(None))
        }
        Err(error) => Err(error),
    }
}
