//! What one registered webhook wants to see and how its failures count; order and effect are `admission`'s.

use super::{
    attributes::Attributes,
    object,
    resource::Scope,
    review::{self, Verdict, WebhookFault},
    selector::LabelSelector,
    server::Server,
    status::{Result, StatusError},
    webhook_call::WebhookCall,
};
use axum::body::Bytes;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailurePolicy {
    Fail,
    Ignore,
}

/// One entry of a webhook configuration.
#[derive(Debug)]
pub(super) struct Webhook {
    pub(super) name: String,
    settings: Value,
    namespaces: LabelSelector,
    objects: LabelSelector,
    failure_policy: FailurePolicy,
    timeout: Duration,
}

impl Webhook {
    pub(super) fn read(settings: &Value) -> Self {
        let ignored = object::text(settings, "/failurePolicy") == "Ignore";
        Self {
            name: object::text(settings, "/name").to_owned(),
            namespaces: LabelSelector::from_object(settings.get("namespaceSelector")),
            objects: LabelSelector::from_object(settings.get("objectSelector")),
            failure_policy: if ignored { FailurePolicy::Ignore } else { FailurePolicy::Fail },
            timeout: Duration::from_secs(settings["timeoutSeconds"].as_u64().unwrap_or(10)),
            settings: settings.clone(),
        }
    }

    pub(super) fn is_reinvoked(&self) -> bool {
        object::text(&self.settings, "/reinvocationPolicy") == "IfNeeded"
    }

    pub(super) fn has_no_side_effects(&self) -> bool {
        matches!(object::text(&self.settings, "/sideEffects"), "None" | "NoneOnDryRun")
    }

    /// Whether rules and selectors pick the request.
    pub(super) fn matches(&self, server: &Server, attributes: &Attributes<'_>, object: &Value) -> bool {
        let ruled = object::list(&self.settings, "/rules").iter().any(|rule| rule_matches(rule, attributes));
        if !ruled {
            return false;
        }
        let namespace = attributes.namespace(server, object);
        let labels = |object: &Value| !object.is_null() && self.objects.matches(object);
        namespace.is_none_or(|namespace| self.namespaces.matches(&namespace))
            && (labels(object) || attributes.old.is_some_and(labels))
    }

    /// Sends the review and reads the verdict within the webhook's time.
    pub(super) async fn call(
        &self,
        server: &Server,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> std::result::Result<Verdict, WebhookFault> {
        let uid = server.uid();
        let review = review::request(&uid, attributes, object);
        let call = WebhookCall {
            url: self.url(),
            ca_bundle: self.ca_bundle()?,
            body: Bytes::from(review.to_string()),
        };
        let post = format!("failed to call webhook: Post {:?}", call.url);
        let answer = tokio::time::timeout(self.timeout, server.transport.call(call))
            .await
            .map_err(|_| WebhookFault(format!("{post}: context deadline exceeded")))?
            .map_err(|error| WebhookFault(format!("{post}: {error}")))?;
        if !(200..300).contains(&answer.code) {
            return Err(WebhookFault(format!("{post}: the server answered {}", answer.code)));
        }
        review::response(&uid, &answer.body)
    }

    /// What a failed call means for the request.
    pub(super) fn failed(&self, attributes: &Attributes<'_>, fault: &WebhookFault) -> Result<()> {
        match self.failure_policy {
            FailurePolicy::Fail => {
                Err(StatusError::internal(&format!("failed calling webhook {:?}: {fault}", self.name)))
            }
            FailurePolicy::Ignore => {
                tracing::warn!(webhook = self.name, request = attributes.name, %fault, "failing open");
                Ok(())
            }
        }
    }

    fn url(&self) -> String {
        let seconds = self.timeout.as_secs();
        let client = &self.settings["clientConfig"];
        let base = match client.get("service") {
            None => object::text(client, "/url").to_owned(),
            Some(service) => format!(
                "https://{}.{}.svc:{}/{}",
                object::text(service, "/name"),
                object::text(service, "/namespace"),
                service["port"].as_u64().unwrap_or(443),
                object::text(service, "/path").trim_start_matches('/')
            ),
        };
        let mark = if base.contains('?') { '&' } else { '?' };
        format!("{base}{mark}timeout={seconds}s")
    }

    fn ca_bundle(&self) -> std::result::Result<Vec<u8>, WebhookFault> {
        STANDARD
            .decode(object::text(&self.settings, "/clientConfig/caBundle"))
            .map_err(|error| WebhookFault(format!("caBundle of webhook {:?}: {error}", self.name)))
    }
}

fn rule_matches(rule: &Value, attributes: &Attributes<'_>) -> bool {
    let call = attributes.call;
    let lists = |field: &str, want: &str| {
        object::list(rule, &format!("/{field}")).iter().any(|item| item == "*" || item == want)
    };
    let scope = match object::text(rule, "/scope") {
        "Namespaced" => call.resource.scope == Scope::Namespaced,
        "Cluster" => call.resource.scope == Scope::Cluster,
        _ => true,
    };
    let resources = object::list(rule, "/resources").iter().filter_map(Value::as_str).any(|item| {
        let (name, below) = item.split_once('/').unwrap_or((item, ""));
        (name == "*" || name == call.resource.plural) && (below == "*" || below == call.subresource)
    });
    scope
        && resources
        && lists("apiGroups", call.resource.group)
        && lists("apiVersions", call.resource.version)
        && lists("operations", attributes.operation.as_str())
}
