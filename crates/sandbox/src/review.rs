//! How an AdmissionReview is written and its answer read; it calls nobody.

use super::{
    attributes::{Attributes, Operation},
    request::DryRun,
    status::StatusError,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// A call that brought no valid answer.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WebhookFault(pub(super) String);

/// What a webhook answered.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) denial: Option<Denial>,
    pub(super) patch: Option<json_patch::Patch>,
    pub(super) warnings: Vec<String>,
}

/// The status of a refusal, as the webhook gave it.
#[derive(Debug)]
pub(super) struct Denial(Value);

/// The body of the request to a webhook (`admission.k8s.io/v1`).
pub(super) fn request(uid: &str, attributes: &Attributes<'_>, object: &Value) -> Value {
    let call = attributes.call;
    let (group, version, kind) = attributes.kind();
    let resource = json!({
        "group": call.resource.group, "version": call.resource.version, "resource": call.resource.plural,
    });
    let kind = json!({ "group": group, "version": version, "kind": kind });
    let options = match attributes.operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut request = json!({ "uid": uid, "kind": kind, "resource": resource });
    if !call.subresource.is_empty() {
        request["subResource"] = json!(call.subresource);
    }
    request["requestKind"] = kind;
    request["requestResource"] = resource;
    if !call.subresource.is_empty() {
        request["requestSubResource"] = json!(call.subresource);
    }
    for (field, value) in [("name", &attributes.name), ("namespace", &call.namespace)] {
        if !value.is_empty() {
            request[field] = json!(value);
        }
    }
    request["operation"] = json!(attributes.operation.as_str());
    request["userInfo"] = call.user.to_json();
    request["object"] = attributes.spelled(object);
    request["oldObject"] = attributes.old.map_or(Value::Null, |old| attributes.spelled(old));
    request["dryRun"] = json!(attributes.dry_run == DryRun::All);
    request["options"] = json!({ "kind": options, "apiVersion": "meta.k8s.io/v1" });
    if attributes.dry_run == DryRun::All {
        request["options"]["dryRun"] = json!(["All"]);
    }
    json!({ "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request })
}

/// Reads the answer to the review of that uid.
pub(super) fn response(uid: &str, body: &[u8]) -> Result<Verdict, WebhookFault> {
    let fault = |why: String| WebhookFault(format!("received invalid webhook response: {why}"));
    let review: Value = serde_json::from_slice(body)
        .map_err(|error| fault(format!("couldn't decode the response: {error}")))?;
    let header = (review["kind"].as_str(), review["apiVersion"].as_str());
    if header != (Some("AdmissionReview"), Some("admission.k8s.io/v1")) {
        return Err(fault(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {}, Kind={}",
            review["apiVersion"].as_str().unwrap_or_default(),
            review["kind"].as_str().unwrap_or_default()
        )));
    }
    let response = &review["response"];
    if response["uid"] != uid {
        return Err(fault(format!("expected response.uid={uid:?}, got {}", response["uid"])));
    }
    let allowed =
        response["allowed"].as_bool().ok_or_else(|| fault("response.allowed is absent".to_owned()))?;
    let warnings = super::object::list(response, "/warnings").iter();
    Ok(Verdict {
        denial: (!allowed).then(|| Denial(response["status"].clone())),
        patch: patch(response)?,
        warnings: warnings.filter_map(|warning| warning.as_str().map(str::to_owned)).collect(),
    })
}

fn patch(response: &Value) -> Result<Option<json_patch::Patch>, WebhookFault> {
    let fault = |why: String| WebhookFault(format!("received invalid webhook response: {why}"));
    let undecodable = |why: &dyn std::fmt::Display| {
        WebhookFault(format!("received undecodable patch in webhook response: {why}"))
    };
    let coded = response["patch"].as_str().filter(|patch| !patch.is_empty());
    match (coded, response["patchType"].as_str()) {
        (None, None) => Ok(None),
        (None, Some(_)) => {
            Err(fault("webhook returned response.patchType but not response.patch".to_owned()))
        }
        (Some(coded), Some("JSONPatch")) => {
            let bytes = STANDARD.decode(coded).map_err(|error| undecodable(&error))?;
            let patch = serde_json::from_slice(&bytes).map_err(|error| undecodable(&error))?;
            Ok(Some(patch))
        }
        (Some(_), other) => Err(fault(format!("webhook returned invalid response.patchType of {other:?}"))),
    }
}

impl Denial {
    /// The client's error: the webhook's code (400 when it names none that refuses) and its message behind its name.
    pub(super) fn to_error(&self, webhook: &str) -> StatusError {
        let code = self.0["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(0);
        let reason = self.0["reason"].as_str().unwrap_or_default();
        let opening = format!("admission webhook {webhook:?} denied the request");
        let message = match (self.0["message"].as_str().unwrap_or_default(), reason) {
            ("", "") => format!("{opening} without explanation"),
            ("", reason) => format!("{opening}: {reason}"),
            (message, _) => format!("{opening}: {message}"),
        };
        let error = StatusError::new(if code < 400 { 400 } else { code }, reason, message);
        StatusError { details: Box::new(self.0["details"].clone()), ..error }
    }
}
