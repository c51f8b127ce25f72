//! What the API server's own admission plugins give a new pod: its priority and two default tolerations; it calls no webhook.

use super::{
    object,
    request::Call,
    resource::{self, Resource},
    server::Server,
    status::{Result, StatusError},
};
use serde_json::{Value, json};

/// Applies the plugins Priority and DefaultTolerationSeconds.
pub(super) fn admit(server: &Server, resource: &Resource, object: &mut Value) -> Result<()> {
    if resource.plural != "pods" {
        return Ok(());
    }
    let name = object::name(object).to_owned();
    let (class, value, preemption) = priority(server, resource, object, &name)?;
    let spec = object::child(object, "spec");
    if let Some(given) = spec.get("priority").and_then(Value::as_i64).filter(|given| *given != value) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; \
             priority admission controller computed {value} from the given PriorityClass name"
        );
        return Err(StatusError::forbidden(resource, &name, &why));
    }
    if let Some(given) =
        spec.get("preemptionPolicy").and_then(Value::as_str).filter(|given| *given != preemption)
    {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {preemption} from the given PriorityClass name"
        );
        return Err(StatusError::forbidden(resource, &name, &why));
    }
    if let Some(class) = class {
        spec["priorityClassName"] = json!(class);
    }
    spec["priority"] = json!(value);
    object::default(spec, "preemptionPolicy", json!(preemption));
    add_tolerations(spec);
    Ok(())
}

/// Class, value and preemption policy of a pod.
fn priority(
    server: &Server,
    resource: &Resource,
    pod: &Value,
    name: &str,
) -> Result<(Option<String>, i64, String)> {
    let classes = resource::known("scheduling.k8s.io", "priorityclasses");
    let wanted = object::text(pod, "/spec/priorityClassName");
    let mut store = server.store();
    let found = if wanted.is_empty() {
        store.objects(classes).values().find(|class| class["globalDefault"] == json!(true)).cloned()
    } else {
        store.get(classes, &(String::new(), wanted.to_owned()))
    };
    match found {
        Some(class) => Ok((
            Some(object::name(&class).to_owned()),
            class["value"].as_i64().unwrap_or_default(),
            class["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority").to_owned(),
        )),
        None if wanted.is_empty() => Ok((None, 0, "PreemptLowerPriority".to_owned())),
        None => {
            let why = format!("no PriorityClass with name {wanted} was found");
            Err(StatusError::forbidden(resource, name, &why))
        }
    }
}

/// Applies DefaultTolerationSeconds to a changed pod.
pub(super) fn tolerate(call: &Call, object: &mut Value) {
    if call.resource.plural == "pods" && call.subresource.is_empty() {
        add_tolerations(object::child(object, "spec"));
    }
}

fn add_tolerations(spec: &mut Value) {
    add_toleration(spec, "node.kubernetes.io/not-ready");
    add_toleration(spec, "node.kubernetes.io/unreachable");
}

fn add_toleration(spec: &mut Value, key: &str) {
    let covered = object::list(spec, "/tolerations").iter().any(|toleration| {
        let (own, effect) = (object::text(toleration, "/key"), object::text(toleration, "/effect"));
        (own == key || own.is_empty()) && matches!(effect, "" | "NoExecute")
    });
    if !covered {
        let added =
            json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
        object::default(spec, "tolerations", json!([]));
        if let Some(all) = spec["tolerations"].as_array_mut() {
            all.push(added);
        }
    }
}
