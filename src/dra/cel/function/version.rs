//! Functions of versions (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/semverlib.go`).
#![expect(clippy::trivially_copy_pass_by_ref, reason = "the crate hands over every argument by reference")]

use cel::{
    DeclarationError, Env, ExecutionError, add_member_overload, add_overload,
    common::types::{CelBool, CelInt, CelString},
};

use super::unreadable;
use crate::dra::cel::value::CelVersion;

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn semver: (CelString) -> Result<CelVersion>)?;
    add_overload!(env, fn semver_in_form: (CelString, CelBool) -> Result<CelVersion>, name = "semver")?;
    add_overload!(env, fn is_semver: (CelString) -> CelBool)?;
    add_overload!(env, fn is_semver_in_form: (CelString, CelBool) -> CelBool, name = "isSemver")?;
    add_member_overload!(env, fn major: (CelVersion) -> Result<CelInt>)?;
    add_member_overload!(env, fn minor: (CelVersion) -> Result<CelInt>)?;
    add_member_overload!(env, fn patch: (CelVersion) -> Result<CelInt>)?;
    add_member_overload!(env, fn is_greater_than: (CelVersion, CelVersion) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (CelVersion, CelVersion) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (CelVersion, CelVersion) -> CelInt)
}

fn semver(text: &CelString<'_>) -> Result<CelVersion, ExecutionError> {
    read(text.inner())
}

/// `normalized`: whether a version may have a leading `v`, leading zeros, and fewer than three numbers.
fn semver_in_form(text: &CelString<'_>, normalized: &CelBool) -> Result<CelVersion, ExecutionError> {
    if *normalized.inner() { read(&in_form(text.inner())) } else { read(text.inner()) }
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    semver(text).is_ok().into()
}

fn is_semver_in_form(text: &CelString<'_>, normalized: &CelBool) -> CelBool {
    semver_in_form(text, normalized).is_ok().into()
}

fn read(text: &str) -> Result<CelVersion, ExecutionError> {
    semver::Version::parse(text).map(CelVersion).map_err(|error| unreadable("semver", error))
}

fn in_form(text: &str) -> String {
    let text = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = text.split_at(text.find(['-', '+']).unwrap_or(text.len()));
    let mut parts: Vec<_> = numbers.split('.').map(without_zeros).collect();
    while parts.len() < 3 {
        parts.push("0");
    }
    parts.join(".") + rest
}

fn without_zeros(number: &str) -> &str {
    match number.trim_start_matches('0') {
        "" if !number.is_empty() => "0",
        trimmed => trimmed,
    }
}

fn major(this: &CelVersion) -> Result<CelInt, ExecutionError> {
    number(this.0.major)
}

fn minor(this: &CelVersion) -> Result<CelInt, ExecutionError> {
    number(this.0.minor)
}

fn patch(this: &CelVersion) -> Result<CelInt, ExecutionError> {
    number(this.0.patch)
}

fn number(part: u64) -> Result<CelInt, ExecutionError> {
    i64::try_from(part).map(CelInt::from).map_err(|error| unreadable("semver", error))
}

fn is_greater_than(this: &CelVersion, other: &CelVersion) -> CelBool {
    this.order(other).is_gt().into()
}

fn is_less_than(this: &CelVersion, other: &CelVersion) -> CelBool {
    this.order(other).is_lt().into()
}

fn compare_to(this: &CelVersion, other: &CelVersion) -> CelInt {
    (this.order(other) as i64).into()
}
