//! Functions of named formats (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/format.go`).
#![expect(clippy::trivially_copy_pass_by_ref, reason = "the crate hands over every argument by reference")]

use cel::{
    DeclarationError, Env, add_member_overload, add_overload,
    common::{
        types::{CelList, CelOptional, CelString},
        value::{CowVal, Val},
    },
};

use super::list::Called;
use crate::dra::cel::value::CelFormat;

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    /// Each format under its name, as the crate's functions are no closures.
    macro_rules! add_formats {
        ($($name:literal: $format:ident),*) => {$({
            fn format<'b, 'v>(_: Vec<CowVal<'b, 'v>>) -> Called<'b, 'v> {
                Ok(CowVal::owned(CelFormat::$format))
            }
            env.add_overload(concat!("format.", $name), concat!("format.", $name, "()"), vec![], format)?;
        })*};
    }
    add_formats!(
        "byte": Byte, "date": Date, "datetime": DateTime, "dns1035Label": Dns1035Label,
        "dns1035LabelPrefix": Dns1035LabelPrefix, "dns1123Label": Dns1123Label, "dns1123LabelPrefix": Dns1123LabelPrefix,
        "dns1123Subdomain": Dns1123Subdomain, "dns1123SubdomainPrefix": Dns1123SubdomainPrefix,
        "labelValue": LabelValue, "qualifiedName": QualifiedName, "uri": Uri, "uuid": Uuid
    );
    add_overload!(env, fn named: (CelString) -> CelOptional, name = "format.named")?;
    add_member_overload!(env, fn validate: (CelFormat, CelString) -> CelOptional)
}

/// None for a name that no format has.
fn named(name: &CelString<'_>) -> CelOptional<'static> {
    CelFormat::named(name.inner()).map(|format| Box::new(format) as Box<dyn Val>).into()
}

/// Why a text is not of the format; none if it is.
fn validate(this: &CelFormat, text: &CelString<'_>) -> CelOptional<'static> {
    let reasons = this.reasons(text.inner()).into_iter();
    let reasons: Vec<Box<dyn Val>> = reasons.map(|reason| Box::new(CelString::from(reason)) as _).collect();
    let list = (!reasons.is_empty()).then(|| Box::new(CelList::from(reasons)) as Box<dyn Val>);
    list.into()
}
