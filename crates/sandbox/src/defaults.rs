//! Which fields the API server fills in where a client left them out; it refuses nothing.

use super::{clock, object, quantity, resource::Resource};
use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Applies the defaults of decoding; doing so twice changes nothing more.
pub(super) fn apply(resource: &'static Resource, object: &mut Value) {
    object::default(object, "kind", json!(resource.kind));
    object::default(object, "apiVersion", json!(resource.stored().api_version()));
    match resource.plural {
        "pods" => pod(object),
        "nodes" => node(object),
        "namespaces" => namespace(object),
        "secrets" => secret(object),
        "events" => {
            object::default(object, "source", json!({}));
            object::default(object, "reportingComponent", json!(""));
            object::default(object, "reportingInstance", json!(""));
        }
        "priorityclasses" => object::default(object, "preemptionPolicy", json!("PreemptLowerPriority")),
        "mutatingwebhookconfigurations" => each(object, "webhooks", |webhook| {
            object::default(webhook, "reinvocationPolicy", json!("Never"));
            webhook_defaults(webhook);
        }),
        "validatingwebhookconfigurations" => each(object, "webhooks", webhook_defaults),
        _ => {}
    }
}

fn each(parent: &mut Value, list: &str, change: impl Fn(&mut Value)) {
    parent
        .get_mut(list)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter(|item| item.is_object())
        .for_each(change);
}

fn namespace(object: &mut Value) {
    let name = json!(object::name(object));
    if name != "" {
        object::child(object::child(object, "metadata"), "labels")["kubernetes.io/metadata.name"] = name;
    }
}

fn secret(object: &mut Value) {
    object::default(object, "type", json!("Opaque"));
    let Some(Value::Object(plain)) = object.get("stringData").cloned() else {
        return;
    };
    let data = object::child(object, "data");
    for (key, value) in plain {
        data[key.as_str()] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
    object::set(object, "stringData", None);
}

fn webhook_defaults(webhook: &mut Value) {
    object::default(webhook, "failurePolicy", json!("Fail"));
    object::default(webhook, "matchPolicy", json!("Equivalent"));
    object::default(webhook, "namespaceSelector", json!({}));
    object::default(webhook, "objectSelector", json!({}));
    object::default(webhook, "timeoutSeconds", json!(10));
    each(webhook, "rules", |rule| {
        object::default(rule, "scope", json!("*"));
    });
    if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
        object::default(service, "port", json!(443));
    }
}

fn node(object: &mut Value) {
    object::child(object, "spec");
    let status = object::child(object, "status");
    for list in ["capacity", "allocatable"] {
        respell(status.get_mut(list));
    }
    if let Some(capacity) = status.get("capacity").cloned() {
        object::default(status, "allocatable", capacity);
    }
}

fn pod(object: &mut Value) {
    let spec = object::child(object, "spec");
    for (field, value) in [
        ("restartPolicy", json!("Always")),
        ("terminationGracePeriodSeconds", json!(30)),
        ("dnsPolicy", json!("ClusterFirst")),
        ("securityContext", json!({})),
        ("schedulerName", json!("default-scheduler")),
        ("enableServiceLinks", json!(true)),
    ] {
        object::default(spec, field, value);
    }
    each(spec, "containers", container);
    each(spec, "initContainers", container);
    if let Some(whole) = spec.get_mut("resources") {
        requests(whole);
    }
    respell(spec.get_mut("overhead"));
}

fn container(container: &mut Value) {
    let image = object::text(container, "/image");
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map_or("latest", |(_, tag)| tag);
    let pull = if tag == "latest" && !image.contains('@') { "Always" } else { "IfNotPresent" };
    object::default(container, "imagePullPolicy", json!(pull));
    object::default(container, "terminationMessagePath", json!("/dev/termination-log"));
    object::default(container, "terminationMessagePolicy", json!("File"));
    object::default(container, "resources", json!({}));
    each(container, "ports", |port| {
        object::default(port, "protocol", json!("TCP"));
    });
    requests(&mut container["resources"]);
}

/// Respells limits and requests, and asks for the limit where no request is named.
fn requests(resources: &mut Value) {
    respell(resources.get_mut("limits"));
    respell(resources.get_mut("requests"));
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
        return;
    };
    let requests = object::child(resources, "requests");
    for (name, limit) in limits {
        object::default(requests, &name, limit);
    }
}

/// Writes every quantity of a resource list as a real server stores it.
fn respell(list: Option<&mut Value>) {
    for amount in list.and_then(Value::as_object_mut).map(Map::values_mut).into_iter().flatten() {
        let text = match amount {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        *amount = json!(quantity::respell(&text));
    }
}

/// The status with which a new object starts, whatever the client sent.
pub(super) fn first_status(resource: &Resource, object: &mut Value, now: Timestamp) {
    let status = match resource.plural {
        "pods" => first_pod_status(object, now),
        "namespaces" => {
            object["spec"] = json!({ "finalizers": ["kubernetes"] });
            json!({ "phase": "Active" })
        }
        "persistentvolumeclaims" | "persistentvolumes" => json!({ "phase": "Pending" }),
        "nodes" => return,
        _ if resource.has_status() => json!({}),
        _ => return,
    };
    object["status"] = status;
}

fn first_pod_status(pod: &Value, now: Timestamp) -> Value {
    let mut status = json!({ "phase": "Pending" });
    if !object::list(pod, "/spec/schedulingGates").is_empty() {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null,
            "lastTransitionTime": clock::seconds(now), "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    status["qosClass"] = json!(quality(pod));
    object::drop_nulls(&mut status);
    status
}

/// The quality-of-service class, from cpu and memory alone.
fn quality(pod: &Value) -> &'static str {
    let containers =
        || ["/spec/containers", "/spec/initContainers"].iter().flat_map(|list| object::list(pod, list));
    let amount = |container: &Value, list: &str, name: &str| {
        let text = object::text(container, &format!("/resources/{list}/{name}")).to_owned();
        Some(text).filter(|text| !text.is_empty() && text != "0")
    };
    let names = ["cpu", "memory"];
    let asks = |container: &Value| {
        names.iter().any(|name| {
            amount(container, "limits", name).or_else(|| amount(container, "requests", name)).is_some()
        })
    };
    let bounded = |container: &Value| {
        names.iter().all(|name| {
            let limit = amount(container, "limits", name);
            limit.is_some() && limit == amount(container, "requests", name)
        })
    };
    match (containers().any(asks), containers().all(bounded)) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
