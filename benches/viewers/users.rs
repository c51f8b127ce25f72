//! Those who look: ServiceAccounts that may list the pods of one namespace or of all.

use anyhow::Context as _;
use k8s_openapi::api::{
    authentication::v1::TokenRequest, core::v1::ServiceAccount, rbac::v1::ClusterRoleBinding,
};
use kube::{Api, Client, api::PostParams};
use serde_json::json;

/// The most streams of one user that a process answers.
const STREAMS_OF_USER: usize = 16;

/// The tokens of all of them.
pub(crate) struct Users {
    tokens: Vec<String>,
}

impl Users {
    /// Makes as many as so many pages need.
    pub(crate) async fn make(client: &Client, pages: usize) -> anyhow::Result<Self> {
        let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
        let mut tokens = Vec::new();
        for number in 0..=pages / STREAMS_OF_USER {
            let name = format!("viewer-{number}");
            // The part of `view` that the API server has by itself; a controller, which is not here, makes `view` of it.
            let role = "system:aggregate-to-view";
            let account = serde_json::from_value(json!({"metadata": {"name": name}}))?;
            accounts.create(&PostParams::default(), &account).await.context("an account")?;
            let binding = json!({
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}],
            });
            let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
            bindings.create(&PostParams::default(), &serde_json::from_value(binding)?).await?;
            let asked: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}}))?;
            let given = accounts.create_token_request(&name, &PostParams::default(), &asked).await;
            tokens.push(given.context("a token")?.status.and_then(|status| status.token).context("a token")?);
        }
        Ok(Self { tokens })
    }

    /// The token of the page of this number.
    pub(crate) fn token(&self, page: usize) -> String {
        self.tokens[page / STREAMS_OF_USER % self.tokens.len()].clone()
    }
}
