//! Functions of regular expressions (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/regex.go`). CEL has the syntax of RE2, and so has the
//! crate, which needs time in proportion to pattern and text.
#![expect(clippy::trivially_copy_pass_by_ref, reason = "the crate hands over every argument by reference")]

use cel::{
    DeclarationError, Env, ExecutionError, add_member_overload, add_overload,
    common::{
        types::{CelBool, CelInt, CelList, CelString},
        value::Val,
    },
};
use regex::{Regex, RegexBuilder};

use super::unreadable;

/// How many bytes a compiled expression may take.
const LARGEST: usize = 1 << 18;

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>)?;
    add_member_overload!(env, fn matches: (CelString, CelString) -> Result<CelBool>)?;
    add_member_overload!(env, fn find: (CelString, CelString) -> Result<CelString>)?;
    add_member_overload!(env, fn find_all: (CelString, CelString) -> Result<CelList>)?;
    add_member_overload!(env, fn find_some: (CelString, CelString, CelInt) -> Result<CelList>, name = "findAll")
}

fn compiled(pattern: &CelString<'_>, function: &str) -> Result<Regex, ExecutionError> {
    let built = RegexBuilder::new(pattern.inner()).size_limit(LARGEST).dfa_size_limit(LARGEST).build();
    built.map_err(|error| unreadable(function, error))
}

fn matches(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(compiled(pattern, "matches")?.is_match(text.inner()).into())
}

fn find(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelString<'static>, ExecutionError> {
    let pattern = compiled(pattern, "find")?;
    let found = pattern.find(text.inner()).map_or("", |found| found.as_str());
    Ok(found.to_owned().into())
}

fn find_all(text: &CelString<'_>, pattern: &CelString<'_>) -> Result<CelList<'static>, ExecutionError> {
    found(text, pattern, usize::MAX)
}

/// A negative number: all.
fn find_some(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
    most: &CelInt,
) -> Result<CelList<'static>, ExecutionError> {
    found(text, pattern, usize::try_from(*most.inner()).unwrap_or(usize::MAX))
}

fn found(
    text: &CelString<'_>,
    pattern: &CelString<'_>,
    most: usize,
) -> Result<CelList<'static>, ExecutionError> {
    let pattern = compiled(pattern, "findAll")?;
    let found = pattern.find_iter(text.inner()).take(most);
    let texts = found.map(|found| Box::new(CelString::from(found.as_str().to_owned())) as Box<dyn Val>);
    Ok(CelList::from(texts.collect::<Vec<_>>()))
}
