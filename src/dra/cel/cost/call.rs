//! What operators and functions cost, and how large their results can be.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue, operators},
};

use super::{CostBound, Estimate, bound::CHARACTERS, is_path};
use crate::dra::cel::function::{FunctionOutcome, Style, outcome};

/// What it costs to compile a regular expression, whatever it is: it is done at each evaluation.
const COMPILED: u64 = 1_000;

/// What it costs to look up a time zone: it is done at each evaluation.
const LOOKED_UP: u64 = 1_000;

impl Estimate {
    pub(super) fn operator(&mut self, name: &str, operands: &[IdedExpr]) -> CostBound {
        if let ([condition, then, otherwise], operators::CONDITIONAL) = (operands, name) {
            self.value(condition);
            let (then_cost, then) = self.apart(Vec::new(), |estimate| estimate.value(then));
            let (otherwise_cost, otherwise) = self.apart(Vec::new(), |estimate| estimate.value(otherwise));
            self.pay(then_cost.max(otherwise_cost));
            return then.or(&otherwise);
        }
        let bounds: Vec<CostBound> = operands.iter().map(|operand| self.value(operand)).collect();
        let [left, right] = &bounds[..] else { return CostBound::single() };
        match name {
            operators::ADD => {
                let sum = left.and(right);
                self.pay(sum.size);
                sum
            }
            operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT => {
                let found = left.part();
                let borrowed = name == operators::INDEX && is_path(&operands[0]);
                // The error about a key of a wrong type quotes what has no such keys.
                let quoted = if is_plain_key(&operands[1]) { 0 } else { left.size };
                let copied = if borrowed { 1 } else { found.size };
                self.pay(right.size.saturating_add(copied).saturating_add(quoted));
                found
            }
            operators::LOGICAL_AND | operators::LOGICAL_OR => CostBound::single(),
            operators::EQUALS | operators::NOT_EQUALS => {
                self.pay(left.size.min(right.size));
                CostBound::single()
            }
            // Where the values have no order, the error quotes both.
            _ => {
                self.pay(left.size.max(right.size));
                CostBound::single()
            }
        }
    }

    pub(super) fn function(&mut self, name: &str, how: (Style, usize), call: &CallExpr) -> CostBound {
        let (style, count) = how;
        let receiver = call.target.as_deref().filter(|_| style == Style::Member);
        let arguments: Vec<CostBound> =
            receiver.into_iter().chain(&call.args).map(|argument| self.value(argument)).collect();
        for argument in &arguments {
            self.pay(argument.size);
        }
        let argument = |at: usize| arguments.get(at).cloned().unwrap_or_else(CostBound::single);
        let (first, second) = (argument(0), argument(1));
        let places = first.length.saturating_add(1);
        // As Kubernetes counts it: ten characters of a text are a step for every four of the pattern.
        let matching = (places / CHARACTERS + 1).saturating_mul(second.length / 4 + 1);
        let matching = matching.saturating_add(COMPILED);
        let result = match outcome(name, style, count).unwrap_or(FunctionOutcome::Single) {
            FunctionOutcome::Single => CostBound::single(),
            FunctionOutcome::Spelled => CostBound::number().or(&first),
            FunctionOutcome::First => first,
            FunctionOutcome::Formatted => second.formatted(&first),
            FunctionOutcome::Reasons => second.reasons(),
            FunctionOutcome::Escaped => CostBound::text(first.length.saturating_mul(3).saturating_add(2)),
            FunctionOutcome::Crossed => {
                self.pay(places.saturating_mul(second.size).saturating_mul(2));
                CostBound::single()
            }
            FunctionOutcome::OneOf => arguments.iter().fold(first.part(), |largest, one| largest.or(one)),
            FunctionOutcome::Element => first.part(),
            FunctionOutcome::Flattened if count == 1 => first.flattened(),
            FunctionOutcome::Flattened => first.flattened_deep(),
            FunctionOutcome::Unique => {
                self.pay(places.saturating_mul(first.size));
                first
            }
            FunctionOutcome::Sorted => {
                self.pay(first.size.saturating_mul(u64::from(places.ilog2()) + 1));
                first
            }
            FunctionOutcome::SortedBy => {
                self.pay(second.size.saturating_mul(u64::from(places.ilog2()) + 1));
                first
            }
            FunctionOutcome::Counted => CostBound::of(CostBound::single(), highest(call.args.first())),
            FunctionOutcome::Place => {
                self.pay(places.saturating_mul(second.size));
                CostBound::single()
            }
            FunctionOutcome::Replaced => {
                CostBound::text(places.saturating_mul(argument(2).length).saturating_add(first.length))
            }
            FunctionOutcome::Parts => CostBound::parts(places, first.length),
            FunctionOutcome::Joined => {
                let joined = first.size.saturating_mul(CHARACTERS);
                CostBound::text(joined.saturating_add(places.saturating_mul(second.length)))
            }
            FunctionOutcome::Matched => {
                self.pay(matching);
                CostBound::single()
            }
            FunctionOutcome::Found => {
                self.pay(matching);
                first
            }
            FunctionOutcome::AllFound => {
                self.pay(matching);
                CostBound::parts(places, first.length)
            }
            FunctionOutcome::Zoned => {
                self.pay(LOOKED_UP);
                CostBound::single()
            }
        };
        self.pay(result.size);
        result
    }
}

/// Up to which number a list counts; what is no literal can be any number.
fn highest(number: Option<&IdedExpr>) -> u64 {
    match number.map(|node| &node.expr) {
        Some(Expr::Literal(LiteralValue::Int(number))) => u64::try_from(*number.inner()).unwrap_or(0),
        _ => u64::MAX,
    }
}

/// Whether a key is a literal that a map or a list can have as one.
fn is_plain_key(node: &IdedExpr) -> bool {
    matches!(node.expr, Expr::Literal(LiteralValue::String(_) | LiteralValue::Int(_) | LiteralValue::UInt(_)))
}
