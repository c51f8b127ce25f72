//! Which attributes of a device an expression can read, as its text says: of devices that are equal in these, in their capacities and in their driver it
//! makes the same.

use std::collections::BTreeSet;

use cel::{
    IdedExpr,
    common::ast::{EntryExpr, Expr, LiteralValue, operators},
};

/// The attributes that an expression can read, by their full names; `None`: it may be any, since not all of them are named by literals.
pub(super) fn attributes(root: &IdedExpr) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    read(root, &mut names).then_some(names)
}

/// Adds the names of what is read; `false`: that can't be told. A variable that hides `device` counts as `device`.
fn read(node: &IdedExpr, names: &mut BTreeSet<String>) -> bool {
    match &node.expr {
        Expr::Literal(_) => true,
        Expr::Ident(name) => name != "device",
        Expr::Select(select) => {
            if is_device(&select.operand) {
                return matches!(&*select.field, "driver" | "capacity" | "allowMultipleAllocations");
            }
            match domain(&select.operand) {
                Some(domain) => note(names, domain, &select.field),
                None => read(&select.operand, names),
            }
        }
        Expr::Call(call) => match (&*call.func_name, &*call.args) {
            (operators::INDEX, [operand, key]) if domain(operand).is_some() => {
                let both = domain(operand).zip(text(key));
                both.is_some_and(|(domain, name)| note(names, domain, name))
            }
            (_, arguments) => call.target.as_deref().into_iter().chain(arguments).all(|one| read(one, names)),
        },
        Expr::List(list) => list.elements.iter().all(|element| read(element, names)),
        Expr::Map(map) => map.entries.iter().all(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => read(&entry.key, names) && read(&entry.value, names),
            EntryExpr::StructField(_) => false,
        }),
        Expr::Comprehension(one) => {
            let parts = [&one.iter_range, &one.accu_init, &one.loop_cond, &one.loop_step, &one.result];
            parts.into_iter().all(|part| read(part, names))
        }
        Expr::Struct(_) | Expr::Unspecified => false,
    }
}

fn note(names: &mut BTreeSet<String>, domain: &str, name: &str) -> bool {
    names.insert(format!("{domain}/{name}"));
    true
}

fn is_device(node: &IdedExpr) -> bool {
    matches!(&node.expr, Expr::Ident(name) if name == "device")
}

/// The domain of `device.attributes['domain']`.
fn domain(node: &IdedExpr) -> Option<&str> {
    let Expr::Call(call) = &node.expr else { return None };
    let (operators::INDEX, [operand, key]) = (&*call.func_name, &*call.args) else { return None };
    let Expr::Select(select) = &operand.expr else { return None };
    (is_device(&select.operand) && select.field == "attributes").then(|| text(key)).flatten()
}

fn text(node: &IdedExpr) -> Option<&str> {
    match &node.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::dra::cel::{Expression, Functions};

    fn attributes(text: &str) -> Option<Vec<String>> {
        let expression = Expression::compile(text, &Functions::default()).unwrap();
        expression.attributes().map(|names| names.iter().cloned().collect())
    }

    fn assert_read(text: &str, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(attributes(text), Some(names), "{text}");
    }

    #[test]
    fn attributes_are_read_that_literals_name() {
        let of_device = "device.driver == 'd' && device.allowMultipleAllocations && \
                         device.capacity['d'].memory.compareTo(quantity('1Gi')) > 0";
        assert_read(of_device, &[]);
        let both = "has(device.attributes['d'].a) && device.attributes['d']['b'] == 1 || device.attributes['e'].a.startsWith('x')";
        assert_read(both, &["d/a", "d/b", "e/a"]);
        let nested =
            "[1, 2].exists(n, device.attributes['d'].a == n) && {'x': device.attributes['d'].b}['x']";
        assert_read(nested, &["d/a", "d/b"]);
        assert_read("cel.bind(a, device.attributes['d'].a, a > 1)", &["d/a"]);
    }

    #[test]
    fn an_expression_that_names_none_may_read_each() {
        for text in [
            "device.attributes['d'].all(name, name != 'a')",
            "'a' in device.attributes['d']",
            "device.attributes[device.driver].a == 1",
            "device.attributes['d'][device.driver] == 1",
            "cel.bind(own, device.attributes['d'], own.a == 1)",
            "cel.bind(one, device, one.attributes['d'].a == 1)",
            "device.attributes == device.capacity",
            "[device].exists(one, one.attributes['d'].a == 1)",
            "device.attributes['d'].?a.orValue(1) == 1",
        ] {
            if let Ok(expression) = Expression::compile(text, &Functions::default()) {
                assert_eq!(expression.attributes(), None, "{text}");
            }
        }
    }
}
