//! Reads a live cluster for a plan: lists alone.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::{Client, api::ListParams};
use serde_json::Value;

use crate::{
    cli::documents::{Document, DocumentPlace},
    cluster::list::{self, ListError, ListForm, Strange},
};

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// How long one list may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is listed: path, version and kind of the items.
const LISTS: [(&str, &str, &str); 5] = [
    ("/api/v1/nodes", "v1", "Node"),
    ("/api/v1/pods", "v1", "Pod"),
    ("/apis/resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1", "ResourceSlice"),
    ("/apis/resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1", "DeviceClass"),
    ("/apis/resource.k8s.io/v1/resourceclaims", "resource.k8s.io/v1", "ResourceClaim"),
];

/// The objects of the cluster that a plan reads. An API server without Dynamic Resource Allocation has none of its kinds.
pub(super) async fn documents(client: &Client) -> anyhow::Result<Vec<Document>> {
    let mut documents = Vec::new();
    for (path, version, kind) in LISTS {
        let mut strange = None;
        let take = |object: Result<Value, Strange<'_>>| {
            let object = match object {
                Ok(object) => object,
                Err(error) => {
                    strange.get_or_insert(error.to_string());
                    return;
                }
            };
            let value = list::stated(object, version, kind);
            let place =
                DocumentPlace { file: "the cluster".to_owned(), document: documents.len() + 1, item: None };
            documents.push(Document { value, place });
        };
        let page = ListParams::default().limit(PAGE);
        match tokio::time::timeout(PATIENCE, list::list(client, path, ListForm::Whole, page, take)).await {
            // A plan without one of them could give its devices away twice.
            Ok(Ok(_)) if strange.is_some() => bail!("can't list {path}: {}", strange.unwrap_or_default()),
            Ok(Ok(_)) => {}
            Ok(Err(ListError::Request(kube::Error::Api(status))))
                if status.code == 404 && path.starts_with("/apis/resource.k8s.io/") => {}
            Ok(Err(error)) => return Err(error).with_context(|| format!("can't list {path}")),
            Err(_) => bail!("can't list {path}: no answer within {} s", PATIENCE.as_secs()),
        }
    }
    Ok(documents)
}
