//! What the parser leaves open: every variable and every function that an expression names must exist, and `cel.bind` declares a variable.
//!
//! The crate finds out neither before it evaluates, and its parser expands the macros of CEL itself alone.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, operators},
    parser::Expression,
};

use super::{
    CompileError,
    function::{self, Style},
    two_variables::{self, Build, TwoVariableLoop},
};

/// The types that an expression can compare with.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "optional_type",
    "string",
    "type",
    "uint",
];

/// The tree, which can be evaluated as far as names go.
pub(super) fn checked(root: Expression) -> Result<Expression, CompileError> {
    ExpressionCheck { variables: vec!["device".to_owned()], two_variable_loops: 0 }.checked(root)
}

/// The name of the function that a call names, how it is called, and how many arguments it has with the receiver. `a.f()` names `a.f` where that
/// is a function.
pub(super) fn called(call: &CallExpr) -> (String, Style, usize) {
    match call.target.as_deref() {
        None => (call.func_name.clone(), Style::Global, call.args.len()),
        Some(IdedExpr { expr: Expr::Ident(name), .. }) if function::is_of(name, &call.func_name) => {
            (format!("{name}.{}", call.func_name), Style::Global, call.args.len())
        }
        Some(_) => (call.func_name.clone(), Style::Member, call.args.len() + 1),
    }
}

/// Whether a call is an operator: the parser gives these names that no expression can spell.
pub(super) fn is_operator(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '.')
        && name.contains(['_', '@'])
        && name.contains(|part: char| !(part.is_ascii_alphanumeric() || part == '_'))
}

struct ExpressionCheck {
    variables: Vec<String>,
    /// How many loops with two variables are around the part that is looked at.
    two_variable_loops: usize,
}

impl ExpressionCheck {
    fn checked(&mut self, node: IdedExpr) -> Result<IdedExpr, CompileError> {
        let IdedExpr { id, expr } = node;
        let expr = match expr {
            Expr::Struct(_) => return Err(CompileError::NotServed("messages")),
            Expr::Unspecified => return Err(CompileError::NotServed("empty expressions")),
            Expr::Ident(name) if self.is_declared(&name) => Expr::Ident(name),
            Expr::Ident(name) => return Err(CompileError::UndeclaredReference(name)),
            Expr::Literal(value) => Expr::Literal(value),
            Expr::Select(mut select) => {
                *select.operand = self.checked(*select.operand)?;
                Expr::Select(select)
            }
            Expr::List(mut list) => {
                list.elements = self.all(list.elements)?;
                Expr::List(list)
            }
            Expr::Map(mut map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else {
                        return Err(CompileError::NotServed("messages"));
                    };
                    entry.key = self.checked(std::mem::take(&mut entry.key))?;
                    entry.value = self.checked(std::mem::take(&mut entry.value))?;
                }
                Expr::Map(map)
            }
            Expr::Call(call) if is_bind(&call) => self.bind(call)?,
            Expr::Call(call) if is_sort_by(&call) => self.sort_by(call)?,
            Expr::Call(call) => match two_variables::kind(&call) {
                Some(kind) => self.two_variable_loop(kind, call)?,
                None => self.call(call)?,
            },
            Expr::Comprehension(comprehension) => self.comprehension(*comprehension)?,
        };
        Ok(IdedExpr { id, expr })
    }

    fn is_declared(&self, name: &str) -> bool {
        self.variables.iter().any(|known| known == name) || TYPES.contains(&name)
    }

    fn all(&mut self, nodes: Vec<IdedExpr>) -> Result<Vec<IdedExpr>, CompileError> {
        nodes.into_iter().map(|node| self.checked(node)).collect()
    }

    fn call(&mut self, mut call: CallExpr) -> Result<Expr, CompileError> {
        let (name, style, arguments) = called(&call);
        if !is_operator(&name) {
            if function::outcome(&name, style, arguments).is_none() {
                return Err(CompileError::UndeclaredFunction { name, arguments });
            }
            if style == Style::Member {
                call.target = match call.target {
                    Some(target) => Some(Box::new(self.checked(*target)?)),
                    None => None,
                };
            }
        }
        call.args = self.all(call.args)?;
        if matches!(&*call.func_name, operators::EQUALS | operators::NOT_EQUALS)
            && call.args.iter().all(|operand| self.is_type(operand))
        {
            return Err(CompileError::NotServed("comparisons of two types"));
        }
        let own = match (name.as_str(), style) {
            ("reverse", Style::Member) => Some(function::REVERSE),
            ("format", Style::Member) => Some(function::FORMAT),
            ("string", Style::Global) => Some(function::STRING),
            _ => None,
        };
        if let Some(own) = own {
            own.clone_into(&mut call.func_name);
            call.args.splice(..0, call.target.take().map(|target| *target));
        }
        Ok(Expr::Call(call))
    }

    /// Whether the value is a type: the API server takes comparing two of them for more expensive than any selector may be.
    fn is_type(&self, node: &IdedExpr) -> bool {
        match &node.expr {
            Expr::Ident(name) => TYPES.contains(&&**name) && !self.variables.contains(name),
            Expr::Call(call) if call.func_name == operators::CONDITIONAL => {
                call.args.iter().skip(1).any(|branch| self.is_type(branch))
            }
            Expr::Call(call) if call.target.is_none() => match &*call.func_name {
                "type" => true,
                "dyn" => call.args.iter().any(|value| self.is_type(value)),
                _ => false,
            },
            _ => false,
        }
    }

    fn comprehension(&mut self, mut one: ComprehensionExpr) -> Result<Expr, CompileError> {
        one.iter_range = self.checked(one.iter_range)?;
        one.accu_init = self.checked(one.accu_init)?;
        let declared = self.variables.len();
        self.variables.push(one.accu_var.clone());
        one.result = self.checked(one.result)?;
        self.variables.extend([one.iter_var.clone()].into_iter().chain(one.iter_var2.clone()));
        one.loop_cond = self.checked(one.loop_cond)?;
        one.loop_step = self.checked(one.loop_step)?;
        self.variables.truncate(declared);
        Ok(Expr::Comprehension(Box::new(one)))
    }

    /// Each of these loops is evaluated as several parts that are nested, so fewer of them may be.
    fn two_variable_loop(&mut self, kind: TwoVariableLoop, call: CallExpr) -> Result<Expr, CompileError> {
        if self.two_variable_loops == two_variables::DEEPEST {
            return Err(CompileError::NotServed("more than 10 loops with two variables in one another"));
        }
        self.two_variable_loops += 1;
        let expanded = two_variables::expanded(kind, call).and_then(|expanded| self.comprehension(expanded));
        self.two_variable_loops -= 1;
        expanded
    }

    /// `cel.bind(variable, value, body)`: the result, with the variable, of a loop over nothing that begins with the value.
    fn bind(&mut self, mut call: CallExpr) -> Result<Expr, CompileError> {
        let mut take = |at: usize| std::mem::take(&mut call.args[at]);
        let (variable, value, body) = (take(0), take(1), take(2));
        let id = variable.id;
        let Expr::Ident(variable) = variable.expr else {
            return Err(CompileError::NotServed("calls of cel.bind without a variable's name"));
        };
        self.comprehension(Build { id }.bound(&variable, value, body))
    }
}

