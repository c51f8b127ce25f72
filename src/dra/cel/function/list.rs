//! Functions of lists (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/lists.go`), and `includes`, which is the same for an attribute with one
//! value and with several.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unnecessary_wraps,
    reason = "the crate has one type for all functions"
)]

use std::cmp::Ordering;

use cel::{
    DeclarationError, Env, ExecutionError,
    common::{
        types::{CelBool, CelInt, CelList, CelOptional, DYN_TYPE, Kind, LIST_TYPE},
        value::{CowVal, Val},
    },
};

use super::unreadable;
use crate::dra::cel::value::CelDuration;

/// What a function answers.
pub(super) type Called<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    env.add_member_overload("includes", "dyn.includes(dyn)", DYN_TYPE, vec![DYN_TYPE], includes)?;
    env.add_member_overload("indexOf", "list.indexOf(dyn)", LIST_TYPE, vec![DYN_TYPE], index_of)?;
    env.add_member_overload(
        "lastIndexOf",
        "list.lastIndexOf(dyn)",
        LIST_TYPE,
        vec![DYN_TYPE],
        last_index_of,
    )?;
    env.add_overload(super::REVERSE, "reverse(list)", vec![LIST_TYPE], reverse)?;
    env.add_overload(super::SORT_BY, "sortBy(list,list)", vec![LIST_TYPE, LIST_TYPE], sort_by)?;
    env.add_member_overload("first", "list.first()", LIST_TYPE, vec![], first)?;
    env.add_member_overload("last", "list.last()", LIST_TYPE, vec![], last)?;
    env.add_member_overload("isSorted", "list.isSorted()", LIST_TYPE, vec![], is_sorted)?;
    env.add_member_overload("min", "list.min()", LIST_TYPE, vec![], min)?;
    env.add_member_overload("max", "list.max()", LIST_TYPE, vec![], max)?;
    env.add_member_overload("sum", "list.sum()", LIST_TYPE, vec![], sum)
}

/// The elements of a list; `None`: it is none.
fn elements<'b, 'v>(list: &'b (dyn Val + 'v)) -> Option<Vec<&'b (dyn Val + 'v)>> {
    let mut elements = list.as_iterable()?.iter();
    Some(std::iter::from_fn(|| elements.next()).collect())
}

/// The elements of a list that a function takes.
pub(super) fn of<'b, 'v>(
    list: &'b (dyn Val + 'v),
    function: &str,
) -> Result<Vec<&'b (dyn Val + 'v)>, ExecutionError> {
    elements(list).ok_or_else(|| unreadable(function, "the value is no list"))
}

fn reverse<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let elements = of(&*arguments[0], "reverse")?;
    let reversed = elements.into_iter().rev().map(Val::clone_as_boxed).collect::<Vec<_>>();
    Ok(CowVal::owned(CelList::from(reversed)))
}

/// Kubernetes, KEP-5491: one of the values where there are several, else the value itself.
fn includes<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let (value, wanted) = (arguments[0].as_ref(), arguments[1].as_ref());
    let is_list = value.get_type().kind() == Kind::List;
    let included = match elements(value).filter(|_| is_list) {
        Some(elements) => elements.into_iter().any(|element| element.equals(wanted)),
        None => value.equals(wanted),
    };
    Ok(CowVal::owned(CelBool::from(included)))
}

fn index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    place(of(&*arguments[0], "indexOf")?.iter().position(|element| element.equals(&*arguments[1])))
}

fn last_index_of<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    place(of(&*arguments[0], "lastIndexOf")?.iter().rposition(|element| element.equals(&*arguments[1])))
}

/// -1: there is none.
fn place<'b, 'v>(found: Option<usize>) -> Called<'b, 'v> {
    let place = found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1);
    Ok(CowVal::owned(CelInt::from(place)))
}

fn first<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    optional(of(&*arguments[0], "first")?.first().copied())
}

fn last<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    optional(of(&*arguments[0], "last")?.last().copied())
}

/// None for the element of an empty list (cel-go `cel/library.go`, optional values of version 2).
fn optional<'b, 'v>(element: Option<&(dyn Val + 'v)>) -> Called<'b, 'v> {
    let element = element.map(Val::clone_as_boxed);
    Ok(CowVal::owned(CelOptional::from(element)))
}

fn order(one: &dyn Val, other: &dyn Val, function: &str) -> Result<Ordering, ExecutionError> {
    let types = || [one, other].map(|value| value.get_type().name().to_owned()).to_vec();
    let comparer = one.as_comparer().ok_or_else(|| ExecutionError::no_such_overload(function, types()))?;
    comparer.compare(other)
}

fn is_sorted<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let mut sorted = true;
    for pair in of(&*arguments[0], "isSorted")?.windows(2) {
        sorted &= order(pair[0], pair[1], "isSorted")?.is_le();
    }
    Ok(CowVal::owned(CelBool::from(sorted)))
}

/// The elements of a list in the order of their keys, which must be of one type; elements with equal keys keep their order.
fn sort_by<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let (elements, keys) = (of(&*arguments[0], "sortBy")?, of(&*arguments[1], "sortBy")?);
    let mut keyed: Vec<_> = keys.into_iter().zip(elements).collect();
    // Where two keys have no order, the result is not used.
    let mut error = None;
    if let Some((first, _)) = keyed.first() {
        for (key, _) in &keyed {
            if key.get_type() != first.get_type() {
                return Err(unreadable("sortBy", "the keys are of different types"));
            }
            order(*first, *key, "sortBy")?;
        }
    }
    keyed.sort_by(|(one, _), (other, _)| {
        order(*one, *other, "sortBy").unwrap_or_else(|failed| {
            error.get_or_insert(failed);
            Ordering::Equal
        })
    });
    let sorted = keyed.into_iter().map(|(_, element)| element.clone_as_boxed()).collect::<Vec<_>>();
    error.map_or_else(|| Ok(CowVal::owned(CelList::from(sorted))), Err)
}

fn min<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    extreme(&*arguments[0], "min", Ordering::is_lt)
}

fn max<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    extreme(&*arguments[0], "max", Ordering::is_gt)
}

fn extreme<'b, 'v>(list: &(dyn Val + 'v), function: &str, is_better: fn(Ordering) -> bool) -> Called<'b, 'v> {
    let elements = of(list, function)?;
    let mut best = *elements.first().ok_or_else(|| unreadable(function, "the list is empty"))?;
    for element in elements {
        if is_better(order(element, best, function)?) {
            best = element;
        }
    }
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

fn sum<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
    let mut sum: Box<dyn Val + 'v> = Box::new(CelInt::from(0));
    for (at, element) in of(&*arguments[0], "sum")?.into_iter().enumerate() {
        let kind = element.get_type();
        let is_summand = matches!(kind.kind(), Kind::Int | Kind::UInt | Kind::Double)
            || element.downcast_ref::<CelDuration>().is_some();
        let adder = sum.as_adder().filter(|_| is_summand);
        let adder =
            adder.ok_or_else(|| ExecutionError::no_such_overload("sum", vec![kind.name().to_owned()]))?;
        sum = if at == 0 { element.clone_as_boxed() } else { adder.add(element)?.into_owned() };
    }
    Ok(CowVal::Owned(sum))
}
