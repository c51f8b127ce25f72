//! Which webhooks see a request, in which order, and what their answers do to it; the call itself is `webhook_call`'s.
//!
//! Match conditions (CEL) are not evaluated: a webhook that has some is called more often than by a real server.
//! Admission policies are stored and never evaluated. `matchPolicy: Equivalent` reads as `Exact`.

use super::{
    attributes::Attributes,
    object,
    request::DryRun,
    resource::{self, Resource},
    review::{self, WebhookFault},
    server::Server,
    status::{Result, StatusError},
    webhook::Webhook,
};
use futures::future;
use serde_json::Value;

/// The webhook registrations themselves are never sent to webhooks.
fn is_exempt(resource: &Resource) -> bool {
    resource.group == "admissionregistration.k8s.io"
}

fn webhooks(server: &Server, plural: &str) -> Vec<Webhook> {
    let configurations = resource::known("admissionregistration.k8s.io", plural);
    let mut store = server.store();
    let all = store.objects(configurations).values();
    all.flat_map(|configuration| object::list(configuration, "/webhooks")).map(Webhook::read).collect()
}

/// Lets the mutating webhooks change the object, one after the other; `settle` runs after each change.
///
/// A webhook with `reinvocationPolicy: IfNeeded` is called once more when a later one changed the object.
pub(super) async fn mutate(
    server: &Server,
    attributes: &Attributes<'_>,
    mut object: Value,
    settle: impl Fn(&mut Value) -> Result<()> + Send + Sync,
) -> Result<Value> {
    if is_exempt(attributes.call.resource) {
        return Ok(object);
    }
    let webhooks = webhooks(server, "mutatingwebhookconfigurations");
    let mut called = Vec::new();
    let mut last_change = None;
    for (index, webhook) in webhooks.iter().enumerate() {
        if !webhook.matches(server, attributes, &object) {
            continue;
        }
        called.push(index);
        let next = mutate_once(server, attributes, webhook, &object, &settle).await?;
        if next != object {
            last_change = Some(index);
            object = next;
        }
    }
    for index in called {
        let webhook = &webhooks[index];
        let outdated = last_change.is_some_and(|last| last > index);
        if outdated && webhook.is_reinvoked() && webhook.matches(server, attributes, &object) {
            object = mutate_once(server, attributes, webhook, &object, &settle).await?;
        }
    }
    Ok(object)
}

async fn mutate_once(
    server: &Server,
    attributes: &Attributes<'_>,
    webhook: &Webhook,
    object: &Value,
    settle: &(impl Fn(&mut Value) -> Result<()> + Send + Sync),
) -> Result<Value> {
    let Some(verdict) = consult(server, attributes, webhook, object).await? else {
        return Ok(object.clone());
    };
    let Some(patch) = verdict.patch.filter(|patch| !patch.0.is_empty()) else {
        return Ok(object.clone());
    };
    let mut changed = attributes.spelled(object);
    if changed.is_null() {
        return Err(StatusError::internal(&format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
            webhook.name
        )));
    }
    // A patch that was understood and does not fit rejects the request whatever the failure policy is.
    json_patch::patch(&mut changed, &patch).map_err(|error| StatusError::internal(&error.to_string()))?;
    let mut changed = attributes.unspelled(changed).map_err(|error| StatusError::internal(&error.message))?;
    settle(&mut changed)?;
    Ok(changed)
}

/// Asks the validating webhooks at once; the first refusal in their order counts.
pub(super) async fn validate(
    server: &Server,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> Result<()> {
    if is_exempt(attributes.call.resource) {
        return Ok(());
    }
    let object = object.unwrap_or(&Value::Null);
    let webhooks = webhooks(server, "validatingwebhookconfigurations");
    let matching = webhooks.iter().filter(|webhook| webhook.matches(server, attributes, object));
    let asked = matching.map(|webhook| async move {
        let verdict = consult(server, attributes, webhook, object).await?;
        match verdict {
            Some(verdict) if verdict.patch.is_some() => {
                let fault = WebhookFault("validating webhook returned a patch".to_owned());
                webhook.failed(attributes, &fault)
            }
            _ => Ok(()),
        }
    });
    future::join_all(asked).await.into_iter().collect()
}

/// The webhook's verdict; none when it failed and its policy says to go on.
async fn consult(
    server: &Server,
    attributes: &Attributes<'_>,
    webhook: &Webhook,
    object: &Value,
) -> Result<Option<review::Verdict>> {
    if attributes.dry_run == DryRun::All && !webhook.has_no_side_effects() {
        let text = format!("admission webhook {:?} does not support dry run", webhook.name);
        return Err(StatusError::bad_request(text));
    }
    let verdict = match webhook.call(server, attributes, object).await {
        Ok(verdict) => verdict,
        Err(fault) => {
            webhook.failed(attributes, &fault)?;
            return Ok(None);
        }
    };
    for warning in &verdict.warnings {
        attributes.call.warn(warning.clone());
    }
    match verdict.denial {
        Some(denial) => Err(denial.to_error(&webhook.name)),
        None => Ok(Some(verdict)),
    }
}