impl ExpressionCheck {
    /// `list.sortBy(element, key)`: the list is bound to a name, and sorted by a list of the keys of its elements. No expression can spell the names.
    fn sort_by(&mut self, mut call: CallExpr) -> Result<Expr, CompileError> {
        const LIST: &str = "@sorted";
        const KEYS: &str = "@keys";
        let (element, key) = (std::mem::take(&mut call.args[0]), std::mem::take(&mut call.args[1]));
        let id = element.id;
        let Expr::Ident(element) = element.expr else {
            return Err(CompileError::NotServed("calls of sortBy without a variable's name"));
        };
        let node = |expr: Expr| IdedExpr { id, expr };
        let named = |name: &str| node(Expr::Ident(name.to_owned()));
        let truth = |value: bool| node(Expr::Literal(LiteralValue::Boolean(value.into())));
        let nothing = || node(Expr::List(ListExpr::default()));
        let one = node(Expr::List(ListExpr { elements: vec![key], ..ListExpr::default() }));
        let further =
            CallExpr { func_name: operators::ADD.to_owned(), target: None, args: vec![named(KEYS), one] };
        let keys = ComprehensionExpr {
            iter_range: named(LIST),
            iter_var: element,
            iter_var2: None,
            accu_var: KEYS.to_owned(),
            accu_init: nothing(),
            loop_cond: truth(true),
            loop_step: node(Expr::Call(further)),
            result: named(KEYS),
        };
        let keys = node(Expr::Comprehension(Box::new(keys)));
        let sorted =
            CallExpr { func_name: function::SORT_BY.to_owned(), target: None, args: vec![named(LIST), keys] };
        self.comprehension(ComprehensionExpr {
            iter_range: nothing(),
            iter_var: "@nothing".to_owned(),
            iter_var2: None,
            accu_var: LIST.to_owned(),
            accu_init: call.target.map(|list| *list).unwrap_or_default(),
            loop_cond: truth(false),
            loop_step: truth(false),
            result: node(Expr::Call(sorted)),
        })
    }
}

fn is_sort_by(call: &CallExpr) -> bool {
    call.func_name == "sortBy" && call.args.len() == 2 && call.target.is_some()
}

fn is_bind(call: &CallExpr) -> bool {
    let target = call.target.as_deref().map(|target| &target.expr);
    call.func_name == "bind"
        && call.args.len() == 3
        && matches!(target, Some(Expr::Ident(name)) if name == "cel")
}
