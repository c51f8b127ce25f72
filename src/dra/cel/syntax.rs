//! The tree of an expression.

use std::sync::Arc;

use super::{CompileError, function::Function, value::Value};

/// How deeply expressions may be nested.
pub(super) const DEEPEST: u16 = 200;

/// A part of an expression.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) kind: Box<Kind>,
    /// How many levels it has.
    depth: u16,
}

/// What a part of an expression is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Literal(Value),
    /// The variable `device`.
    Device,
    /// A variable that the expression itself declares.
    Variable(Arc<str>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    /// `operand.field`, and `operand.?field`.
    Select {
        operand: Node,
        field: Arc<str>,
        access: Access,
    },
    /// `has(operand.field)`.
    Has {
        operand: Node,
        field: Arc<str>,
    },
    /// `operand[key]`, and `operand[?key]`.
    Index {
        operand: Node,
        key: Node,
        access: Access,
    },
    Not(Node),
    Negate(Node),
    Binary(Operator, Node, Node),
    And(Vec<Node>),
    Or(Vec<Node>),
    Conditional {
        condition: Node,
        then: Node,
        otherwise: Node,
    },
    Call {
        function: Function,
        arguments: Vec<Node>,
    },
    /// `cel.bind(variable, value, body)`.
    Bind {
        variable: Arc<str>,
        value: Node,
        body: Node,
    },
    Comprehension {
        over: Node,
        variable: Arc<str>,
        test: Option<Node>,
        body: Node,
        fold: Fold,
    },
}

/// Whether what is missing is an error or an absent optional value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    Required,
    Optional,
}

/// What is made of the elements of a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fold {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

/// An operator with two operands, except for those that leave the second one out where they can.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

impl Node {
    /// A part one level above its own parts; an error where that is too deep.
    pub(super) fn new(kind: Kind) -> Result<Self, CompileError> {
        let depth = kind.parts().iter().map(|part| part.depth).max().unwrap_or(0) + 1;
        if depth > DEEPEST {
            return Err(CompileError::TooDeep(DEEPEST));
        }
        Ok(Self { kind: Box::new(kind), depth })
    }
}

impl Kind {
    fn parts(&self) -> Vec<&Node> {
        match self {
            Self::Literal(_) | Self::Device | Self::Variable(_) => Vec::new(),
            Self::List(parts) | Self::And(parts) | Self::Or(parts) => parts.iter().collect(),
            Self::Call { arguments, .. } => arguments.iter().collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Self::Index { operand, key, .. } => vec![operand, key],
            Self::Select { operand, .. }
            | Self::Has { operand, .. }
            | Self::Not(operand)
            | Self::Negate(operand) => vec![operand],
            Self::Binary(_, left, right) => vec![left, right],
            Self::Conditional { condition, then, otherwise } => vec![condition, then, otherwise],
            Self::Bind { value, body, .. } => vec![value, body],
            Self::Comprehension { over, test, body, .. } => [over, body].into_iter().chain(test).collect(),
        }
    }
}
