//! CEL expressions about one device, as class and request selectors hold them: compiled once, then true or false of each device.
//!
//! What can't be evaluated is an error, and never true or false. An expression has the limits that Kubernetes gives it
//! (kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, 1.36): 10 KiB of text, and a cost of 1,000,000, which is estimated before anything is
//! evaluated. The language is that of the crate `cel`; functions of Kubernetes are those of `staging/src/k8s.io/apiserver/pkg/cel/library`.
//! A function that is not in the table of `function.rs` is not served: an expression that calls it does not compile.

mod check;
mod cost;
mod error;
mod function;
mod nesting;
mod reads;
mod two_variables;
mod value;
mod view;

use std::{collections::BTreeSet, fmt, sync::Arc};

use cel::{Context, Env, IdedExpr, Value, common::types::CelBool, parser::PrattParser};

pub use cost::ESTIMATE_LIMIT;
pub use error::{CompileError, EvaluationError};
pub use view::{DeviceValue, DeviceVariable};

/// How many bytes an expression may have.
pub const LONGEST: usize = 10 * 1024;

/// What one evaluation may cost: a step of the evaluation, or an element or ten characters that it reads or makes.
pub const COST_LIMIT: u64 = 1_000_000;

/// The functions that expressions can call. Making them takes longer than reading most expressions does.
#[derive(Clone)]
pub struct Functions(Arc<Env>);

impl Default for Functions {
    fn default() -> Self {
        Self(Arc::new(function::environment()))
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Functions")
    }
}

/// An expression that can be evaluated.
#[derive(Clone)]
pub struct Expression {
    root: Arc<IdedExpr>,
    functions: Functions,
    cost: u64,
    attributes: Option<Arc<BTreeSet<String>>>,
}

impl Expression {
    /// Reads an expression about the variable `device`.
    pub fn compile(text: &str, functions: &Functions) -> Result<Self, CompileError> {
        if text.len() > LONGEST {
            return Err(CompileError::TooLong(text.len()));
        }
        nesting::bound(text)?;
        let parsed = PrattParser::new().enable_optional_syntax(true).parse(text);
        let root = check::checked(parsed.map_err(|errors| error::syntax(&errors))?)?;
        let cost = cost::within_limit(&root)?;
        let attributes = reads::attributes(&root).map(Arc::new);
        Ok(Self { root: Arc::new(root), functions: functions.clone(), cost, attributes })
    }

    /// What one evaluation may cost, as it was estimated.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// The attributes that it can read, by their full names; `None`: it may be any. It can read all else of a device.
    pub fn attributes(&self) -> Option<&BTreeSet<String>> {
        self.attributes.as_deref()
    }

    /// Whether the expression is true of a device.
    pub fn is_true(&self, device: &DeviceVariable) -> Result<bool, EvaluationError> {
        let mut context = Context::with_env(self.functions.0.clone());
        context.set_variable_resolver(device);
        let value = Value::resolve_val(&self.root, &context)?;
        let result = value.downcast_ref::<CelBool>().map(|result| *result.inner());
        result.ok_or_else(|| EvaluationError::NotBool(value.get_type().name().to_owned()))
    }

    /// What the expression makes of a device: one of the values that attributes have, or a list of such.
    pub fn value(&self, device: &DeviceVariable) -> Result<DeviceValue, EvaluationError> {
        let mut context = Context::with_env(self.functions.0.clone());
        context.set_variable_resolver(device);
        let value = Value::resolve_val(&self.root, &context)?;
        DeviceValue::of(&*value)
            .ok_or_else(|| EvaluationError::NoAttribute(value.get_type().name().to_owned()))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Expression").field(&self.root).finish()
    }
}

#[cfg(test)]
mod tests;
