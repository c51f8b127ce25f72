//! CEL expressions about one device, as class and request selectors hold them: compiled once, then true or false of each device.
//!
//! What can't be evaluated is an error, and never true or false. An expression has the limits that Kubernetes gives it
//! (kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, 1.36): 10 KiB of text, and a cost of 1,000,000 at each evaluation.
//! Language: github.com/google/cel-spec `doc/langdef.md`; functions of Kubernetes: `staging/src/k8s.io/apiserver/pkg/cel/library`.
//! Durations, timestamps, bytes, addresses and URLs are not served: an expression that uses them does not compile.

mod evaluate;
mod function;
mod operator;
mod parse;
mod syntax;
mod token;
mod value;

use evaluate::Evaluation;
use syntax::Node;

pub use value::{Map, Value};

/// How many bytes an expression may have.
pub const LONGEST: usize = 10 * 1024;

/// What one evaluation may cost: a step of the evaluation, or an element or a character that it reads or makes.
pub const COST_LIMIT: u64 = 1_000_000;

/// An expression that can be evaluated.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Node,
}

/// Why a text is no expression that can be evaluated.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum CompileError {
    /// It is longer than [`LONGEST`].
    #[error("the expression has {0} bytes, and {LONGEST} are allowed")]
    TooLong(usize),
    /// It is not written as CEL.
    #[error("at character {at}: {message}")]
    Syntax {
        /// Where, from 1.
        at: usize,
        /// What is wrong.
        message: String,
    },
    /// It names a variable that does not exist.
    #[error("undeclared reference to '{0}'")]
    UndeclaredReference(String),
    /// It calls a function that does not exist or is not served, or one with other arguments.
    #[error("undeclared reference to the function '{name}' with {arguments} arguments")]
    UndeclaredFunction {
        /// The function.
        name: String,
        /// With how many arguments it is called.
        arguments: usize,
    },
    /// Its parts are nested too deeply.
    #[error("the expression is nested more than {0} levels deep")]
    TooDeep(u16),
}

/// Why an expression has no value for a device.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// A map has no such key: mostly an attribute that the device lacks.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// A list has no such element.
    #[error("index out of bounds: {0}")]
    IndexOutOfBounds(i64),
    /// An operator or a function can't be applied to values of these types.
    #[error("no such overload: {name}({})", types.join(", "))]
    NoSuchOverload {
        /// The operator or function.
        name: &'static str,
        /// The types of its arguments.
        types: Vec<&'static str>,
    },
    /// A number is too large, or a division is by zero.
    #[error("{0}")]
    Arithmetic(&'static str),
    /// A text is not what a function reads.
    #[error("{function}: {message}")]
    Unreadable {
        /// The function.
        function: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The result is neither true nor false.
    #[error("the result is of type {0}, and must be bool")]
    NotBool(&'static str),
    /// The evaluation costs more than [`COST_LIMIT`].
    #[error("the expression costs more than {COST_LIMIT}")]
    TooExpensive,
    /// An attribute of the device has no value that this version of the API knows.
    #[error("attribute {0}: unsupported attribute value")]
    UnsupportedAttribute(String),
    /// An attribute or a capacity of the device can't be read.
    #[error("{name}: {message}")]
    UnreadableDevice {
        /// The attribute or capacity.
        name: String,
        /// What is wrong.
        message: String,
    },
}

impl Expression {
    /// Reads an expression about the variable `device`.
    pub fn compile(text: &str) -> Result<Self, CompileError> {
        if text.len() > LONGEST {
            return Err(CompileError::TooLong(text.len()));
        }
        Ok(Self { root: parse::parse(text)? })
    }

    /// Whether the expression is true of a device.
    pub fn is_true(&self, device: &Value) -> Result<bool, EvaluationError> {
        match Evaluation::new(device).value(&self.root)? {
            Value::Bool(result) => Ok(result),
            other => Err(EvaluationError::NotBool(other.type_name())),
        }
    }
}

#[cfg(test)]
mod tests;
