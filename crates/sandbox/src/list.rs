//! What a list answers: a page of a consistent snapshot, or 410 when the snapshot can't be rebuilt; it follows nothing.

use super::{
    reply::Reply,
    request::Call,
    resource::Resource,
    selector::Selection,
    server::Server,
    status::{Result, StatusError},
    store::{Key, Snapshot},
    wire,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use std::ops::Bound;

const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. \
     You must start a new list without the continue parameter.";

/// Where a page starts and at which revision it reads.
struct Page {
    revision: u64,
    after: Option<Key>,
    limit: usize,
}

/// Answers a list.
pub(super) fn list(server: &Server, call: &Call) -> Result<Reply> {
    let selection = Selection::read(call.resource, &call.namespace, &call.query)?;
    let printer = server.printer(call)?;
    let mut store = server.store();
    let page = read_page(call, store.revision())?;
    let rebuilt;
    let objects = if page.revision == store.revision() {
        store.objects(call.resource)
    } else {
        rebuilt = store.snapshot_at(call.resource, page.revision).map_err(|error| too_old(call, error))?;
        &rebuilt
    };
    let (metadata, items) = read(call, objects, &selection, &page);
    Ok(Reply::Json(
        200,
        match printer {
            Some(printer) => printer.table(&metadata, &items),
            None => as_list(call.resource, &metadata, &items),
        },
    ))
}

fn too_old(call: &Call, error: StatusError) -> StatusError {
    match call.query.get("continue") {
        Some(_) => StatusError::expired(CONTINUE_TOO_OLD),
        None => error,
    }
}

fn read_page(call: &Call, newest: u64) -> Result<Page> {
    let limit = call.query.number("limit")?.filter(|limit| *limit > 0);
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    if let Some(token) = call.query.get("continue") {
        let (revision, after) = read_token(token).ok_or_else(|| {
            StatusError::bad_request("continue key is not valid: illegal base64 or content")
        })?;
        return Ok(Page { revision, after: Some(after), limit });
    }
    let asked = call.query.number("resourceVersion")?;
    if asked.is_some_and(|asked| asked > newest) {
        let text =
            format!("Timeout: Too large resource version: {}, current: {newest}", asked.unwrap_or_default());
        let cause = json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
        let details = Box::new(json!({ "causes": [cause], "retryAfterSeconds": 1 }));
        return Err(StatusError { details, ..StatusError::new(504, "Timeout", text) });
    }
    let exact = call.query.get("resourceVersionMatch") == Some("Exact");
    let revision = asked.filter(|asked| exact && *asked > 0).unwrap_or(newest);
    // The watch cache, which serves resourceVersion=0, knows no pages.
    let limit = if asked == Some(0) { usize::MAX } else { limit };
    Ok(Page { revision, after: None, limit })
}

fn read_token(token: &str) -> Option<(u64, Key)> {
    let text: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (namespace, name) = (text["namespace"].as_str()?, text["name"].as_str()?);
    Some((text["rv"].as_u64()?, (namespace.to_owned(), name.to_owned())))
}

fn write_token(revision: u64, (namespace, name): &Key) -> String {
    URL_SAFE_NO_PAD.encode(json!({ "rv": revision, "namespace": namespace, "name": name }).to_string())
}

/// The metadata of a page, and its objects as they are sent.
fn read(call: &Call, objects: &Snapshot, selection: &Selection, page: &Page) -> (Value, Vec<Value>) {
    let start = page.after.clone().map_or(Bound::Unbounded, Bound::Excluded);
    let mut left = objects.range((start, Bound::Unbounded)).filter(|(_, object)| selection.matches(object));
    let mut items = Vec::new();
    let mut last = None;
    for (key, object) in left.by_ref().take(page.limit) {
        items.push(wire::encode(call.resource, object));
        last = Some(key);
    }
    let remaining = left.count();
    let mut metadata = json!({ "resourceVersion": page.revision.to_string() });
    if let Some(last) = last.filter(|_| remaining > 0) {
        metadata["continue"] = json!(write_token(page.revision, last));
        if call.query.get("labelSelector").is_none() && call.query.get("fieldSelector").is_none() {
            metadata["remainingItemCount"] = json!(remaining);
        }
    }
    (metadata, items)
}

fn as_list(resource: &Resource, metadata: &Value, items: &[Value]) -> Value {
    json!({
        "kind": format!("{}List", resource.kind),
        "apiVersion": resource.api_version(),
        "metadata": metadata,
        "items": items,
    })
}
