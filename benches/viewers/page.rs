//! A page that is open: it asks for the fleet, follows the stream of changes, and asks after each for what has changed.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context as _, bail};
use futures::{StreamExt as _, future};
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::Value;
use tokio::{sync::Barrier, task::JoinSet};

use super::users::Users;

/// A client of the API with this token, on a connection of its own.
pub(crate) fn client(address: SocketAddr, token: String) -> anyhow::Result<Client> {
    let mut config = kube::Config::new(format!("https://{address}").parse()?);
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(token.into());
    Ok(Client::try_from(config)?)
}

/// One answer as text.
pub(crate) async fn get(client: &Client, path: &str) -> anyhow::Result<String> {
    let request = http::Request::get(format!("/api/v1{path}")).body(Vec::new())?;
    client.request_text(request).await.with_context(|| path.to_owned())
}

/// What all pages have got so far.
#[derive(Debug, Default)]
struct Got {
    answers: AtomicUsize,
    bytes: AtomicUsize,
}

/// Pages that are open.
pub(crate) struct Pages {
    got: Arc<Got>,
    tasks: JoinSet<anyhow::Result<()>>,
}

impl Pages {
    /// Opens so many; each has the fleet and its stream.
    pub(crate) async fn open(address: SocketAddr, users: &Users, pages: usize) -> anyhow::Result<Self> {
        let (got, open) = (Arc::new(Got::default()), Arc::new(Barrier::new(pages + 1)));
        let mut tasks = JoinSet::new();
        for page in 0..pages {
            let (client, got, open) =
                (client(address, users.token(page))?, Arc::clone(&got), Arc::clone(&open));
            tasks.spawn(async move { look(&client, &got, &open).await });
        }
        tokio::select! {
            _ = open.wait() => {}
            Some(ended) = tasks.join_next() => bail!("a page could not be opened: {ended:?}"),
        }
        got.answers.store(0, Ordering::Relaxed);
        got.bytes.store(0, Ordering::Relaxed);
        Ok(Self { got, tasks })
    }

    /// Closes them; what they got meanwhile.
    pub(crate) fn close(mut self) -> anyhow::Result<String> {
        if let Some(ended) = self.tasks.try_join_next() {
            bail!("a page ended: {ended:?}");
        }
        let (answers, bytes) =
            (self.got.answers.load(Ordering::Relaxed), self.got.bytes.load(Ordering::Relaxed));
        Ok(format!("the pages got {answers} answers of {} KiB in all", bytes / 1024))
    }
}

async fn look(client: &Client, got: &Got, open: &Barrier) -> anyhow::Result<()> {
    let mut version = fleet(client, got, "/fleet").await?;
    let request = http::Request::get("/api/v1/changes").body(Body::empty())?;
    let stream = client.send(request).await?.into_body().into_data_stream();
    let mut events = stream.map(|part| Ok(String::from_utf8(part?.to_vec())?));
    open.wait().await;
    while let Some(event) = events.next().await {
        let event: anyhow::Result<String> = event;
        if event?.contains("event: change") {
            version = fleet(client, got, &format!("/fleet?since={version}")).await?;
        }
    }
    // A stream ends after ten minutes; no turn takes as long.
    future::pending().await
}

/// Asks for the fleet; its version.
async fn fleet(client: &Client, got: &Got, path: &str) -> anyhow::Result<String> {
    let text = get(client, path).await?;
    got.answers.fetch_add(1, Ordering::Relaxed);
    got.bytes.fetch_add(text.len(), Ordering::Relaxed);
    let fleet: Value = serde_json::from_str(&text)?;
    fleet["version"].as_str().map(str::to_owned).context("the fleet has a version")
}
