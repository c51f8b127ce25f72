//! Why a text is no expression, and why an expression has no value for a device.

use cel::{ExecutionError, parser::ParseErrors};

use super::{LONGEST, cost::ESTIMATE_LIMIT, nesting::DEEPEST};
use crate::excerpt::{VALUE, brief, excerpt};

/// Why a text is no expression that can be evaluated.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum CompileError {
    /// It is longer than [`LONGEST`].
    #[error("the expression has {0} bytes, and {LONGEST} are allowed")]
    TooLong(usize),
    /// It is not written as CEL.
    #[error("at line {line}, column {column}: {message}")]
    Syntax {
        /// Where, from 1; 0: in the expression as a whole.
        line: isize,
        /// Where in the line, from 1.
        column: isize,
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
        /// With how many arguments it is called; the value in front of a member function is one of them.
        arguments: usize,
    },
    /// It has a part of CEL that is not served.
    #[error("{0} are not served")]
    NotServed(&'static str),
    /// Its parts are nested too deeply.
    #[error("the expression is nested more than {DEEPEST} levels deep")]
    TooDeep,
    /// An evaluation could cost more than four times [`super::COST_LIMIT`] by the estimate of this crate.
    #[error("the expression could cost up to {0}, and {ESTIMATE_LIMIT} is allowed")]
    TooExpensive(u64),
}

/// Why an expression has no value for a device.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, thiserror::Error)]
pub enum EvaluationError {
    /// A map has no such key: mostly an attribute that the device lacks.
    #[error("no such key: {0}")]
    NoSuchKey(String),
    /// An operator or a function can't be applied to values of these types.
    #[error("{0}")]
    NoSuchOverload(String),
    /// A number is too large, a place is not in a list, or a text is not what a function reads.
    #[error("{0}")]
    Failed(String),
    /// The result is neither true nor false.
    #[error("the result is of type {0}, and must be bool")]
    NotBool(String),
    /// The result is none that an attribute can have.
    #[error(
        "the result is of type {0}, and must be a bool, an int, a string, a version, or a list of one of these"
    )]
    NoAttribute(String),
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
    /// The device is larger than the API allows, so an evaluation could cost more than was estimated.
    #[error("the device has {0}")]
    LargeDevice(String),
}

impl From<ExecutionError> for EvaluationError {
    fn from(error: ExecutionError) -> Self {
        match error {
            ExecutionError::NoSuchKey(key) => Self::NoSuchKey(excerpt(&key, VALUE).into_owned()),
            ExecutionError::NoSuchOverload(error) => Self::NoSuchOverload(brief(&error)),
            ExecutionError::DivisionByZero(_) => Self::Failed("division by zero".to_owned()),
            ExecutionError::RemainderByZero(_) => Self::Failed("modulus by zero".to_owned()),
            ExecutionError::Overflow(..) => Self::Failed("integer overflow".to_owned()),
            other => Self::Failed(brief(&other)),
        }
    }
}

/// The first of the parser's errors.
pub(super) fn syntax(errors: &ParseErrors) -> CompileError {
    let first = errors.errors.first();
    let ((line, column), message) = first.map_or(((0, 0), String::new()), |one| (one.pos, brief(&one.msg)));
    CompileError::Syntax { line, column, message }
}
