//! Reviews of tokens and of access: they are answered and never stored. No role is evaluated: `system:masters` may do everything, and
//! others nothing.

use super::{
    reply::Reply,
    request::Call,
    resource::Resource,
    server::Server,
    status::{Result, StatusError},
    wire,
};
use serde_json::{Value, json};

/// The group that may do everything.
const MASTERS: &str = "system:masters";

impl Resource {
    /// Whether a POST is answered with the object's status and nothing is stored.
    pub(super) fn is_review(&self) -> bool {
        self.plural.ends_with("reviews")
    }
}

/// Answers 201 with the review and its status.
pub(super) fn review(server: &Server, call: &Call, sent: Value) -> Result<Reply> {
    let mut review = wire::decode(call.resource, sent)?;
    review["status"] = match call.resource.plural {
        "tokenreviews" => token(server, &review["spec"])?,
        _ => access(&subject(&review["spec"])?),
    };
    Ok(Reply::Json(201, wire::encode(call.resource, &review)))
}

fn token(server: &Server, spec: &Value) -> Result<Value> {
    let token = spec["token"].as_str().filter(|token| !token.is_empty());
    let token = token
        .ok_or_else(|| StatusError::bad_request("token is required for TokenReview in authentication"))?;
    Ok(match server.bearer(token) {
        Some(user) => json!({ "authenticated": true, "user": user.to_json() }),
        None => json!({ "error": "invalid bearer token" }),
    })
}

/// The groups of the user that is asked about.
fn subject(spec: &Value) -> Result<Vec<String>> {
    let groups: Vec<_> = spec["groups"].as_array().into_iter().flatten().collect();
    if spec["user"].as_str().unwrap_or_default().is_empty() && groups.is_empty() {
        let text = "spec.user: Invalid value: null: at least one of user or group must be specified";
        return Err(StatusError::new(422, "Invalid", text));
    }
    Ok(groups.into_iter().filter_map(|group| Some(group.as_str()?.to_owned())).collect())
}

fn access(groups: &[String]) -> Value {
    if groups.iter().any(|group| group == MASTERS) {
        return json!({ "allowed": true });
    }
    json!({ "allowed": false, "reason": "the sandbox evaluates no roles: only system:masters is allowed" })
}
