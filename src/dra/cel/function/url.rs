//! Functions of URLs (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/urls.go`).

use std::collections::HashMap;

use cel::{
    DeclarationError, Env, ExecutionError, add_member_overload, add_overload,
    common::{
        types::{CelBool, CelList, CelMap, CelMapKey, CelString},
        value::Val,
    },
};

use super::unreadable;
use crate::dra::cel::value::CelUrl;

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn url: (CelString) -> Result<CelUrl>)?;
    add_overload!(env, fn is_url: (CelString) -> CelBool, name = "isURL")?;
    add_member_overload!(env, fn get_scheme: (CelUrl) -> CelString)?;
    add_member_overload!(env, fn get_host: (CelUrl) -> CelString)?;
    add_member_overload!(env, fn get_hostname: (CelUrl) -> CelString)?;
    add_member_overload!(env, fn get_port: (CelUrl) -> CelString)?;
    add_member_overload!(env, fn get_escaped_path: (CelUrl) -> CelString)?;
    add_member_overload!(env, fn get_query: (CelUrl) -> CelMap)
}

fn url(text: &CelString<'_>) -> Result<CelUrl, ExecutionError> {
    CelUrl::parse(text.inner()).ok_or_else(|| unreadable("url", "the text is no URL"))
}

fn is_url(text: &CelString<'_>) -> CelBool {
    CelUrl::parse_request(text.inner()).is_some().into()
}

fn get_scheme(this: &CelUrl) -> CelString<'static> {
    this.scheme().to_owned().into()
}

fn get_host(this: &CelUrl) -> CelString<'static> {
    this.host().to_owned().into()
}

fn get_hostname(this: &CelUrl) -> CelString<'static> {
    this.hostname().to_owned().into()
}

fn get_port(this: &CelUrl) -> CelString<'static> {
    this.port().to_owned().into()
}

fn get_escaped_path(this: &CelUrl) -> CelString<'static> {
    this.escaped_path().to_owned().into()
}

/// Names with the list of their values.
fn get_query(this: &CelUrl) -> CelMap<'static> {
    let mut names: HashMap<String, Vec<Box<dyn Val>>> = HashMap::new();
    for (name, value) in this.query() {
        names.entry(name).or_default().push(Box::new(CelString::from(value)));
    }
    let values = names.into_iter().map(|(name, values)| {
        let values: Box<dyn Val> = Box::new(CelList::from(values));
        (CelMapKey::String(CelString::from(name)), values)
    });
    CelMap::from(values.collect::<HashMap<_, _>>())
}
