//! When the Lease changed hands, as a watch shows it.

use std::{pin::pin, time::Duration};

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::{sync::watch, task::JoinSet, time::Instant};

use crate::support::installed::NAMESPACE;

const PATIENCE: Duration = Duration::from_mins(1);

/// Who holds it (nobody: empty), and since when.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) holder: String,
    pub(crate) since: Instant,
    /// When the holder last gave a sign of life.
    pub(crate) renewed: Instant,
}

/// A watch of the Lease; ends when dropped.
pub(crate) struct Lead {
    held: watch::Receiver<Vec<Held>>,
    _task: JoinSet<()>,
}

impl Lead {
    pub(crate) fn follow(client: Client) -> Self {
        let (sender, held) = watch::channel(Vec::new());
        let mut task = JoinSet::new();
        task.spawn(follow(client, sender));
        Self { held, _task: task }
    }

    /// The newest holder that meets the condition, once there is one.
    pub(crate) async fn when(&mut self, met: impl Fn(&Held) -> bool) -> anyhow::Result<Held> {
        let found = self.held.wait_for(|all| all.iter().any(&met));
        let found = tokio::time::timeout(PATIENCE, found).await.context("the Lease")?.context("its watch")?;
        found.iter().rev().find(|held| met(held)).cloned().context("found a moment ago")
    }
}

async fn follow(client: Client, sender: watch::Sender<Vec<Held>>) {
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    let mut events = pin!(watcher(leases, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let Ok(watcher::Event::Apply(lease) | watcher::Event::InitApply(lease)) = event else { continue };
        let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        let now = Instant::now();
        sender.send_modify(|all| match all.last_mut() {
            Some(last) if last.holder == holder => last.renewed = now,
            _ => all.push(Held { holder, since: now, renewed: now }),
        });
    }
}
