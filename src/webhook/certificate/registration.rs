//! Publishes the webhook's authority: the `caBundle` of Berth's webhook configurations.
//!
//! It changes no other field, creates no object, and never ends the process.

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{
    ByteString,
    api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::{info, warn};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// The names of Berth's two webhook configurations.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WebhookConfigurations {
    /// The MutatingWebhookConfiguration.
    pub mutating: String,
    /// The ValidatingWebhookConfiguration.
    pub validating: String,
}

/// Why an authority was not published.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The configuration can't be read: it may not be there yet.
    #[error("cannot read {kind} {name}")]
    Read {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// The error of the API server or of the connection.
        source: Box<kube::Error>,
    },
    /// The configuration can't be changed.
    #[error("cannot set the caBundle of {kind} {name}")]
    Write {
        /// The kind.
        kind: &'static str,
        /// The name.
        name: String,
        /// The error of the API server or of the connection.
        source: Box<kube::Error>,
    },
}

/// One webhook of a configuration: its name and its authority.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trust {
    /// The webhook's name, the merge key of a strategic merge patch.
    pub webhook: String,
    /// Its `caBundle`, PEM.
    pub bundle: Option<Vec<u8>>,
}

/// The strategic merge patch that sets `authority` (PEM, one or several certificates) in every webhook; `None` if all have it.
///
/// The bundle is replaced as a whole: `authority` contains the earlier authorities that are still needed (`mint::renewed` keeps
/// them), and certificates of unknown origin are no longer trusted.
pub fn patch(webhooks: &[Trust], authority: &str) -> Option<Value> {
    let outdated: Vec<Value> = webhooks
        .iter()
        .filter(|trust| trust.bundle.as_deref() != Some(authority.as_bytes()))
        .map(|trust| {
            let bundle = ByteString(authority.as_bytes().to_vec());
            json!({"name": trust.webhook, "clientConfig": {"caBundle": bundle}})
        })
        .collect();
    (!outdated.is_empty()).then(|| json!({ "webhooks": outdated }))
}

/// Publishes `authority` in both configurations, and repeats it with growing pauses until both have it.
pub async fn publish(client: &Client, registration: &WebhookConfigurations, authority: &str) {
    let mut pause = FIRST_PAUSE;
    while let Err(error) = publish_once(client, registration, authority).await {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        warn!(%error, source, again_in = ?pause, "publishing the webhook's authority failed, trying again");
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Publishes `authority` in both configurations.
/// Writes the second even if the first fails, and returns the first failure.
pub async fn publish_once(
    client: &Client,
    registration: &WebhookConfigurations,
    authority: &str,
) -> Result<(), RegistrationError> {
    let mutating =
        publish_in::<MutatingWebhookConfiguration>(client, &registration.mutating, authority).await;
    let validating =
        publish_in::<ValidatingWebhookConfiguration>(client, &registration.validating, authority).await;
    mutating.and(validating)
}

async fn publish_in<K: Configuration>(
    client: &Client,
    name: &str,
    authority: &str,
) -> Result<(), RegistrationError> {
    let api: Api<K> = Api::all(client.clone());
    let read =
        |source| RegistrationError::Read { kind: K::NAME, name: name.to_owned(), source: Box::new(source) };
    let configuration = api.get(name).await.map_err(read)?;
    let Some(patch) = patch(&configuration.trust(), authority) else {
        return Ok(());
    };
    let write =
        |source| RegistrationError::Write { kind: K::NAME, name: name.to_owned(), source: Box::new(source) };
    api.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await.map_err(write)?;
    info!(kind = K::NAME, name, "the webhook's authority was published");
    Ok(())
}

/// A webhook configuration of either kind.
trait Configuration: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned {
    const NAME: &'static str;

    fn trust(self) -> Vec<Trust>;
}

impl Configuration for MutatingWebhookConfiguration {
    const NAME: &'static str = "MutatingWebhookConfiguration";

    fn trust(self) -> Vec<Trust> {
        let webhooks = self.webhooks.unwrap_or_default().into_iter();
        webhooks.map(|webhook| trust(webhook.name, webhook.client_config.ca_bundle)).collect()
    }
}

impl Configuration for ValidatingWebhookConfiguration {
    const NAME: &'static str = "ValidatingWebhookConfiguration";

    fn trust(self) -> Vec<Trust> {
        let webhooks = self.webhooks.unwrap_or_default().into_iter();
        webhooks.map(|webhook| trust(webhook.name, webhook.client_config.ca_bundle)).collect()
    }
}

fn trust(webhook: String, bundle: Option<ByteString>) -> Trust {
    Trust { webhook, bundle: bundle.map(|ByteString(pem)| pem) }
}

#[cfg(test)]
mod tests;
