//! The webhook configurations that `berth manifests` prints, applied for a webhook of this process.

use std::net::SocketAddr;

use k8s_openapi::{
    ClusterResourceScope,
    api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
};
use kube::{Api, Client, Resource, api::PostParams};
use serde::{Serialize, de::DeserializeOwned};

use crate::cli::manifests::{self, ManifestsArgs};

/// Has the API server ask the webhook at this address.
pub async fn register(client: &Client, webhook: SocketAddr) -> anyhow::Result<()> {
    let args = ManifestsArgs { webhook_url: Some(format!("https://{webhook}")), ..ManifestsArgs::default() };
    for object in manifests::objects(&args, &manifests::InstallationSettings::default())? {
        match object["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => {
                create::<MutatingWebhookConfiguration>(client, object).await?;
            }
            Some("ValidatingWebhookConfiguration") => {
                create::<ValidatingWebhookConfiguration>(client, object).await?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Creates an object that is in no namespace.
pub(super) async fn create<K>(client: &Client, object: serde_json::Value) -> anyhow::Result<K>
where
    K: Resource<DynamicType = (), Scope = ClusterResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let api: Api<K> = Api::all(client.clone());
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}
