//! Functions of Kubernetes quantities (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/quantity.go`).
#![expect(clippy::trivially_copy_pass_by_ref, reason = "the crate hands over every argument by reference")]

use cel::{
    DeclarationError, Env, ExecutionError, add_member_overload, add_overload,
    common::types::{CelBool, CelDouble, CelInt, CelString},
};

use super::unreadable;
use crate::{
    dra::cel::value::Quantity,
    object::{Amount, Quantity as Text},
};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn quantity: (CelString) -> Result<Quantity>)?;
    add_overload!(env, fn is_quantity: (CelString) -> CelBool)?;
    add_member_overload!(env, fn sign: (Quantity) -> CelInt)?;
    add_member_overload!(env, fn is_integer: (Quantity) -> CelBool)?;
    add_member_overload!(env, fn as_integer: (Quantity) -> Result<CelInt>)?;
    add_member_overload!(env, fn as_approximate_float: (Quantity) -> CelDouble)?;
    add_member_overload!(env, fn is_greater_than: (Quantity, Quantity) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (Quantity, Quantity) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (Quantity, Quantity) -> CelInt)?;
    add_member_overload!(env, fn add: (Quantity, Quantity) -> Quantity)?;
    add_member_overload!(env, fn sub: (Quantity, Quantity) -> Quantity)?;
    add_member_overload!(env, fn add_number: (Quantity, CelInt) -> Quantity, name = "add")?;
    add_member_overload!(env, fn sub_number: (Quantity, CelInt) -> Quantity, name = "sub")
}

fn quantity(text: &CelString<'_>) -> Result<Quantity, ExecutionError> {
    let amount = Text::from(text.inner()).amount();
    amount.map(Quantity).map_err(|error| unreadable("quantity", error))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    Text::from(text.inner()).amount().is_ok().into()
}

fn sign(this: &Quantity) -> CelInt {
    (this.0.cmp(&Amount::default()) as i64).into()
}

fn is_integer(this: &Quantity) -> CelBool {
    integer(this).is_some().into()
}

fn as_integer(this: &Quantity) -> Result<CelInt, ExecutionError> {
    integer(this).map(CelInt::from).ok_or_else(|| unreadable("asInteger", "the quantity is no integer"))
}

fn integer(this: &Quantity) -> Option<i64> {
    this.0.whole().and_then(|units| i64::try_from(units).ok())
}

fn as_approximate_float(this: &Quantity) -> CelDouble {
    this.0.approximate().into()
}

fn is_greater_than(this: &Quantity, other: &Quantity) -> CelBool {
    (this.0 > other.0).into()
}

fn is_less_than(this: &Quantity, other: &Quantity) -> CelBool {
    (this.0 < other.0).into()
}

fn compare_to(this: &Quantity, other: &Quantity) -> CelInt {
    (this.0.cmp(&other.0) as i64).into()
}

fn add(this: &Quantity, other: &Quantity) -> Quantity {
    Quantity(this.0.plus(other.0))
}

fn sub(this: &Quantity, other: &Quantity) -> Quantity {
    Quantity(this.0.minus(other.0))
}

fn add_number(this: &Quantity, other: &CelInt) -> Quantity {
    Quantity(this.0.plus(Amount::units(*other.inner())))
}

fn sub_number(this: &Quantity, other: &CelInt) -> Quantity {
    Quantity(this.0.minus(Amount::units(*other.inner())))
}
