//! When each pod was first seen bound, by one watch beside all others.

use std::{collections::HashMap, pin::pin, time::Duration};

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

/// How long nothing may be bound before a case is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// The watch; ends when dropped.
pub(crate) struct Binds {
    seen: watch::Receiver<HashMap<String, Instant>>,
    _task: JoinSet<()>,
}

impl Binds {
    pub(crate) fn follow(client: Client) -> Self {
        let (sender, seen) = watch::channel(HashMap::new());
        let mut task = JoinSet::new();
        task.spawn(follow(client, sender));
        Self { seen, _task: task }
    }

    /// When the pods whose names begin so were bound, earliest first, once there are so many.
    pub(crate) async fn of(&mut self, prefix: &str, pods: usize) -> anyhow::Result<Vec<Instant>> {
        loop {
            let mut bound: Vec<Instant> = {
                let seen = self.seen.borrow_and_update();
                seen.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, at)| *at).collect()
            };
            bound.sort();
            if bound.len() >= pods {
                return Ok(bound);
            }
            if tokio::time::timeout(PATIENCE, self.seen.changed()).await.is_err() {
                bail!("{} of {pods} pods {prefix}* were bound, and no more for {PATIENCE:?}", bound.len());
            }
        }
    }
}

async fn follow(client: Client, seen: watch::Sender<HashMap<String, Instant>>) {
    let pods: Api<Watched<Pod>> = Api::all(client);
    let mut events = pin!(watcher(pods, Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let now = Instant::now();
        match event {
            Ok(Event::Apply(pod) | Event::InitApply(pod)) => {
                let (name, node) = (pod.object.metadata.name, pod.object.spec.node_name);
                if node.is_some_and(|node| !node.is_empty()) && !seen.borrow().contains_key(&name) {
                    seen.send_modify(|seen| {
                        seen.insert(name, now);
                    });
                }
            }
            Ok(_) => {}
            Err(error) => eprintln!("the watch of pods failed and starts over: {error}"),
        }
    }
}
