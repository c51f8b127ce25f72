//! A pod's hints as selectors in CEL (kubernetes `staging/src/k8s.io/api/resource/v1/types.go`, `CELDeviceSelector`).

use std::fmt::Write as _;

use super::Unexpressed;
use crate::{
    device::PodRequest,
    dialect::{Dialect, HintKeys, unreadable::annotation_path},
    object::device_class::CelSelector,
};

/// How many bytes an expression may have.
const LONGEST: usize = 10 * 1024;

/// What stands before a product's name in the type that hints are compared with: older plugins write it before every name, HAMi's v2.10 before
/// names that don't begin with `NVIDIA` (`pkg/device-plugin/nvidiadevice/nvinternal/plugin/register.go`).
pub(super) const PREFIX: &str = "nvidia-";

/// Only devices of which several requests can have a share.
pub(super) fn shareable() -> CelSelector {
    selector("device.allowMultipleAllocations".to_owned())
}

/// The tests that the pod's hints are: models by substring, whatever the case, and uuids as they are.
pub(super) fn of(
    request: &PodRequest,
    dialect: &dyn Dialect,
    driver: Option<&str>,
) -> Result<Vec<CelSelector>, Unexpressed> {
    let Some(keys) = dialect.hint_keys() else { return Ok(Vec::new()) };
    let HintKeys { use_model, no_use_model, use_id, no_use_id } = keys;
    // Each driver publishes its attributes in its own domain.
    let domain = driver.map_or_else(|| "device.driver".to_owned(), quoted);
    let attribute = |name: &str| format!("device.attributes[{domain}].{name}");
    let (models, ids) = (&request.selection.models, &request.selection.ids);
    let (model, id) = (format!("{}.lowerAscii()", attribute("productName")), attribute("uuid"));
    let mut tests = Vec::new();
    for wanted in models.any_of.iter().filter(|list| !list.is_empty()) {
        let key = use_model.as_deref().unwrap_or_default();
        tests.push((key, contains_any(&model, wanted).map_err(|reason| hint(key, reason))?));
    }
    if !models.none_of.is_empty() {
        let key = no_use_model.as_deref().unwrap_or_default();
        let any = contains_any(&model, &models.none_of).map_err(|reason| hint(key, reason))?;
        tests.push((key, format!("!({any})")));
    }
    if !ids.one_of.is_empty() {
        tests.push((use_id, format!("{id} in {}", list(&ids.one_of))));
    }
    if !ids.none_of.is_empty() {
        tests.push((no_use_id, format!("!({id} in {})", list(&ids.none_of))));
    }
    let within = |(key, test): (&str, String)| match test.len() {
        0..=LONGEST => Ok(selector(test)),
        bytes => Err(hint(key, format!("its selector has {bytes} bytes, and {LONGEST} are allowed"))),
    };
    tests.into_iter().map(within).collect()
}

fn selector(expression: String) -> CelSelector {
    CelSelector { expression }
}

fn hint(key: &str, reason: String) -> Unexpressed {
    Unexpressed::new(annotation_path(key), reason)
}

/// Whether the model contains one of the parts.
fn contains_any(model: &str, parts: &[String]) -> Result<String, String> {
    let prefixed = format!("({} + {model})", quoted(PREFIX));
    let contains = |part: &String| {
        if !part.is_ascii() {
            return Err("a selector can ignore case only for ASCII letters".to_owned());
        }
        let part = part.to_ascii_lowercase();
        let model = if may_reach_prefix(&part) { &prefixed } else { model };
        Ok(format!("{model}.contains({})", quoted(&part)))
    };
    let tests: Vec<String> = parts.iter().map(contains).collect::<Result<_, _>>()?;
    Ok(tests.join(" || "))
}

/// Whether the part may be found where no character of the product's name is, or not alone of it.
fn may_reach_prefix(part: &str) -> bool {
    PREFIX.contains(part) || (0..PREFIX.len()).any(|at| part.starts_with(&PREFIX[at..]))
}

fn list(elements: &[String]) -> String {
    let quoted: Vec<String> = elements.iter().map(|element| quoted(element)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A text as CEL spells it.
fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(literal, "\\u{:04x}", u32::from(c));
            }
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}
