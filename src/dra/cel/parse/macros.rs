//! The macros of an expression: calls that declare variables, and `has`.

use std::sync::Arc;

use super::Parser;
use crate::dra::cel::{
    CompileError,
    syntax::{Access, Fold, Kind, Node},
    token::Word,
};

/// What the macro of this name makes of the elements of a list.
pub(super) fn fold(name: &str) -> Option<Fold> {
    Some(match name {
        "all" => Fold::All,
        "exists" => Fold::Exists,
        "exists_one" | "existsOne" => Fold::ExistsOne,
        "filter" => Fold::Filter,
        "map" => Fold::Map,
        _ => return None,
    })
}

impl Parser {
    /// The argument of `has` behind its bracket, which must be a field.
    pub(super) fn has(&mut self) -> Result<Node, CompileError> {
        let argument = self.expression()?;
        self.expect(")")?;
        match *argument.kind {
            Kind::Select { operand, field, access: Access::Required } => {
                Node::new(Kind::Has { operand, field })
            }
            _ => Err(self.error("has() needs a field, such as has(device.attributes[\"domain\"].name)")),
        }
    }

    /// The arguments of `cel.bind` behind its bracket.
    pub(super) fn bind(&mut self) -> Result<Node, CompileError> {
        let variable = self.declared()?;
        let value = self.expression()?;
        self.expect(",")?;
        let body = self.within(&variable, Self::expression)?;
        self.expect(")")?;
        Node::new(Kind::Bind { variable, value, body })
    }

    /// The arguments of a macro over a list, behind its bracket. `map` may have a test before its body.
    pub(super) fn comprehension(&mut self, over: Node, fold: Fold) -> Result<Node, CompileError> {
        let variable = self.declared()?;
        let mut body = self.within(&variable, Self::expression)?;
        let mut test = None;
        if fold == Fold::Map && self.take(",") {
            test = Some(body);
            body = self.within(&variable, Self::expression)?;
        }
        self.expect(")")?;
        Node::new(Kind::Comprehension { over, variable, test, body, fold })
    }

    /// The name of a variable and the comma behind it.
    fn declared(&mut self) -> Result<Arc<str>, CompileError> {
        let Word::Name(name) = self.word() else { return Err(self.error("a variable's name is expected")) };
        let name = Arc::from(name.as_str());
        self.advance();
        self.expect(",")?;
        Ok(name)
    }

    fn within(
        &mut self,
        variable: &Arc<str>,
        part: fn(&mut Self) -> Result<Node, CompileError>,
    ) -> Result<Node, CompileError> {
        self.variables.push(variable.clone());
        let node = part(self)?;
        self.variables.pop();
        Ok(node)
    }
}
