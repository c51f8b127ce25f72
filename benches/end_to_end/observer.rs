//! When each pod was seen bound, by one watch beside all others.

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::bail;
use berth::{cluster::informer::wire::Watched, object::Pod};
use futures::StreamExt as _;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt as _,
        watcher::{Config, Event, watcher},
    },
};
use tokio::{sync::watch, task::JoinSet, time::Instant};

/// How long nothing may happen before a round is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// What was seen of pods.
#[derive(Default)]
struct Seen {
    alive: HashSet<String>,
    bound: HashMap<String, Instant>,
}

/// The watch; ends when dropped.
pub(crate) struct Observer {
    seen: Arc<Mutex<Seen>>,
    changes: watch::Receiver<u64>,
    _task: JoinSet<()>,
}

impl Observer {
    /// Begins to watch.
    pub(crate) fn start(client: Client) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (sender, changes) = watch::channel(0);
        let mut task = JoinSet::new();
        task.spawn(follow(client, seen.clone(), sender));
        Self { seen, changes, _task: task }
    }

    /// When each pod was seen bound, once all these are; forgets them.
    pub(crate) async fn bound(&mut self, pods: usize) -> anyhow::Result<HashMap<String, Instant>> {
        self.until(|seen| seen.bound.len() >= pods, "bound pods").await?;
        Ok(std::mem::take(&mut held(&self.seen).bound))
    }

    /// Returns once no pod is left.
    pub(crate) async fn empty(&mut self) -> anyhow::Result<()> {
        self.until(|seen| seen.alive.is_empty(), "the end of all pods").await?;
        held(&self.seen).bound.clear();
        Ok(())
    }

    async fn until(&mut self, met: impl Fn(&Seen) -> bool, what: &str) -> anyhow::Result<()> {
        while !met(&held(&self.seen)) {
            if tokio::time::timeout(PATIENCE, self.changes.changed()).await.is_err() {
                let seen = held(&self.seen);
                let (bound, alive) = (seen.bound.len(), seen.alive.len());
                bail!(
                    "waiting for {what}: no pod changed in {PATIENCE:?}; {alive} exist, {bound} were bound"
                );
            }
        }
        Ok(())
    }
}

async fn follow(client: Client, seen: Arc<Mutex<Seen>>, changed: watch::Sender<u64>) {
    let pods: Api<Watched<Pod>> = Api::all(client);
    let mut events = pin!(watcher(pods, Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let now = Instant::now();
        match event {
            Ok(Event::Apply(pod) | Event::InitApply(pod)) => held(&seen).apply(&pod.object, now),
            Ok(Event::Delete(pod)) => drop(held(&seen).alive.remove(&pod.object.metadata.name)),
            Ok(Event::Init | Event::InitDone) => {}
            Err(error) => eprintln!("the observer's watch failed and starts over: {error}"),
        }
        changed.send_modify(|count| *count += 1);
    }
}

impl Seen {
    fn apply(&mut self, pod: &Pod, now: Instant) {
        let name = &pod.metadata.name;
        self.alive.insert(name.clone());
        if pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty()) {
            self.bound.entry(name.clone()).or_insert(now);
        }
    }
}

fn held(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
