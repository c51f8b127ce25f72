//! Functions of Kubernetes quantities (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/quantity.go`).
#![expect(clippy::trivially_copy_pass_by_ref, reason = "the crate hands over every argument by reference")]

use cel::{
    DeclarationError, Env, ExecutionError, add_member_overload, add_overload,
    common::types::{CelBool, CelDouble, CelInt, CelString},
};

use super::unreadable;
use crate::{
    dra::cel::value::CelQuantity,
    object::{Amount, Quantity},
};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn quantity: (CelString) -> Result<CelQuantity>)?;
    add_overload!(env, fn is_quantity: (CelString) -> CelBool)?;
    add_overload!(env, fn sign: (CelQuantity) -> CelInt)?;
    add_member_overload!(env, fn is_integer: (CelQuantity) -> CelBool)?;
    add_member_overload!(env, fn as_integer: (CelQuantity) -> Result<CelInt>)?;
    add_member_overload!(env, fn as_approximate_float: (CelQuantity) -> CelDouble)?;
    add_member_overload!(env, fn is_greater_than: (CelQuantity, CelQuantity) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (CelQuantity, CelQuantity) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (CelQuantity, CelQuantity) -> CelInt)?;
    add_member_overload!(env, fn add: (CelQuantity, CelQuantity) -> CelQuantity)?;
    add_member_overload!(env, fn sub: (CelQuantity, CelQuantity) -> CelQuantity)?;
    add_member_overload!(env, fn add_number: (CelQuantity, CelInt) -> CelQuantity, name = "add")?;
    add_member_overload!(env, fn sub_number: (CelQuantity, CelInt) -> CelQuantity, name = "sub")
}

fn quantity(text: &CelString<'_>) -> Result<CelQuantity, ExecutionError> {
    let amount = Quantity::from(text.inner()).amount();
    amount.map(CelQuantity).map_err(|error| unreadable("quantity", error))
}

fn is_quantity(text: &CelString<'_>) -> CelBool {
    Quantity::from(text.inner()).amount().is_ok().into()
}

fn sign(this: &CelQuantity) -> CelInt {
    (this.0.cmp(&Amount::default()) as i64).into()
}

fn is_integer(this: &CelQuantity) -> CelBool {
    integer(this).is_some().into()
}

fn as_integer(this: &CelQuantity) -> Result<CelInt, ExecutionError> {
    integer(this).map(CelInt::from).ok_or_else(|| unreadable("asInteger", "the quantity is no integer"))
}

fn integer(this: &CelQuantity) -> Option<i64> {
    this.0.whole().and_then(|units| i64::try_from(units).ok())
}

fn as_approximate_float(this: &CelQuantity) -> CelDouble {
    this.0.approximate().into()
}

fn is_greater_than(this: &CelQuantity, other: &CelQuantity) -> CelBool {
    (this.0 > other.0).into()
}

fn is_less_than(this: &CelQuantity, other: &CelQuantity) -> CelBool {
    (this.0 < other.0).into()
}

fn compare_to(this: &CelQuantity, other: &CelQuantity) -> CelInt {
    (this.0.cmp(&other.0) as i64).into()
}

fn add(this: &CelQuantity, other: &CelQuantity) -> CelQuantity {
    CelQuantity(this.0.plus(other.0))
}

fn sub(this: &CelQuantity, other: &CelQuantity) -> CelQuantity {
    CelQuantity(this.0.minus(other.0))
}

fn add_number(this: &CelQuantity, other: &CelInt) -> CelQuantity {
    CelQuantity(this.0.plus(Amount::units(*other.inner())))
}

fn sub_number(this: &CelQuantity, other: &CelInt) -> CelQuantity {
    CelQuantity(this.0.minus(Amount::units(*other.inner())))
}
