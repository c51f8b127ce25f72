//! Functions that take two lists as sets (cel-go `ext/sets.go`).
#![expect(clippy::needless_pass_by_value, reason = "the crate has one type for all functions")]

use cel::{
    DeclarationError, Env,
    common::{
        types::{CelBool, LIST_TYPE},
        value::{CowVal, Val},
    },
};

use super::list::{Called, of};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    env.add_overload("sets.contains", "sets.contains(list, list)", lists(), contains)?;
    env.add_overload("sets.equivalent", "sets.equivalent(list, list)", lists(), equivalent)?;
    env.add_overload("sets.intersects", "sets.intersects(list, list)", lists(), intersects)
}

fn answer<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    function: &str,
    is_true: fn(&[&(dyn Val + 'v)], &[&(dyn Val + 'v)]) -> bool,
) -> Called<'b, 'v> {
    let (one, other) = (of(&*arguments[0], function)?, of(&*arguments[1], function)?);
    Ok(CowVal::owned(CelBool::from(is_true(&one, &other))))
}

fn has<'v>(list: &[&(dyn Val + 'v)], value: &(dyn Val + 'v)) -> bool {
    list.iter().any(|one| one.equals(value))
}

fn has_all<'v>(list: &[&(dyn Val + 'v)], values: &[&(dyn Val + 'v)]) -> bool {
    values.iter().all(|value| has(list, *value))
}

fn contains<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    answer(&arguments, "sets.contains", has_all)
}

fn equivalent<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    answer(&arguments, "sets.equivalent", |one, other| has_all(one, other) && has_all(other, one))
}

fn intersects<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    answer(&arguments, "sets.intersects", |one, other| other.iter().any(|value| has(one, *value)))
}
