//! How objects go: preconditions, admission, grace for pods that run, finalizers, removal; nothing is collected for a gone owner.

use super::{
    admission,
    attributes::{Attributes, Operation},
    clock, list, object,
    reply::Reply,
    request::{Call, DryRun},
    selector::Selection,
    server::Server,
    status::{Result, StatusError},
    store::Key,
    wire,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Kinds whose deletion answers with the object; the others answer with a Status.
const ANSWER_OBJECT: &[&str] =
    &["pods", "persistentvolumeclaims", "persistentvolumes", "resourcequotas", "serviceaccounts", "services"];

/// How often a deletion is tried again when another write comes between.
const ATTEMPTS: usize = 5;

/// What the client asks of a deletion.
struct Terms {
    uid: Option<String>,
    resource_version: Option<String>,
    grace: Option<i64>,
    dry_run: DryRun,
}

/// What became of the object.
enum End {
    /// Gone, or as good as gone in a dry run.
    Removed(Value),
    /// Still there: grace or finalizers hold it.
    Held(Value),
    /// Another write came first.
    Lost,
}

/// Deletes one object.
pub(super) async fn delete(server: &Server, call: &Call, body: &[u8]) -> Result<Reply> {
    let terms = Terms::read(call, body)?;
    for _ in 0..ATTEMPTS {
        match end(server, call, &call.key(), &terms).await? {
            End::Lost => {}
            End::Held(object) => return Ok(Reply::Json(200, wire::encode(call.resource, &object))),
            End::Removed(object) if ANSWER_OBJECT.contains(&call.resource.plural) => {
                return Ok(Reply::Json(200, wire::encode(call.resource, &object)));
            }
            End::Removed(object) => return Ok(Reply::Json(200, success(call, &object))),
        }
    }
    Err(StatusError::modified(call.resource, &call.name))
}

/// Deletes what the selectors pick and answers with the list of it as it was.
pub(super) async fn delete_collection(server: &Server, call: &Call, body: &[u8]) -> Result<Reply> {
    let terms = Terms::read(call, body)?;
    let selection = Selection::read(call.resource, &call.namespace, &call.query)?;
    let reply = list::list(server, call)?;
    let picked: Vec<Key> = {
        let mut store = server.store();
        let objects = store.objects(call.resource).iter();
        objects.filter(|(_, object)| selection.matches(object)).map(|(key, _)| key.clone()).collect()
    };
    for key in picked {
        for _ in 0..ATTEMPTS {
            match end(server, call, &key, &terms).await {
                Ok(End::Lost) => {}
                Ok(_) => break,
                Err(error) if error.code == 404 => break,
                Err(error) => return Err(error),
            }
        }
    }
    Ok(reply)
}

impl Terms {
    fn read(call: &Call, body: &[u8]) -> Result<Self> {
        let options = if body.is_empty() { json!({}) } else { wire::read(&call.content_type, body)? };
        let text = |pointer: &str| options.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let grace = call.query.number("gracePeriodSeconds")?.and_then(|seconds| i64::try_from(seconds).ok());
        let dry_run = match options.pointer("/dryRun/0").and_then(Value::as_str) {
            Some("All") => DryRun::All,
            _ => call.query.dry_run()?,
        };
        Ok(Self {
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
            grace: options["gracePeriodSeconds"].as_i64().or(grace),
            dry_run,
        })
    }

    fn check(&self, call: &Call, object: &Value) -> Result<()> {
        let (uid, version) = (object::uid(object), object::resource_version(object));
        let refuse = |what: &str, asked: &str, found: &str, tail: &str| {
            let why = format!(
                "the {what} in the precondition ({asked}) does not match the {what} in record ({found}). \
                 The object might have been {tail}"
            );
            let name = object::name(object);
            let mut error = StatusError::conflict(call.resource, &call.resource.qualified_kind(), name, &why);
            error.details["kind"] = json!(call.resource.kind);
            error
        };
        if let Some(asked) = self.uid.as_deref().filter(|asked| *asked != uid) {
            return Err(refuse("UID", asked, uid, "deleted and then recreated"));
        }
        if let Some(asked) = self.resource_version.as_deref().filter(|asked| *asked != version) {
            return Err(refuse("ResourceVersion", asked, version, "modified"));
        }
        Ok(())
    }
}

async fn end(server: &Server, call: &Call, key: &Key, terms: &Terms) -> Result<End> {
    let seen = server.get(call.resource, key)?;
    terms.check(call, &seen)?;
    let attributes = Attributes::new(call, Operation::Delete, &seen, Some(&seen), terms.dry_run);
    admission::mutate(server, &attributes, Value::Null, |_| Ok(())).await?;
    admission::validate(server, &attributes, None).await?;
    let mut store = server.store();
    if !store.get(call.resource, key).is_some_and(|current| Arc::ptr_eq(&current, &seen)) {
        return Ok(End::Lost);
    }
    let grace = grace(call.resource.plural, &seen, terms.grace);
    let namespace =
        call.resource.plural == "namespaces" && !object::list(&seen, "/spec/finalizers").is_empty();
    let held = grace > 0 || object::has_finalizers(&seen) || namespace;
    match (held, terms.dry_run) {
        (false, dry_run) => {
            if dry_run == DryRun::Off {
                store.remove(call.resource, key);
            }
            let pods = call.resource.plural == "pods";
            Ok(End::Removed(if pods { mark(server, "pods", &seen, grace) } else { (*seen).clone() }))
        }
        (true, dry_run) => {
            let marked = mark(server, call.resource.plural, &seen, grace);
            if dry_run == DryRun::All || marked == *seen {
                return Ok(End::Held(marked));
            }
            Ok(End::Held((*store.put(call.resource, marked)).clone()))
        }
    }
}

/// Seconds that a pod gets to end: none where no kubelet runs it or it has ended.
fn grace(plural: &str, object: &Value, asked: Option<i64>) -> i64 {
    let ended = matches!(object::text(object, "/status/phase"), "Succeeded" | "Failed");
    if plural != "pods" || object::text(object, "/spec/nodeName").is_empty() || ended {
        return 0;
    }
    let own = object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    asked.or(own).unwrap_or(30).max(0)
}

/// The object with the time by which it should be gone; a mark that is already there only moves forward.
fn mark(server: &Server, plural: &str, seen: &Value, grace: i64) -> Value {
    let earlier = seen.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
    if object::is_deleting(seen) && earlier.unwrap_or(0) <= grace {
        return seen.clone();
    }
    let mut marked = seen.clone();
    let at = server.clock.now() + jiff::SignedDuration::from_secs(grace);
    object::set_meta(&mut marked, "deletionTimestamp", Some(json!(clock::seconds(at))));
    object::set_meta(&mut marked, "deletionGracePeriodSeconds", Some(json!(grace)));
    let generation = seen.pointer("/metadata/generation").and_then(Value::as_i64);
    if let Some(generation) = generation.filter(|_| !object::is_deleting(seen)) {
        object::set_meta(&mut marked, "generation", Some(json!(generation + 1)));
    }
    if plural == "namespaces" {
        object::child(&mut marked, "status")["phase"] = json!("Terminating");
    }
    marked
}

fn success(call: &Call, object: &Value) -> Value {
    let mut details = json!({ "name": object::name(object) });
    if !call.resource.group.is_empty() {
        details["group"] = json!(call.resource.group);
    }
    details["kind"] = json!(call.resource.plural);
    details["uid"] = json!(object::uid(object));
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}
