//! Which pods the API server refuses, new or changed; other kinds are in `validate`.

use super::{
    name::{is_dns_label, is_qualified},
    object, quantity,
    status::Cause,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const IMMUTABLE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
     `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// What is wrong with a pod that is about to be created.
pub(super) fn new(pod: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut names = BTreeSet::new();
    if object::list(pod, "/spec/containers").is_empty() {
        causes.push(Cause::required("spec.containers", ""));
    }
    for list in ["initContainers", "containers"] {
        for (index, container) in object::list(pod, &format!("/spec/{list}")).iter().enumerate() {
            let at = format!("spec.{list}[{index}]");
            causes.extend(self::container(&at, container, &mut names));
        }
    }
    if !matches!(object::text(pod, "/spec/restartPolicy"), "Always" | "OnFailure" | "Never") {
        let why = "supported values: \"Always\", \"OnFailure\", \"Never\"";
        causes.push(Cause::invalid("spec.restartPolicy", &pod["spec"]["restartPolicy"], why));
    }
    let gated = !object::list(pod, "/spec/schedulingGates").is_empty();
    if gated && !object::text(pod, "/spec/nodeName").is_empty() {
        causes.push(Cause::forbidden(
            "spec.nodeName",
            "cannot be set until all schedulingGates have been cleared",
        ));
    }
    causes
}

fn container<'a>(at: &str, container: &'a Value, names: &mut BTreeSet<&'a str>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = object::text(container, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{at}.name"), ""));
    } else if !is_dns_label(name) {
        let why = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'";
        causes.push(Cause::invalid(format!("{at}.name"), &json!(name), why));
    } else if !names.insert(name) {
        causes.push(Cause::duplicate(format!("{at}.name"), name));
    }
    if object::text(container, "/image").is_empty() {
        causes.push(Cause::required(format!("{at}.image"), ""));
    }
    causes.extend(resources(&format!("{at}.resources"), &container["resources"]));
    causes
}

fn resources(at: &str, resources: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for list in ["limits", "requests"] {
        for (name, amount) in object::pairs(resources, &format!("/{list}")) {
            let field = format!("{at}.{list}[{name}]");
            causes.extend(amount_cause(&field, name, amount));
        }
    }
    causes.extend(extended(at, resources));
    causes
}

fn amount_cause(field: &str, name: &str, amount: &str) -> Option<Cause> {
    let why = match quantity::nano(amount) {
        _ if !is_qualified(name) => {
            return Some(Cause::invalid(field, &json!(name), "must be a valid resource name"));
        }
        _ if !is_standard(name) && !name.contains('/') => {
            return Some(Cause::invalid(field, &json!(name), "must be a standard resource for containers"));
        }
        None => quantity::FORMAT,
        Some(nano) if nano < 0 => "must be greater than or equal to 0",
        Some(nano) if is_extended(name) && nano % quantity::ONE != 0 => "must be an integer",
        Some(_) => return None,
    };
    Some(Cause::invalid(field, &json!(amount), why))
}

fn is_standard(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

fn is_extended(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/")
}

/// A request is at most the limit; extended resources can't be overcommitted, so theirs is the limit.
fn extended(at: &str, resources: &Value) -> Vec<Cause> {
    let limits = &resources["limits"];
    let invalid =
        |amount: &str, why: &str| Some(Cause::invalid(format!("{at}.requests"), &json!(amount), why));
    let requests = object::pairs(resources, "/requests");
    requests
        .filter_map(|(name, amount)| match limits.get(name).and_then(Value::as_str) {
            None if is_extended(name) => {
                let why = "Limit must be set for non overcommitable resources";
                Some(Cause::required(format!("{at}.limits"), why))
            }
            Some(limit) if is_extended(name) && quantity::nano(limit) != quantity::nano(amount) => {
                invalid(amount, &format!("must be equal to {name} limit of {limit}"))
            }
            Some(limit) if quantity::nano(amount) > quantity::nano(limit) => {
                invalid(amount, &format!("must be less than or equal to {name} limit of {limit}"))
            }
            _ => None,
        })
        .collect()
}

/// What is wrong with a change of a pod through itself or a subresource.
pub(super) fn change(subresource: &str, old: &Value, new: &Value) -> Vec<Cause> {
    match subresource {
        "" => spec_change(old, new),
        "resize" => resize(old, new),
        _ => Vec::new(),
    }
}

fn resize(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let pairs = object::list(new, "/spec/containers").iter().zip(object::list(old, "/spec/containers"));
    for (index, (new, old)) in pairs.enumerate() {
        let at = format!("spec.containers[{index}].resources");
        causes.extend(resources(&at, &new["resources"]));
        for list in ["limits", "requests"] {
            let (mut new, mut old) = (new["resources"][list].clone(), old["resources"][list].clone());
            for list in [&mut new, &mut old] {
                object::set(list, "cpu", None);
                object::set(list, "memory", None);
            }
            if new != old {
                causes.push(Cause::forbidden(&at, "only cpu and memory resources are mutable"));
            }
        }
    }
    causes
}

fn spec_change(old: &Value, new: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let tolerations = object::list(new, "/spec/tolerations");
    if object::list(old, "/spec/tolerations").iter().any(|toleration| !tolerations.contains(toleration)) {
        causes.push(Cause::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
    let gates = object::list(old, "/spec/schedulingGates");
    if object::list(new, "/spec/schedulingGates").iter().any(|gate| !gates.contains(gate)) {
        let why = "only deletion is allowed, but found new scheduling gate";
        causes.push(Cause::forbidden("spec.schedulingGates", why));
    }
    let waiting = if gates.is_empty() { Gated::No } else { Gated::Yes };
    if fixed_part(old, waiting) != fixed_part(new, waiting) {
        causes.push(Cause::forbidden("spec", IMMUTABLE));
    }
    causes
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gated {
    Yes,
    No,
}

/// The spec without the fields that a plain update may change.
fn fixed_part(pod: &Value, gated: Gated) -> Value {
    let mut spec = pod["spec"].clone();
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            object::set(container, "image", None);
        }
    }
    for field in ["tolerations", "activeDeadlineSeconds", "schedulingGates"] {
        object::set(&mut spec, field, None);
    }
    if gated == Gated::Yes {
        // Gated pods may also narrow where they go.
        for field in ["nodeSelector", "affinity"] {
            object::set(&mut spec, field, None);
        }
    }
    spec
}
