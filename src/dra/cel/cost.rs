//! What an evaluation can cost at most, found before anything is evaluated: as cel-go estimates it for Kubernetes (cel-go `checker/cost.go`).
//!
//! A step costs 1, and so do each element and every ten characters that are read, copied or made. How large a value can be follows from its literals and
//! from the limits of a device; a loop costs its body as often as its list can have elements.

mod bound;
mod call;

use cel::{
    IdedExpr,
    common::ast::{ComprehensionExpr, EntryExpr, Expr, LiteralValue},
};

use self::bound::CostBound;
use super::{
    COST_LIMIT, CompileError,
    check::{called, is_operator},
    function::PAIRS,
    two_variables::{PAIR, is_part_of_pair},
};

/// The most that an evaluation may cost by this estimate. The API server refuses what may cost more than [`COST_LIMIT`] by its own, which is lower:
/// a loop whose variables are numbers costs there two thirds of what it does here. What it admits must be served.
pub const ESTIMATE_LIMIT: u64 = 4 * COST_LIMIT;

/// What an evaluation can cost at most; an expression that could cost more than [`ESTIMATE_LIMIT`] is refused.
pub(super) fn within_limit(root: &IdedExpr) -> Result<u64, CompileError> {
    let mut estimate = Estimate { variables: Vec::new(), cost: 0 };
    estimate.value(root);
    let cost = estimate.cost;
    if cost > ESTIMATE_LIMIT { Err(CompileError::TooExpensive(cost)) } else { Ok(cost) }
}

/// An estimate under way.
struct Estimate {
    /// The variables that the expression declares, the innermost last.
    variables: Vec<(String, CostBound)>,
    cost: u64,
}

impl Estimate {
    fn pay(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    /// Adds the cost of the value, and returns how large it can be.
    fn value(&mut self, node: &IdedExpr) -> CostBound {
        if !is_free(node) {
            self.pay(1);
        }
        match &node.expr {
            Expr::Literal(literal) => literal_bound(literal),
            Expr::Ident(name) => self.variable(name),
            Expr::Select(select) => {
                let operand = self.value(&select.operand);
                let found = match &select.operand.expr {
                    Expr::Ident(name) if self.is_device(name) => CostBound::of_field(&select.field),
                    _ => operand.part(),
                };
                if select.test {
                    return CostBound::single();
                }
                // What belongs to a variable is borrowed; what was made is copied.
                self.pay(if is_path(&select.operand) { 1 } else { found.size });
                found
            }
            Expr::List(list) => {
                let elements: Vec<CostBound> =
                    list.elements.iter().map(|element| self.copied(element)).collect();
                CostBound::list(elements)
            }
            Expr::Map(map) => {
                let entries = map.entries.iter().filter_map(|entry| match &entry.expr {
                    EntryExpr::MapEntry(entry) => Some([&entry.key, &entry.value]),
                    EntryExpr::StructField(_) => None,
                });
                let parts: Vec<CostBound> = entries.flatten().map(|part| self.copied(part)).collect();
                CostBound::list(parts)
            }
            // The pairs are counted where the loop copies them.
            Expr::Call(call) if call.func_name == PAIRS => {
                let bound = call.args.first().map_or_else(CostBound::single, |over| self.value(over));
                bound.pairs()
            }
            Expr::Call(call) => {
                let (name, style, arguments) = called(call);
                if is_operator(&name) {
                    self.operator(&name, &call.args)
                } else {
                    self.function(&name, (style, arguments), call)
                }
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(_) | Expr::Unspecified => CostBound::single(),
        }
    }

    /// The value of an element, which is copied where it is put.
    fn copied(&mut self, node: &IdedExpr) -> CostBound {
        let bound = self.value(node);
        self.pay(bound.size);
        bound
    }

    fn variable(&self, name: &str) -> CostBound {
        let declared = self.variables.iter().rev().find(|(known, _)| known == name);
        match declared {
            Some((_, bound)) => bound.clone(),
            None if name == "device" => CostBound::device(),
            None => CostBound::single(),
        }
    }

    fn is_device(&self, name: &str) -> bool {
        name == "device" && !self.variables.iter().any(|(known, _)| known == name)
    }

    /// The cost of something without adding it, with variables that it alone has.
    fn apart<T>(
        &mut self,
        declared: Vec<(&str, CostBound)>,
        estimate: impl FnOnce(&mut Self) -> T,
    ) -> (u64, T) {
        let (cost, variables) = (std::mem::take(&mut self.cost), self.variables.len());
        self.variables.extend(declared.into_iter().map(|(name, bound)| (name.to_owned(), bound)));
        let found = estimate(self);
        self.variables.truncate(variables);
        (std::mem::replace(&mut self.cost, cost), found)
    }

    /// A loop: its body as often as the list can have elements, each of which is copied into a variable once.
    fn comprehension(&mut self, one: &ComprehensionExpr) -> CostBound {
        if is_part_of_pair(&one.accu_init) {
            // A variable of a loop with two: it is counted with the pair.
            let part = self.variable(PAIR).part();
            let (cost, result) =
                self.apart(vec![(&*one.accu_var, part)], |estimate| estimate.value(&one.result));
            self.pay(cost);
            return result;
        }
        let over = self.value(&one.iter_range);
        let begin = self.copied(&one.accu_init);
        let declared = vec![(&*one.accu_var, begin.clone()), (&*one.iter_var, over.part())];
        let (body, step) = self.apart(declared, |estimate| {
            estimate.value(&one.loop_cond);
            let step = estimate.value(&one.loop_step);
            estimate.pay(step.size - 1);
            step
        });
        self.pay(body.saturating_mul(over.length).saturating_add(over.size));
        // What a loop collects has an element for each turn; whatever else it keeps is no larger after one turn than after all.
        let collects = matches!(one.accu_init.expr, Expr::List(_)) && over.length > 0;
        let end = if collects { CostBound::of(step.part(), over.length) } else { begin.or(&step) };
        let (cost, result) = self.apart(vec![(&*one.accu_var, end)], |estimate| estimate.copied(&one.result));
        self.pay(cost);
        result
    }
}

/// Whether a step is counted with its operands: what only joins them, and what is counted by their sizes.
fn is_free(node: &IdedExpr) -> bool {
    use cel::common::ast::operators::{CONDITIONAL, NOT_STRICTLY_FALSE};
    if let Expr::Comprehension(one) = &node.expr {
        return is_part_of_pair(&one.accu_init);
    }
    let Expr::Call(call) = &node.expr else { return false };
    let joins = call.args.len() == 2 && call.func_name != CONDITIONAL;
    is_operator(&call.func_name) && (joins || call.func_name == NOT_STRICTLY_FALSE)
}

/// Whether a value is part of a variable.
fn is_path(node: &IdedExpr) -> bool {
    match &node.expr {
        Expr::Ident(_) => true,
        Expr::Select(select) => is_path(&select.operand),
        Expr::Call(call) => {
            call.func_name == cel::common::ast::operators::INDEX && call.args.first().is_some_and(is_path)
        }
        _ => false,
    }
}

fn literal_bound(literal: &LiteralValue) -> CostBound {
    let text = |length: usize| CostBound::text(u64::try_from(length).unwrap_or(u64::MAX));
    match literal {
        LiteralValue::String(characters) => text(characters.inner().len()),
        LiteralValue::Bytes(bytes) => text(bytes.inner().len()),
        _ => CostBound::single(),
    }
}
