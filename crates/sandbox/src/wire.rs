//! How a stored object reads in the group that a client asks, and back; both event groups share one store.

use super::{
    object, quantity,
    resource::Resource,
    status::{Result, StatusError},
};
use serde_json::{Map, Value, json};

/// The fields of a core event and how `events.k8s.io/v1` calls them.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Reads a body of the named media type, JSON where none is named.
pub(super) fn read(content_type: &str, body: &[u8]) -> Result<Value> {
    match content_type.split(';').next().unwrap_or_default().trim() {
        "" | "application/json" => parse(body),
        "application/yaml" => parse_yaml(body),
        other => {
            let hint = match other {
                "application/vnd.kubernetes.protobuf" => {
                    "; with kubectl, add `--dry-run=client -o yaml` and pipe the output to `kubectl apply -f -`"
                }
                _ => "",
            };
            Err(StatusError::new(
                415,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format ({other}) - accepted media types include: \
                     application/json, application/yaml{hint}"
                ),
            ))
        }
    }
}

/// Reads a YAML body.
pub(super) fn parse_yaml(body: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(body).map_err(|error| StatusError::bad_request(error.to_string()))?;
    let value: Value = serde_saphyr::from_str(text)
        .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(StatusError::bad_request("the body is not an object")) }
}

/// Reads a JSON body.
pub(super) fn parse(body: &[u8]) -> Result<Value> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| StatusError::bad_request(format!("the body is not valid JSON: {error}")))?;
    if value.is_object() { Ok(value) } else { Err(StatusError::bad_request("the body is not an object")) }
}

/// The stored form of what a client sent; its kind and version must be those of the path.
pub(super) fn decode(resource: &Resource, mut sent: Value) -> Result<Value> {
    object::drop_nulls(&mut sent);
    let (version, kind) = (object::text(&sent, "/apiVersion"), object::text(&sent, "/kind"));
    let fits = |given: &str, want: &str| given.is_empty() || given == want;
    if !fits(version, &resource.api_version()) || !fits(kind, resource.kind) {
        return Err(StatusError::bad_request(format!(
            "the object provided is {version}, Kind={kind}, this path serves {}, Kind={}",
            resource.api_version(),
            resource.kind
        )));
    }
    if resource.plural == "pods" {
        check_quantities(&sent)?;
    }
    if is_new_event(resource) {
        sent = rename(&sent, |name| pair(name, |(core, new)| (new, core)));
    }
    Ok(headed("v1", resource, &sent))
}

/// Refuses a pod whose limits or requests don't decode as quantities.
fn check_quantities(pod: &Value) -> Result<()> {
    let lists = ["/spec/containers", "/spec/initContainers"];
    let containers = lists.into_iter().flat_map(|list| object::list(pod, list));
    let amounts = containers.flat_map(|container| {
        object::pairs(container, "/resources/limits").chain(object::pairs(container, "/resources/requests"))
    });
    for (_, amount) in amounts {
        if quantity::nano(amount).is_none() {
            let text = format!("Pod in version \"v1\" cannot be handled as a Pod: {}", quantity::FORMAT);
            return Err(StatusError::bad_request(text));
        }
    }
    Ok(())
}

/// What a client of this resource reads.
pub(super) fn encode(resource: &Resource, stored: &Value) -> Value {
    if !is_new_event(resource) {
        return stored.clone();
    }
    let renamed = rename(stored, |name| pair(name, |(core, new)| (core, new)));
    headed(&resource.api_version(), resource, &renamed)
}

fn is_new_event(resource: &Resource) -> bool {
    resource.group == "events.k8s.io"
}

fn pair(name: &str, order: fn((&'static str, &'static str)) -> (&'static str, &'static str)) -> &str {
    EVENT_FIELDS.iter().map(|row| order(*row)).find(|(from, _)| *from == name).map_or(name, |(_, to)| to)
}

fn rename(value: &Value, spell: impl Fn(&str) -> &str) -> Value {
    let fields = value.as_object().into_iter().flatten();
    Value::Object(fields.map(|(name, value)| (spell(name).to_owned(), value.clone())).collect())
}

/// The object with `kind` and `apiVersion` first, as the server writes them.
fn headed(event_version: &str, resource: &Resource, value: &Value) -> Value {
    let version = if resource.plural == "events" { event_version.to_owned() } else { resource.api_version() };
    let mut headed = Map::new();
    headed.insert("kind".to_owned(), json!(resource.kind));
    headed.insert("apiVersion".to_owned(), json!(version));
    for (name, value) in value.as_object().into_iter().flatten() {
        if name != "kind" && name != "apiVersion" {
            headed.insert(name.clone(), value.clone());
        }
    }
    Value::Object(headed)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};
    use crate::resource;
    use serde_json::json;

    #[test]
    fn an_event_reads_the_same_through_both_groups() {
        let (core, new) = (resource::known("", "events"), resource::known("events.k8s.io", "events"));
        let sent = json!({ "regarding": { "name": "p" }, "note": "n", "reportingController": "c" });
        let stored = decode(new, sent).unwrap();
        let want = json!({ "kind": "Event", "apiVersion": "v1", "involvedObject": { "name": "p" },
            "message": "n", "reportingComponent": "c" });
        assert_eq!(encode(core, &stored), want);
        assert_eq!(encode(new, &stored)["note"], "n");
        assert_eq!(encode(new, &stored)["apiVersion"], "events.k8s.io/v1");
    }
}
