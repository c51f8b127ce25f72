//! How an existing object is replaced or changed: what each path may touch, admission, and a compare-and-swap; it makes no object.

use super::{
    admission,
    attributes::{Attributes, Operation},
    defaults, object, pod_admission,
    reply::Reply,
    request::{Call, DryRun, Verb},
    resource::{Generation, Resource},
    server::Server,
    status::{Cause, Result, StatusError},
    validate, wire,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// How often a change without a resourceVersion is tried again on a newer object.
const ATTEMPTS: usize = 5;

/// Computes the wanted object, in its stored form, from the present one.
pub(super) type Wish<'a> = &'a (dyn Fn(&Value) -> Result<Value> + Send + Sync);

/// Replaces an object and answers 200 with it.
pub(super) async fn update(server: &Server, call: &Call, sent: Value) -> Result<Reply> {
    let wanted = wire::decode(call.resource, sent)?;
    let named = object::name(&wanted);
    if named != call.name {
        return Err(StatusError::bad_request(format!(
            "the name of the object ({named}) does not match the name on the URL ({})",
            call.name
        )));
    }
    rewrite(server, call, &|_| Ok(wanted.clone())).await
}

/// Changes an object as wished; a wish with a stale resourceVersion is refused with 409.
pub(super) async fn rewrite(server: &Server, call: &Call, wish: Wish<'_>) -> Result<Reply> {
    let dry_run = call.query.dry_run()?;
    for _ in 0..ATTEMPTS {
        let seen = server.get(call.resource, &call.key())?;
        let next = admitted(server, call, &seen, wish(&seen)?, dry_run).await?;
        if let Some(kept) = swap(server, call, &seen, next, dry_run)? {
            return Ok(Reply::Json(200, wire::encode(call.resource, &kept)));
        }
    }
    Err(StatusError::modified(call.resource, &call.name))
}

async fn admitted(
    server: &Server,
    call: &Call,
    seen: &Value,
    wanted: Value,
    dry_run: DryRun,
) -> Result<Value> {
    check_preconditions(call, seen, &wanted)?;
    let mut next = merge(call, seen, wanted);
    pod_admission::tolerate(call, &mut next);
    let attributes = Attributes::new(call, Operation::Update, &next, Some(seen), dry_run);
    next = admission::mutate(server, &attributes, next, |object| {
        defaults::apply(call.resource, object);
        Ok(())
    })
    .await?;
    let mut next = merge(call, seen, next);
    count_generation(call.resource, seen, &mut next);
    validate::change(call.resource, &call.subresource, seen, &next)?;
    let attributes = Attributes::new(call, Operation::Update, &next, Some(seen), dry_run);
    admission::validate(server, &attributes, Some(&next)).await?;
    Ok(next)
}

fn check_preconditions(call: &Call, seen: &Value, wanted: &Value) -> Result<()> {
    let (uid, version) = (object::uid(wanted), object::resource_version(wanted));
    let found = object::uid(seen);
    if !uid.is_empty() && uid != found {
        return Err(if call.verb == Verb::Patch {
            let cause = Cause::invalid("metadata.uid", &json!(uid), "field is immutable");
            StatusError::invalid(call.resource, &call.name, &[cause])
        } else {
            StatusError::precondition(call.resource, &call.namespace, &call.name, "UID", (uid, found))
        });
    }
    if !version.is_empty() && version != object::resource_version(seen) {
        return Err(StatusError::modified(call.resource, &call.name));
    }
    Ok(())
}

/// Stores the object unless another write came first, which answers none.
fn swap(
    server: &Server,
    call: &Call,
    seen: &Arc<Value>,
    mut next: Value,
    dry_run: DryRun,
) -> Result<Option<Value>> {
    let mut store = server.store();
    let current = store
        .get(call.resource, &call.key())
        .ok_or_else(|| StatusError::not_found(call.resource, &call.name))?;
    if !Arc::ptr_eq(&current, seen) {
        return Ok(None);
    }
    object::set_meta(&mut next, "resourceVersion", Some(seen["metadata"]["resourceVersion"].clone()));
    if dry_run == DryRun::All || next == **seen {
        return Ok(Some(next));
    }
    let grace = next.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    let ended = object::is_deleting(&next) && !object::has_finalizers(&next) && grace.unwrap_or(0) == 0;
    let namespace_ended = object::list(&next, "/spec/finalizers").is_empty();
    if ended && (call.resource.plural != "namespaces" || namespace_ended) {
        store.remove(call.resource, &call.key());
        return Ok(Some(next));
    }
    Ok(Some((*store.put(call.resource, next)).clone()))
}

/// Metadata that clients can't change.
const SYSTEM_METADATA: &[&str] = &[
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
];

/// Takes from the wish only what its path may change.
fn merge(call: &Call, seen: &Value, mut wanted: Value) -> Value {
    defaults::apply(call.resource, &mut wanted);
    for field in SYSTEM_METADATA {
        object::set_meta(&mut wanted, field, seen["metadata"].get(field).cloned());
    }
    object::set_meta(&mut wanted, "managedFields", None);
    object::set_meta(&mut wanted, "selfLink", None);
    let keep = |object: &mut Value, field: &str| object::set(object, field, seen.get(field).cloned());
    match call.subresource.as_str() {
        "" => {
            if call.resource.has_status() {
                keep(&mut wanted, "status");
            }
            if call.resource.plural == "pods" {
                keep_ephemeral(&mut wanted, seen);
            }
            if call.resource.plural == "namespaces" {
                keep(&mut wanted, "spec");
            }
            wanted
        }
        "status" => {
            for field in seen.as_object().into_iter().flatten().map(|(field, _)| field.as_str()) {
                if !matches!(field, "status" | "metadata") {
                    keep(&mut wanted, field);
                }
            }
            let owners = seen["metadata"].get("ownerReferences").cloned();
            object::set_meta(&mut wanted, "ownerReferences", owners);
            wanted
        }
        below => part(below, seen, &wanted),
    }
}

fn keep_ephemeral(wanted: &mut Value, seen: &Value) {
    let list = seen["spec"].get("ephemeralContainers").cloned();
    object::set(object::child(wanted, "spec"), "ephemeralContainers", list);
}

/// The object with only the part changed that the subresource is about.
fn part(subresource: &str, seen: &Value, wanted: &Value) -> Value {
    let mut next = seen.clone();
    // A stale version was refused before; the present one stays until the store writes a new one.
    match subresource {
        "ephemeralcontainers" => {
            let list = wanted["spec"].get("ephemeralContainers").cloned();
            object::set(object::child(&mut next, "spec"), "ephemeralContainers", list);
        }
        "resize" => {
            for list in ["containers", "initContainers"] {
                let Some(own) = next["spec"].get_mut(list).and_then(Value::as_array_mut) else {
                    continue;
                };
                for container in own {
                    let name = container["name"].clone();
                    let theirs = object::list(wanted, &format!("/spec/{list}"));
                    if let Some(theirs) = theirs.iter().find(|other| other["name"] == name) {
                        container["resources"] = theirs["resources"].clone();
                    }
                }
            }
        }
        _ => {
            let list = wanted["spec"].get("finalizers").cloned();
            object::set(object::child(&mut next, "spec"), "finalizers", list);
        }
    }
    next
}

fn count_generation(resource: &Resource, seen: &Value, next: &mut Value) {
    let spec = |object: &Value| {
        let fields = object.as_object().into_iter().flatten();
        let fields = fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status"));
        fields.map(|(name, value)| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>()
    };
    if resource.generation == Generation::Counted && spec(seen) != spec(next) {
        let generation = seen["metadata"]["generation"].as_i64().unwrap_or_default();
        object::set_meta(next, "generation", Some(json!(generation + 1)));
    }
}
