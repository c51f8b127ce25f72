//! How a patch body becomes the wanted object, for the four patch types; storing it is `update`'s.

use super::{
    create, object,
    reply::Reply,
    request::Call,
    server::Server,
    status::{Result, StatusError},
    strategic_merge, update, wire,
};
use serde_json::{Value, json};

/// A patch in one of the served types.
enum Patch {
    Json(json_patch::Patch),
    Merge(Value),
    Strategic(Value),
}

const APPLY: &str = "application/apply-patch+yaml";

/// Patches an object; an apply patch also creates it.
pub(super) async fn patch(server: &Server, call: &Call, body: &[u8]) -> Result<Reply> {
    let kind = call.content_type.split(';').next().unwrap_or_default().trim();
    if kind == APPLY {
        return apply(server, call, body).await;
    }
    let patch = read(kind, body)?;
    change(server, call, &patch).await
}

/// Server-side apply without field ownership: what is absent is created, what exists gets a strategic merge.
async fn apply(server: &Server, call: &Call, body: &[u8]) -> Result<Reply> {
    let mut wanted = wire::parse_yaml(body)?;
    if call.query.get("fieldManager").is_none() {
        let text = "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch";
        return Err(StatusError::new(422, "Invalid", text));
    }
    if server.get(call.resource, &call.key()).is_err() && call.subresource.is_empty() {
        object::set_meta(&mut wanted, "name", Some(json!(call.name)));
        return create::create(server, call, wanted).await;
    }
    change(server, call, &Patch::Strategic(wanted)).await
}

async fn change(server: &Server, call: &Call, patch: &Patch) -> Result<Reply> {
    update::rewrite(server, call, &|seen: &Value| {
        let mut object = wire::encode(call.resource, seen);
        patch.apply(&mut object)?;
        let wanted = wire::decode(call.resource, object)?;
        if object::name(&wanted) != call.name {
            return Err(StatusError::bad_request(
                "the name of the object does not match the name on the URL",
            ));
        }
        Ok(wanted)
    })
    .await
}

fn read(kind: &str, body: &[u8]) -> Result<Patch> {
    match kind {
        "application/json-patch+json" => serde_json::from_slice(body)
            .map(Patch::Json)
            .map_err(|error| StatusError::bad_request(format!("error decoding patch: {error}"))),
        "application/merge-patch+json" => wire::parse(body).map(Patch::Merge),
        "application/strategic-merge-patch+json" => wire::parse(body).map(Patch::Strategic),
        other => Err(StatusError::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format ({other}) - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, \
                 application/strategic-merge-patch+json, {APPLY}"
            ),
        )),
    }
}

impl Patch {
    fn apply(&self, object: &mut Value) -> Result<()> {
        match self {
            Patch::Json(operations) => json_patch::patch(object, operations).map_err(|_| {
                let text = "the server rejected our request due to an error in our request";
                StatusError { details: Box::new(json!({})), ..StatusError::new(422, "Invalid", text) }
            }),
            Patch::Merge(merge) => {
                json_patch::merge(object, merge);
                Ok(())
            }
            Patch::Strategic(patch) => strategic_merge::merge(object, patch),
        }
    }
}
