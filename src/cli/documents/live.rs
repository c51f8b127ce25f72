//! The objects of a live cluster as documents: lists alone.

use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::{Client, api::ListParams};
use serde_json::Value;

use super::{Document, DocumentPlace};
use crate::cluster::list::{self, ListError, ListForm, Strange};

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
        let page = ListParams::default().limit(PAGE);
        match tokio::time::timeout(PATIENCE, list::list(client, path, ListForm::Whole, page, take)).await {
            // An answer without one of them could give its devices away twice.
            Ok(Ok(_)) if strange.is_some() => bail!("can't list {path}: {}", strange.unwrap_or_default()),
            Ok(Ok(_)) => {}
            Ok(Err(ListError::Request(kube::Error::Api(status))))
                if status.code == 404 && *need != Need::Needed => {}
            Ok(Err(error @ ListError::Request(kube::Error::Api(_)))) if *need == Need::Optional => {
                left_out.push(format!("can't list {path}, which is left out: {error}"));
            }
            Ok(Err(error)) => return Err(error).with_context(|| format!("can't list {path}")),
            Err(_) => bail!("can't list {path}: no answer within {} s", PATIENCE.as_secs()),
        }
    }
    Ok((documents, left_out))
}
