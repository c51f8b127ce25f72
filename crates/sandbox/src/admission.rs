//! Which webhooks see a request, in which order, and what their answers do to it; the call itself is `webhook_call`'s.
//!
//! Match conditions (CEL) are not evaluated: a webhook that has some is called more often than by a real server.
//! Admission policies are stored and never evaluated. `matchPolicy: Equivalent` reads as `Exact`.

use super::{
    object,
    request::{Call, DryRun},
    resource::{self, Resource, Scope},
    review,
    server::Server,
    status::{Result, StatusError},
    webhook::{Webhook, WebhookFault},
    wire,
};
use futures::future;
use serde_json::Value;

/// What is done to the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
        }
    }
}

/// What selectors and reviews read about a request, beside the object that may still change.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    pub(super) call: &'a Call,
    pub(super) operation: Operation,
    pub(super) name: String,
    pub(super) old: Option<&'a Value>,
    pub(super) dry_run: DryRun,
}

impl<'a> Attributes<'a> {
    /// `named` is the object that the request is about, for its name.
    pub(super) fn new(
        call: &'a Call,
        operation: Operation,
        named: &Value,
        old: Option<&'a Value>,
        dry_run: DryRun,
    ) -> Self {
        Self { call, operation, name: object::name(named).to_owned(), old, dry_run }
    }

    /// Group, version and kind of the object in the review.
    pub(super) fn kind(&self) -> (&'static str, &'static str, &'static str) {
        match self.call.subresource.as_str() {
            "binding" => ("", "v1", "Binding"),
            _ => (self.call.resource.group, self.call.resource.version, self.call.resource.kind),
        }
    }

    /// The labels that a namespace selector is held against: those of the namespace, or none for cluster scope.
    pub(super) fn namespace(&self, server: &Server, object: &Value) -> Option<Value> {
        if self.call.resource.plural == "namespaces" {
            return Some(if object.is_null() {
                self.old.cloned().unwrap_or_default()
            } else {
                object.clone()
            });
        }
        let namespaces = resource::known("", "namespaces");
        let key = (String::new(), self.call.namespace.clone());
        let found =
            (self.call.resource.scope == Scope::Namespaced).then(|| server.store().get(namespaces, &key));
        found.flatten().map(|namespace| (*namespace).clone())
    }

    /// The object as the client's group spells it.
    pub(super) fn spelled(&self, stored: &Value) -> Value {
        if stored.is_null() || self.call.subresource == "binding" {
            return stored.clone();
        }
        wire::encode(self.call.resource, stored)
    }

    fn unspelled(&self, object: Value) -> Result<Value> {
        if self.call.subresource == "binding" {
            return Ok(object);
        }
        wire::decode(self.call.resource, object)
    }
}

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
