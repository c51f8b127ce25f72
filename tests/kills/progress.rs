//! How far the pods are, for a test that acts in the midst of it and waits for the end.
//!
//! It must not judge: it may miss what happened while the API server was away.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::Duration,
};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::{sync::watch, task::JoinSet};

/// After so long without the least progress nothing will come any more.
const PATIENCE: Duration = Duration::from_mins(1);

/// What was seen of pods.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The uids of all that were ever bound.
    pub(crate) bound: BTreeSet<String>,
    /// Those that exist, by uid.
    pods: BTreeMap<String, (String, At)>,
}

/// Where a pod is.
#[derive(Clone, Debug, Eq, PartialEq)]
enum At {
    Waiting,
    Unschedulable,
    Bound,
    Running,
    Ended,
    Terminating,
}

/// A watch of all pods; ends when dropped.
pub(crate) struct Progress {
    seen: watch::Receiver<Seen>,
    _task: JoinSet<()>,
}

impl Progress {
    pub(crate) fn follow(client: Client) -> Self {
        let (sender, seen) = watch::channel(Seen::default());
        let mut task = JoinSet::new();
        task.spawn(follow(client, sender));
        Self { seen, _task: task }
    }

    /// Returns once so many pods have been bound.
    pub(crate) async fn bound(&mut self, pods: usize) {
        self.until(&format!("{pods} bound pods"), |seen| seen.bound.len() >= pods).await;
    }

    /// How many have been bound.
    pub(crate) fn count(&self) -> usize {
        self.seen.borrow().bound.len()
    }

    /// Returns once each pod that exists runs, has ended or has been told why it can't.
    pub(crate) async fn settled(&mut self) {
        let at_rest = |at: &At| matches!(at, At::Unschedulable | At::Running | At::Ended);
        self.until("each pod to be at rest", |seen| seen.pods.values().all(|(_, at)| at_rest(at))).await;
    }

    /// Returns once at least so many run.
    pub(crate) async fn running(&mut self, pods: usize) {
        let runs = |seen: &Seen| seen.pods.values().filter(|(_, at)| *at == At::Running).count() >= pods;
        self.until(&format!("{pods} running pods"), runs).await;
    }

    async fn until(&mut self, what: &str, met: impl Fn(&Seen) -> bool) {
        while !met(&self.seen.borrow_and_update()) {
            let changed = tokio::time::timeout(PATIENCE, self.seen.changed()).await;
            if !matches!(changed, Ok(Ok(()))) {
                let seen = self.seen.borrow();
                let others = seen.pods.values().filter(|(_, at)| !matches!(at, At::Ended | At::Running));
                let others: Vec<_> = others.take(20).collect();
                panic!(
                    "waiting for {what}: {} were bound, nothing changed for {PATIENCE:?}; {others:?}",
                    seen.bound.len()
                );
            }
        }
    }
}

async fn follow(client: Client, sender: watch::Sender<Seen>) {
    let events = watcher(Api::<Pod>::all(client), watcher::Config::default());
    let mut events = pin!(events.default_backoff());
    let mut listing = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => listing = Some(BTreeSet::new()),
            Ok(watcher::Event::InitApply(pod)) => {
                listing.get_or_insert_default().insert(pod.metadata.uid.clone().unwrap_or_default());
                sender.send_modify(|seen| seen.apply(&pod));
            }
            Ok(watcher::Event::InitDone) => {
                let listed = listing.take().unwrap_or_default();
                sender.send_modify(|seen| seen.pods.retain(|uid, _| listed.contains(uid)));
            }
            Ok(watcher::Event::Apply(pod)) => sender.send_modify(|seen| seen.apply(&pod)),
            Ok(watcher::Event::Delete(pod)) => {
                let uid = pod.metadata.uid.unwrap_or_default();
                sender.send_modify(|seen| drop(seen.pods.remove(&uid)));
            }
            // The API server was killed: the watch is opened again.
            Err(_) => {}
        }
    }
}

impl Seen {
    fn apply(&mut self, pod: &Pod) {
        let (uid, name) = (pod.metadata.uid.clone(), pod.metadata.name.clone());
        let (uid, name) = (uid.unwrap_or_default(), name.unwrap_or_default());
        if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) {
            self.bound.insert(uid.clone());
        }
        self.pods.insert(uid, (name, at(pod)));
    }
}

fn at(pod: &Pod) -> At {
    let status = pod.status.clone().unwrap_or_default();
    let unschedulable = |conditions: Vec<_>| {
        conditions.iter().any(|condition: &k8s_openapi::api::core::v1::PodCondition| {
            condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable")
        })
    };
    match status.phase.as_deref() {
        Some("Succeeded" | "Failed") => At::Ended,
        _ if pod.metadata.deletion_timestamp.is_some() => At::Terminating,
        Some("Running") => At::Running,
        _ if pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some()) => At::Bound,
        _ if status.conditions.is_some_and(unschedulable) => At::Unschedulable,
        _ => At::Waiting,
    }
}
