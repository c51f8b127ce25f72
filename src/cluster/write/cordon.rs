//! Excluding cards of a node from new pods, and admitting them again, by compare-and-swap on the node's version.

use std::collections::BTreeSet;

use http::{Request, header::CONTENT_TYPE};
use kube::Client;
use serde_json::json;

use super::send::{CLIENT_TIMEOUT, SERVER_TIMEOUT, SendError, send};
use crate::{cluster::informer::wire::Watched, device::CardId, dialect::hami::cordon, object::Node};

/// So often a write is tried that others come before.
const TRIES: usize = 8;

/// Excludes these cards from new pods. Returns the node as it is then, and the cards that were not excluded before.
pub async fn cordon(
    client: &Client,
    node: &str,
    cards: &BTreeSet<CardId>,
) -> Result<(Node, BTreeSet<CardId>), SendError> {
    let mut new = BTreeSet::new();
    let node = change(client, node, |cordoned| {
        new = cards.iter().filter(|card| !cordoned.contains(card.as_str())).cloned().collect();
        cordoned.extend(cards.iter().map(ToString::to_string));
    });
    Ok((node.await?, new))
}

/// Admits these cards to new pods again. A node that is gone has none.
pub async fn uncordon(client: &Client, node: &str, cards: &BTreeSet<CardId>) -> Result<(), SendError> {
    let changed = change(client, node, |cordoned| cordoned.retain(|id| !cards.contains(id.as_str()))).await;
    match changed {
        Err(error) if error.code() == Some(404) => Ok(()),
        changed => changed.map(drop),
    }
}

async fn change(
    client: &Client,
    node: &str,
    mut change: impl FnMut(&mut BTreeSet<String>),
) -> Result<Node, SendError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let Watched { object, .. } =
            send::<Watched<Node>>(client.clone(), read(node), CLIENT_TIMEOUT).await?;
        let before = cordon::cordoned(&object);
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(object);
        }
        let request = write(node, &object.metadata.resource_version, &after);
        match send::<Watched<Node>>(client.clone(), request, CLIENT_TIMEOUT).await {
            Err(error) if error.code() == Some(409) && tries < TRIES => {}
            written => return written.map(|written| written.object),
        }
    }
}

fn read(node: &str) -> Request<Vec<u8>> {
    Request::get(format!("/api/v1/nodes/{node}"))
        .body(Vec::new())
        .expect("names of Kubernetes objects are valid in a path")
}

fn write(node: &str, resource_version: &str, cards: &BTreeSet<String>) -> Request<Vec<u8>> {
    let (key, value) = cordon::annotation(cards);
    let metadata = json!({"resourceVersion": resource_version, "annotations": {key: value}});
    let timeout = SERVER_TIMEOUT.as_secs();
    Request::patch(format!("/api/v1/nodes/{node}?timeout={timeout}s"))
        .header(CONTENT_TYPE, "application/merge-patch+json")
        .body(json!({"metadata": metadata}).to_string().into_bytes())
        .expect("names of Kubernetes objects are valid in a path")
}
