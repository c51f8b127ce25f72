//! Which objects the API server refuses as invalid: names, labels, annotations, and pods; admission rules are elsewhere.

use super::{
    name::{is_label, is_label_part, is_qualified, is_subdomain},
    object,
    resource::Resource,
    status::{Cause, Result, StatusError},
    validate_pod,
};
use serde_json::Value;

/// All annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 * 1024;
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
     and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', \
     and must start and end with an alphanumeric character";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character";
const QUALIFIED: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', \
     and must start and end with an alphanumeric character";

/// Checks an object that is about to be created.
pub(super) fn new(resource: &Resource, object: &Value) -> Result<()> {
    let mut causes = metadata(resource, object);
    match resource.plural {
        "pods" => causes.extend(validate_pod::new(object)),
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
            causes.extend(webhooks(object));
        }
        _ => {}
    }
    refuse(resource, object, &causes)
}

/// Checks a change of an existing object.
pub(super) fn change(resource: &Resource, subresource: &str, old: &Value, new: &Value) -> Result<()> {
    let mut causes = metadata(resource, new);
    match (resource.plural, subresource) {
        ("pods", below) => causes.extend(validate_pod::change(below, old, new)),
        ("mutatingwebhookconfigurations" | "validatingwebhookconfigurations", _) => {
            causes.extend(webhooks(new));
        }
        ("leases", _) if object::resource_version(new).is_empty() => return Err(unversioned(resource, new)),
        _ => {}
    }
    refuse(resource, new, &causes)
}

/// Leases are updated by version only, in the words of the store.
fn unversioned(resource: &Resource, lease: &Value) -> StatusError {
    let why = "must be specified for an update";
    let cause = Cause::invalid("metadata.resourceVersion", &Value::from(0), why);
    let mut error = StatusError::invalid(resource, object::name(lease), &[cause]);
    error.message = error.message.replacen(resource.kind, resource.plural, 1);
    error.details["kind"] = Value::from(resource.plural);
    error
}

pub(super) fn refuse(resource: &Resource, object: &Value, causes: &[Cause]) -> Result<()> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid(resource, object::name(object), causes))
}

fn metadata(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = name(resource, object);
    for (key, value) in object::pairs(object, "/metadata/labels") {
        if !is_qualified(key) {
            causes.push(Cause::invalid("metadata.labels", &Value::from(key), QUALIFIED));
        }
        if value.len() > 63 {
            causes.push(Cause::invalid(
                "metadata.labels",
                &Value::from(value),
                "must be no more than 63 bytes",
            ));
        } else if !value.is_empty() && !is_label_part(value) {
            causes.push(Cause::invalid("metadata.labels", &Value::from(value), LABEL_VALUE));
        }
    }
    let mut total = 0;
    for (key, value) in object::pairs(object, "/metadata/annotations") {
        total += key.len() + value.len();
        if !is_qualified(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &Value::from(key), QUALIFIED));
        }
    }
    if total > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
    causes
}

fn name(resource: &Resource, object: &Value) -> Vec<Cause> {
    let name = object::name(object);
    if name.is_empty() {
        return vec![Cause::required("metadata.name", "name or generateName is required")];
    }
    let (fits, why) = match resource.plural {
        "namespaces" | "services" => (name.len() <= 63 && is_label(name), LABEL),
        // Roles may be called anything that fits one path segment.
        "roles" | "rolebindings" | "clusterroles" | "clusterrolebindings" => {
            (!name.contains(['/', '%']) && !matches!(name, "." | ".."), "may not contain '/' or '%'")
        }
        _ => (is_subdomain(name), SUBDOMAIN),
    };
    if fits { Vec::new() } else { vec![Cause::invalid("metadata.name", &Value::from(name), why)] }
}

fn webhooks(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, webhook) in object::list(object, "/webhooks").iter().enumerate() {
        let at = |field: &str| format!("webhooks[{index}].{field}");
        let name = object::text(webhook, "/name");
        if !is_subdomain(name) || name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            causes.push(Cause::invalid(at("name"), &Value::from(name), why));
        }
        if !matches!(object::text(webhook, "/sideEffects"), "None" | "NoneOnDryRun") {
            causes.push(Cause::required(at("sideEffects"), "must specify one of None, NoneOnDryRun"));
        }
        let versions = object::list(webhook, "/admissionReviewVersions");
        if !versions.iter().any(|version| version == "v1") {
            causes.push(Cause::required(
                at("admissionReviewVersions"),
                "must include at least one of v1, v1beta1",
            ));
        }
        let client = &webhook["clientConfig"];
        if client.get("url").is_some() == client.get("service").is_some() {
            let why = "exactly one of url or service is required";
            causes.push(Cause::required(at("clientConfig"), why));
        }
        if !webhook["timeoutSeconds"].as_i64().is_none_or(|seconds| (1..=30).contains(&seconds)) {
            let why = "the timeout value must be between 1 and 30 seconds";
            causes.push(Cause::invalid(at("timeoutSeconds"), &webhook["timeoutSeconds"], why));
        }
    }
    causes
}
