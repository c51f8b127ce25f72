//! Reads an expression: operators by their precedence, macros as the parts that they stand for.

mod macros;

use std::sync::Arc;

use super::{
    CompileError,
    function::{Function, Style},
    syntax::{Access, DEEPEST, Kind, Node, Operator},
    token::{Token, Word, tokens},
    value::Value,
};

/// The tree of a text.
pub(super) fn parse(text: &str) -> Result<Node, CompileError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, next: 0, variables: Vec::new(), nesting: 0 };
    let root = parser.expression()?;
    match parser.word() {
        Word::End => Ok(root),
        _ => Err(parser.unexpected()),
    }
}

/// The types that an expression can name.
const TYPES: &[&str] =
    &["bool", "double", "int", "list", "map", "null_type", "optional_type", "string", "type", "uint"];

/// Words that can't be names of variables.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "package",
    "return",
    "var",
    "void",
    "while",
];

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    /// The variables that surround the next word, the innermost last.
    variables: Vec<Arc<str>>,
    nesting: u16,
}

impl Parser {
    fn word(&self) -> &Word {
        &self.tokens[self.next].word
    }

    fn behind(&self, ahead: usize) -> &Word {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.next + ahead).min(last)].word
    }

    fn advance(&mut self) -> Word {
        let word = self.tokens[self.next].word.clone();
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        word
    }

    fn error(&self, message: impl Into<String>) -> CompileError {
        CompileError::Syntax { at: self.tokens[self.next].at, message: message.into() }
    }

    fn unexpected(&self) -> CompileError {
        self.error(match self.word() {
            Word::End => "the expression ends too early".to_owned(),
            Word::Name(name) | Word::QuotedName(name) => format!("unexpected name {name}"),
            Word::Sign(sign) => format!("unexpected {sign}"),
            _ => "unexpected literal".to_owned(),
        })
    }

    fn is_next(&self, sign: &str) -> bool {
        matches!(self.word(), Word::Sign(next) if *next == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let taken = self.is_next(sign);
        if taken {
            self.advance();
        }
        taken
    }

    fn expect(&mut self, sign: &str) -> Result<(), CompileError> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// A whole expression; the lowest precedence is that of the conditional operator.
    fn expression(&mut self) -> Result<Node, CompileError> {
        self.nesting += 1;
        if self.nesting > DEEPEST {
            return Err(CompileError::TooDeep(DEEPEST));
        }
        let condition =
            self.chain("||", Kind::Or, |parser| parser.chain("&&", Kind::And, |parser| parser.binary(0)))?;
        let node = if self.take("?") {
            let then = self.expression()?;
            self.expect(":")?;
            let otherwise = self.expression()?;
            Node::new(Kind::Conditional { condition, then, otherwise })?
        } else {
            condition
        };
        self.nesting -= 1;
        Ok(node)
    }

    /// Operands between one sign, as one part.
    fn chain(
        &mut self,
        sign: &str,
        kind: fn(Vec<Node>) -> Kind,
        mut operand: impl FnMut(&mut Self) -> Result<Node, CompileError>,
    ) -> Result<Node, CompileError> {
        let first = operand(self)?;
        if !self.is_next(sign) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take(sign) {
            operands.push(operand(self)?);
        }
        Node::new(kind(operands))
    }

    /// Operators of this precedence and of higher ones.
    fn binary(&mut self, precedence: usize) -> Result<Node, CompileError> {
        let Some(operators) = PRECEDENCE.get(precedence) else { return self.unary() };
        let mut left = self.binary(precedence + 1)?;
        while let Some(operator) = self.operator(operators) {
            self.advance();
            let right = self.binary(precedence + 1)?;
            left = Node::new(Kind::Binary(operator, left, right))?;
        }
        Ok(left)
    }

    fn operator(&self, among: &[Operator]) -> Option<Operator> {
        let next = match self.word() {
            Word::Sign(sign) => *sign,
            Word::Name(name) if name == "in" => "in",
            _ => return None,
        };
        among.iter().copied().find(|operator| operator.name() == next)
    }

    fn unary(&mut self) -> Result<Node, CompileError> {
        if self.is_next("-")
            && let Some(number) = self.negative_literal()
        {
            return self.members(Node::new(Kind::Literal(number))?);
        }
        let (sign, kind): (_, fn(Node) -> Kind) = match self.word() {
            Word::Sign("!") => ("!", Kind::Not),
            Word::Sign("-") => ("-", Kind::Negate),
            _ => {
                let primary = self.primary()?;
                return self.members(primary);
            }
        };
        let mut count = 0;
        while self.take(sign) {
            count += 1;
        }
        let mut node = self.unary()?;
        for _ in 0..count {
            node = Node::new(kind(node))?;
        }
        Ok(node)
    }

    /// A number with a minus sign: the smallest number has no positive counterpart.
    fn negative_literal(&mut self) -> Option<Value> {
        let value = match self.behind(1) {
            Word::Int(number) => Value::Int(0_i64.checked_sub_unsigned(*number)?),
            Word::Double(number) => Value::Double(-number),
            _ => return None,
        };
        self.next += 2;
        Some(value)
    }

    fn primary(&mut self) -> Result<Node, CompileError> {
        let literal = match self.word() {
            Word::Sign("(") => {
                self.advance();
                let inner = self.expression()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Word::Sign("[") => {
                self.advance();
                return Node::new(Kind::List(self.until("]", Self::expression)?));
            }
            Word::Sign("{") => {
                self.advance();
                return Node::new(Kind::Map(self.until("}", Self::entry)?));
            }
            Word::Name(name) => {
                let name = name.clone();
                return self.named(&name);
            }
            Word::Int(number) => match i64::try_from(*number) {
                Ok(number) => Value::Int(number),
                Err(_) => return Err(self.error("the number is out of range")),
            },
            Word::Uint(number) => Value::Uint(*number),
            Word::Double(number) => Value::Double(*number),
            Word::Text(text) => Value::text(text),
            Word::QuotedName(_) | Word::Sign(_) | Word::End => return Err(self.unexpected()),
        };
        self.advance();
        Node::new(Kind::Literal(literal))
    }

    fn entry(&mut self) -> Result<(Node, Node), CompileError> {
        let key = self.expression()?;
        self.expect(":")?;
        Ok((key, self.expression()?))
    }

    /// What stands between commas up to a sign; a comma may stand before the sign.
    fn until<T>(
        &mut self,
        end: &str,
        one: fn(&mut Self) -> Result<T, CompileError>,
    ) -> Result<Vec<T>, CompileError> {
        let mut found = Vec::new();
        while !self.take(end) {
            found.push(one(self)?);
            if !self.is_next(end) {
                self.expect(",")?;
            }
        }
        Ok(found)
    }

    /// A variable, a type, a literal that is a word, or a call of a function.
    fn named(&mut self, name: &str) -> Result<Node, CompileError> {
        if matches!((name, self.behind(1)), ("cel" | "optional", Word::Sign("."))) {
            return self.qualified(name);
        }
        if RESERVED.contains(&name) {
            return Err(self.unexpected());
        }
        self.advance();
        if self.take("(") {
            if name == "has" {
                return self.has();
            }
            let arguments = self.until(")", Self::expression)?;
            return call(name, Style::Global, arguments);
        }
        if let Some(variable) = self.variables.iter().rev().find(|known| &***known == name) {
            return Node::new(Kind::Variable(variable.clone()));
        }
        let type_name = TYPES.iter().find(|known| **known == name);
        Node::new(match (name, type_name) {
            ("device", _) => Kind::Device,
            ("true", _) => Kind::Literal(Value::Bool(true)),
            ("false", _) => Kind::Literal(Value::Bool(false)),
            ("null", _) => Kind::Literal(Value::Null),
            (_, Some(name)) => Kind::Literal(Value::Type(name)),
            _ => return Err(CompileError::UndeclaredReference(name.to_owned())),
        })
    }

    /// `cel.bind(…)`, `optional.of(…)` and the like.
    fn qualified(&mut self, namespace: &str) -> Result<Node, CompileError> {
        self.next += 2;
        let Word::Name(name) = self.advance() else { return Err(self.unexpected()) };
        self.expect("(")?;
        if (namespace, name.as_str()) == ("cel", "bind") {
            return self.bind();
        }
        let arguments = self.until(")", Self::expression)?;
        call(&format!("{namespace}.{name}"), Style::Global, arguments)
    }

    /// What is selected of a value, and what is called on it.
    fn members(&mut self, mut node: Node) -> Result<Node, CompileError> {
        loop {
            node = if self.take(".") {
                let access = self.access();
                self.member(node, access)?
            } else if self.take("[") {
                let access = self.access();
                let key = self.expression()?;
                self.expect("]")?;
                Node::new(Kind::Index { operand: node, key, access })?
            } else {
                return Ok(node);
            };
        }
    }

    fn access(&mut self) -> Access {
        if self.take("?") { Access::Optional } else { Access::Required }
    }

    fn member(&mut self, operand: Node, access: Access) -> Result<Node, CompileError> {
        let field = match self.word() {
            Word::Name(name) | Word::QuotedName(name) => Arc::from(name.as_str()),
            _ => return Err(self.unexpected()),
        };
        let callable = matches!(self.word(), Word::Name(_)) && access == Access::Required;
        self.advance();
        if !(callable && self.take("(")) {
            return Node::new(Kind::Select { operand, field, access });
        }
        if let Some(fold) = macros::fold(&field) {
            return self.comprehension(operand, fold);
        }
        let mut arguments = vec![operand];
        arguments.extend(self.until(")", Self::expression)?);
        call(&field, Style::Member, arguments)
    }
}

/// From the lowest to the highest.
const PRECEDENCE: &[&[Operator]] = &[
    &[
        Operator::Equal,
        Operator::NotEqual,
        Operator::Less,
        Operator::LessOrEqual,
        Operator::Greater,
        Operator::GreaterOrEqual,
        Operator::In,
    ],
    &[Operator::Add, Operator::Subtract],
    &[Operator::Multiply, Operator::Divide, Operator::Remainder],
];

fn call(name: &str, style: Style, arguments: Vec<Node>) -> Result<Node, CompileError> {
    let count = arguments.len();
    let function = Function::named(name, style, count).ok_or_else(|| CompileError::UndeclaredFunction {
        name: name.to_owned(),
        arguments: count - usize::from(style == Style::Member),
    })?;
    Node::new(Kind::Call { function, arguments })
}
