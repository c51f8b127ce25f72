//! Watches and lists of pods in one encoding, as bytes, not decoded.

use anyhow::Context as _;
use futures::AsyncReadExt as _;
use http::{
    Request,
    header::{ACCEPT, ACCEPT_ENCODING},
};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, api::ListParams};

/// How the API server writes objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Encoding {
    /// As Berth asks for them.
    Json,
    /// As clients in Go ask for them.
    Protobuf,
}

impl Encoding {
    fn of_lists(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }

    fn of_watches(self) -> &'static str {
        match self {
            Self::Json => "application/json;stream=watch",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }
}

/// The version of the newest list of pods.
pub(crate) async fn newest(client: &Client) -> anyhow::Result<String> {
    let list = Api::<Pod>::all(client.clone()).list_metadata(&ListParams::default().limit(1)).await;
    list.context("the version of pods")?.metadata.resource_version.context("a list without a version")
}

/// The changes since this version that the API server tells within a second.
pub(crate) async fn watch(client: &Client, encoding: Encoding, version: &str) -> anyhow::Result<Vec<u8>> {
    let path = format!("/api/v1/pods?watch=true&timeoutSeconds=1&resourceVersion={version}");
    answer(client, &path, encoding.of_watches()).await.context("watching pods")
}

/// All pods, not compressed: how well pods that are so alike compress says nothing of others.
pub(crate) async fn list(client: &Client, encoding: Encoding) -> anyhow::Result<Vec<u8>> {
    answer(client, "/api/v1/pods", encoding.of_lists()).await.context("listing pods")
}

async fn answer(client: &Client, path: &str, accepted: &str) -> anyhow::Result<Vec<u8>> {
    let request = Request::get(path).header(ACCEPT, accepted).header(ACCEPT_ENCODING, "identity");
    let mut bytes = Vec::new();
    Box::pin(client.request_stream(request.body(Vec::new())?).await?).read_to_end(&mut bytes).await?;
    Ok(bytes)
}
