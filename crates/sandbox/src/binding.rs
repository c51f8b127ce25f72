//! How a pod gets its node: one write of nodeName, condition, labels and annotations; it checks no capacity and no node.

use super::{
    admission,
    attributes::{Attributes, Operation},
    clock, create, object,
    reply::Reply,
    request::{Call, DryRun},
    resource,
    server::Server,
    status::{Result, StatusError},
};
use serde_json::{Value, json};

/// Binds a pod through `pods/binding` or the older `bindings`, and answers 201 with a Status.
pub(super) async fn bind(server: &Server, call: &Call, sent: Value) -> Result<Reply> {
    let dry_run = call.query.dry_run()?;
    let mut binding = sent;
    object::drop_nulls(&mut binding);
    binding["kind"] = json!("Binding");
    binding["apiVersion"] = json!("v1");
    check_target(call, &binding)?;
    create::check_namespace(server, call)?;
    object::set_meta(&mut binding, "namespace", Some(json!(call.namespace)));
    let attributes = Attributes::new(call, Operation::Create, &binding, None, dry_run);
    binding = admission::mutate(server, &attributes, binding, |_| Ok(())).await?;
    validate(&binding)?;
    let attributes = Attributes::new(call, Operation::Create, &binding, None, dry_run);
    admission::validate(server, &attributes, Some(&binding)).await?;
    assign(server, call, &binding, dry_run)?;
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok(Reply::Json(201, status))
}

fn check_target(call: &Call, binding: &Value) -> Result<()> {
    let (name, namespace) = (object::name(binding), object::namespace(binding));
    if !namespace.is_empty() && namespace != call.namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(StatusError::bad_request(text));
    }
    if !call.name.is_empty() && name != call.name {
        return Err(StatusError::bad_request("name in URL does not match name in Binding object"));
    }
    validate(binding)
}

/// The real server answers these as plain 500s.
fn validate(binding: &Value) -> Result<()> {
    let kind = object::text(binding, "/target/kind");
    let text = if !matches!(kind, "" | "Node") {
        format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\"")
    } else if object::text(binding, "/target/name").is_empty() {
        "target.name: Required value".to_owned()
    } else {
        return Ok(());
    };
    Err(StatusError::new(500, "", text))
}

/// The one read-modify-write: preconditions, then node, condition and metadata together.
fn assign(server: &Server, call: &Call, binding: &Value, dry_run: DryRun) -> Result<()> {
    let pods = resource::known("", "pods");
    let key = (call.namespace.clone(), object::name(binding).to_owned());
    let mut store = server.store();
    let seen = store.get(pods, &key).ok_or_else(|| StatusError::not_found(pods, &key.1))?;
    check_preconditions(pods, binding, &seen)?;
    if let Some(why) = obstacle(&seen) {
        return Err(StatusError::conflict(pods, "pods/binding", &key.1, &why));
    }
    let pod = bound(&seen, binding, &clock::seconds(server.clock.now()));
    if dry_run == DryRun::Off {
        store.put(pods, pod);
    }
    Ok(())
}

/// Refuses when the Binding names another uid or version than the pod has.
fn check_preconditions(pods: &resource::Resource, binding: &Value, pod: &Value) -> Result<()> {
    let pairs = [
        ("UID", object::uid(binding), object::uid(pod)),
        ("ResourceVersion", object::resource_version(binding), object::resource_version(pod)),
    ];
    for (what, asked, found) in pairs {
        if !asked.is_empty() && asked != found {
            let (namespace, name) = (object::namespace(pod), object::name(pod));
            return Err(StatusError::precondition(pods, namespace, name, what, (asked, found)));
        }
    }
    Ok(())
}

/// Why the pod can't be bound.
fn obstacle(pod: &Value) -> Option<String> {
    let name = object::name(pod);
    let node = object::text(pod, "/spec/nodeName");
    if object::is_deleting(pod) {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if !node.is_empty() {
        return Some(format!("pod {name} is already assigned to node {node:?}"));
    }
    let gated = !object::list(pod, "/spec/schedulingGates").is_empty();
    gated.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
}

fn bound(seen: &Value, binding: &Value, now: &str) -> Value {
    let mut pod = seen.clone();
    object::child(&mut pod, "spec")["nodeName"] = binding["target"]["name"].clone();
    for map in ["annotations", "labels"] {
        for (key, value) in object::pairs(binding, &format!("/metadata/{map}")) {
            object::child(object::child(&mut pod, "metadata"), map)[key] = json!(value);
        }
    }
    let status = object::child(&mut pod, "status");
    object::set(status, "nominatedNodeName", None);
    object::default(status, "conditions", json!([]));
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": now });
    if let Some(conditions) = status["conditions"].as_array_mut() {
        match conditions.iter_mut().find(|condition| condition["type"] == "PodScheduled") {
            Some(condition) => *condition = scheduled,
            None => conditions.push(scheduled),
        }
    }
    pod
}
