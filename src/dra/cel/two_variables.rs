//! Loops with two variables, as cel-go's extension has them (cel-go `ext/comprehensions.go`): the index and the element of a list, or the key and the
//! value of a map. They become loops over a list of such pairs, since the crate has loops with one variable alone.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, Expr, ListExpr, LiteralValue, operators},
};

use super::{CompileError, function};

/// How many of these loops may be in one another.
pub(super) const DEEPEST: usize = 10;

/// The variable that is one of the pairs. No expression can spell the name.
pub(super) const PAIR: &str = "@pair";

/// What a loop has found so far.
const FOUND: &str = "@result";

/// What the loops find out.
#[derive(Clone, Copy)]
pub(super) enum TwoVariableLoop {
    All,
    Exists,
    ExistsOne,
    List,
    Map,
    MapEntry,
}

/// Which loop with two variables a call is, if it is one.
pub(super) fn kind(call: &CallExpr) -> Option<TwoVariableLoop> {
    let found = match (&*call.func_name, call.args.len()) {
        ("all", 3) => TwoVariableLoop::All,
        ("exists", 3) => TwoVariableLoop::Exists,
        ("existsOne" | "exists_one", 3) => TwoVariableLoop::ExistsOne,
        ("transformList", 3 | 4) => TwoVariableLoop::List,
        ("transformMap", 3 | 4) => TwoVariableLoop::Map,
        ("transformMapEntry", 3 | 4) => TwoVariableLoop::MapEntry,
        _ => return None,
    };
    call.target.is_some().then_some(found)
}

/// The loop of this kind that a call stands for. A call without two different names is an error, as the API server has it.
pub(super) fn expanded(kind: TwoVariableLoop, call: CallExpr) -> Result<ComprehensionExpr, CompileError> {
    let not_served = |what| Err(CompileError::NotServed(what));
    let over = call.target.map(|over| *over).unwrap_or_default();
    let mut arguments = call.args.into_iter();
    let mut next = || arguments.next().unwrap_or_default();
    let (first, second, third, last) = (next(), next(), next(), arguments.next());
    let build = Build { id: first.id };
    let (Expr::Ident(first), Expr::Ident(second)) = (first.expr, second.expr) else {
        return not_served("loops with two variables of which one has no name");
    };
    if first == second {
        return not_served("loops with one name for both variables");
    }
    let bound = |body: IdedExpr| build.with_variables(&first, &second, body);
    let found = || build.name(FOUND);
    let (begin, goes_on, step, result) = match kind {
        TwoVariableLoop::All => (
            build.boolean(true),
            build.call(operators::NOT_STRICTLY_FALSE, vec![found()]),
            build.call(operators::LOGICAL_AND, vec![found(), bound(third)]),
            found(),
        ),
        TwoVariableLoop::Exists => (
            build.boolean(false),
            build
                .call(operators::NOT_STRICTLY_FALSE, vec![build.call(operators::LOGICAL_NOT, vec![found()])]),
            build.call(operators::LOGICAL_OR, vec![found(), bound(third)]),
            found(),
        ),
        TwoVariableLoop::ExistsOne => (
            build.number(0),
            build.boolean(true),
            build.call(
                operators::CONDITIONAL,
                vec![bound(third), build.call(operators::ADD, vec![found(), build.number(1)]), found()],
            ),
            build.call(operators::EQUALS, vec![found(), build.number(1)]),
        ),
        TwoVariableLoop::List | TwoVariableLoop::Map | TwoVariableLoop::MapEntry => {
            let (filter, made) = match last {
                Some(made) => (Some(third), made),
                None => (None, third),
            };
            let made = match kind {
                TwoVariableLoop::Map => build.list(vec![build.name(&first), made]),
                _ => made,
            };
            let longer = build.call(operators::ADD, vec![found(), build.list(vec![bound(made)])]);
            let step = match filter {
                Some(filter) => build.call(operators::CONDITIONAL, vec![bound(filter), longer, found()]),
                None => longer,
            };
            (build.list(Vec::new()), build.boolean(true), step, found())
        }
    };
    let over = build.call(function::PAIRS, vec![over]);
    let collected = ComprehensionExpr {
        iter_range: over,
        iter_var: PAIR.to_owned(),
        iter_var2: None,
        accu_var: FOUND.to_owned(),
        accu_init: begin,
        loop_cond: goes_on,
        loop_step: step,
        result,
    };
    let maps = match kind {
        TwoVariableLoop::Map => function::MAP_OF_PAIRS,
        TwoVariableLoop::MapEntry => function::MAP_OF_MAPS,
        _ => return Ok(collected),
    };
    // The list is complete before the map is made of it: a map that grows would be copied with each entry.
    let collected = build.node(Expr::Comprehension(Box::new(collected)));
    let map = build.call(maps, vec![build.name(FOUND)]);
    Ok(build.bound(FOUND, collected, map))
}

/// Whether a value is a part of a pair.
pub(super) fn is_part_of_pair(node: &IdedExpr) -> bool {
    let Expr::Call(call) = &node.expr else { return false };
    let of = call.args.first().map(|pair| &pair.expr);
    call.func_name == operators::INDEX && matches!(of, Some(Expr::Ident(name)) if name == PAIR)
}

/// Makes nodes of a tree, all of which stand for one place in the text.
#[derive(Clone, Copy)]
pub(super) struct Build {
    pub(super) id: u64,
}

impl Build {
    fn node(self, expr: Expr) -> IdedExpr {
        IdedExpr { id: self.id, expr }
    }

    fn name(self, name: &str) -> IdedExpr {
        self.node(Expr::Ident(name.to_owned()))
    }

    fn boolean(self, value: bool) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn number(self, value: i64) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn list(self, elements: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::List(ListExpr { elements, ..ListExpr::default() }))
    }

    fn call(self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr { func_name: name.to_owned(), target: None, args }))
    }

    /// A body in which both variables are the parts of the pair.
    fn with_variables(self, first: &str, second: &str, body: IdedExpr) -> IdedExpr {
        let part = |at| self.call(operators::INDEX, vec![self.name(PAIR), self.number(at)]);
        let inner = self.node(Expr::Comprehension(Box::new(self.bound(second, part(1), body))));
        self.node(Expr::Comprehension(Box::new(self.bound(first, part(0), inner))))
    }

    /// A body with a variable: the result of a loop over nothing that begins with the variable's value.
    pub(super) fn bound(self, variable: &str, value: IdedExpr, body: IdedExpr) -> ComprehensionExpr {
        ComprehensionExpr {
            iter_range: self.list(Vec::new()),
            iter_var: "@nothing".to_owned(),
            iter_var2: None,
            accu_var: variable.to_owned(),
            accu_init: value,
            loop_cond: self.boolean(false),
            loop_step: self.boolean(false),
            result: body,
        }
    }
}
