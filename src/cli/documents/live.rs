//! The objects of a live cluster as documents: lists alone.

use std::{convert::identity, time::Duration};

use anyhow::{Context as _, bail};
use kube::{Client, api::ListParams};
use serde_json::Value;

use super::{Document, DocumentPlace};
use crate::cluster::informer::list::{self, ListError, ListForm, Strange};

/// Objects in one page of a list.
const PAGE: u32 = 500;

/// How long one list may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// One list.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct LiveList {
    /// Its path.
    pub(in crate::cli) path: &'static str,
    /// The version of its items.
    pub(in crate::cli) version: &'static str,
    /// Their kind.
    pub(in crate::cli) kind: &'static str,
    /// What it means where it can't be read.
    pub(in crate::cli) need: Need,
}

/// What it means that a list can't be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::cli) enum Need {
    /// There is no answer without it.
    Needed,
    /// There is no answer without it, but an API server that does not serve it has none of its kind.
    IfServed,
    /// The answer is made without it, which is said.
    Optional,
}

/// The objects of these lists, of each what `keep` leaves of it as soon as it is read; and what was left out.
pub(in crate::cli) async fn documents(
    client: &Client,
    lists: &[LiveList],
    keep: fn(Document) -> Document,
) -> anyhow::Result<(Vec<Document>, Vec<String>)> {
    let (mut documents, mut left_out) = (Vec::new(), Vec::new());
    for LiveList { path, version, kind, need } in lists {
        let page = ListParams::default().limit(PAGE);
        match listed(client, path, (version, kind), page, keep, &mut documents).await? {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.code == 404 && *need != Need::Needed => {}
            Err(error @ kube::Error::Api(_)) if *need == Need::Optional => {
                left_out.push(format!("can't list {path}, which is left out: {}", ListError::Request(error)));
            }
            Err(error) => {
                return Err(ListError::Request(error)).with_context(|| format!("can't list {path}"));
            }
        }
    }
    Ok((documents, left_out))
}

/// Those objects of one list of which these fields have these values.
pub(in crate::cli) async fn selected(
    client: &Client,
    path: &str,
    stated: (&'static str, &'static str),
    fields: &str,
) -> anyhow::Result<Vec<Document>> {
    let (mut documents, page) = (Vec::new(), ListParams::default().limit(PAGE).fields(fields));
    let listed = listed(client, path, stated, page, identity, &mut documents).await?;
    listed.map_err(ListError::Request).with_context(|| format!("can't list {path}"))?;
    Ok(documents)
}

/// Adds the objects of one list, of this version and kind; the error inside is the API server's, or that it can't be reached.
async fn listed(
    client: &Client,
    path: &str,
    (version, kind): (&'static str, &'static str),
    page: ListParams,
    keep: fn(Document) -> Document,
    documents: &mut Vec<Document>,
) -> anyhow::Result<Result<(), kube::Error>> {
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
        documents.push(keep(Document { value, place }));
    };
    match tokio::time::timeout(PATIENCE, list::list(client, path, ListForm::Whole, page, take)).await {
        // An answer without one of them could give its devices away twice.
        Ok(Ok(_)) if strange.is_some() => bail!("can't list {path}: {}", strange.unwrap_or_default()),
        Ok(Ok(_)) => Ok(Ok(())),
        Ok(Err(ListError::Request(error))) => Ok(Err(error)),
        Ok(Err(error)) => Err(error).with_context(|| format!("can't list {path}")),
        Err(_) => bail!("can't list {path}: no answer within {} s", PATIENCE.as_secs()),
    }
}
