//! With what a term begins: what its replica watched while another led, once that is as new as the cluster, or nothing.
//!
//! It must not decide who leads. Where the watches stay behind, nothing of them is used, and the term lists everything.

use std::{collections::BTreeSet, fmt, pin::Pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt, future::try_join};
use kube::{Client, Resource, api::ListParams, core::Request};
use serde::Deserialize;
use tokio::{
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use super::{binder::Binder, watch, wire::Watched};
use crate::{
    object::{Node, Pod},
    scheduling::{Event, Scheduler},
};

/// What the API server shows is seen by a watch within this time, or the watch is taken to be stuck.
const LAG: Duration = Duration::from_secs(1);
/// A list of names that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is watched, as events that come together.
pub type Events = Pin<Box<dyn Stream<Item = Vec<Event>> + Send>>;

/// Everything that the scheduler is to see, from a list on.
pub fn watches(binder: &Binder) -> Events {
    watch::all(&binder.client, &binder.reader).ready_chunks(256).boxed()
}

/// The watches of a replica that looks on, and what they have told so far.
pub struct Watching {
    /// What comes next.
    pub events: Events,
    /// What has been seen.
    pub scheduler: Scheduler,
}

/// With what a term begins.
pub struct Beginning {
    /// What is watched from now on.
    pub events: Events,
    /// What was seen before.
    pub scheduler: Scheduler,
}

impl Beginning {
    /// With nothing: the watches begin with lists, and nothing is decided before these are there.
    ///
    /// The lists are the newest there are (no `resourceVersion`, so never from a cache of the API server that lags behind), so that
    /// what the last holder of the lead bound is among them.
    pub fn afresh(binder: &Binder) -> Self {
        Self { events: watches(binder), scheduler: Scheduler::new(binder.settings.clone()) }
    }
}

/// Why what was watched is not used.
#[derive(Debug, thiserror::Error)]
enum Behind {
    #[error("not everything was listed yet")]
    Unlisted,
    #[error("pods and nodes could not be listed by name: {0}")]
    List(#[from] kube::Error),
    #[error("listing pods and nodes by name panicked")]
    Panicked(#[from] JoinError),
    #[error("the list of pods and nodes by name took longer than {PATIENCE:?}")]
    Slow,
    #[error("{0} have changed and were not seen to within {LAG:?}")]
    Unseen(Versions),
    #[error("a watch has ended")]
    Ended,
}

/// Begins with what was watched, if that can be shown to be as new as the cluster is now; else afresh.
///
/// Called once the lead is won: whatever the last holder wrote is then in the cluster, since its writes are fenced.
pub async fn begin(binder: &Binder, watching: Option<Watching>) -> Beginning {
    let began = Instant::now();
    let Some(watching) = watching else { return Beginning::afresh(binder) };
    match watching.catch_up(binder).await {
        Ok(beginning) => {
            tracing::info!(took = ?began.elapsed(), "what was watched while another led is up to date");
            beginning
        }
        Err(behind) => {
            tracing::info!(%behind, "what was watched while another led is not used, everything is listed");
            Beginning::afresh(binder)
        }
    }
}

impl Watching {
    /// Watches on until every pod and every node that the API server has now was seen as it is now, or later. Meanwhile a scheduler that has
    /// thought nothing yet is told what this one has seen.
    async fn catch_up(mut self, binder: &Binder) -> Result<Beginning, Behind> {
        if !self.scheduler.is_synced() {
            return Err(Behind::Unlisted);
        }
        // By itself, so that the answer is read while the scheduler is at work.
        let mut listing = JoinSet::new();
        listing.spawn(Versions::list(binder.client.clone()));
        let mut gone = BTreeSet::new();
        let mut begins = Scheduler::new(binder.settings.clone());
        let take_in = |begins: &mut Scheduler, events: Vec<Event>| {
            for event in events {
                binder.metrics.registrations(&event);
                begins.observe(event, binder.clock.now());
            }
        };
        take_in(&mut begins, self.scheduler.recount());
        let mut unseen: Option<Versions> = None;
        let mut until = Instant::now() + PATIENCE;
        loop {
            if let Some(unseen) = &mut unseen {
                unseen.strike(&begins, &gone);
                if unseen.is_empty() {
                    return Ok(Beginning { events: self.events, scheduler: begins });
                }
            }
            tokio::select! {
                biased;
                events = self.events.next() => {
                    let events = events.ok_or(Behind::Ended)?;
                    gone.extend(events.iter().filter_map(leaver));
                    take_in(&mut begins, events);
                }
                Some(versions) = listing.join_next() => {
                    unseen = Some(versions??);
                    until = Instant::now() + LAG;
                }
                () = sleep_until(until) => return Err(unseen.map_or(Behind::Slow, Behind::Unseen)),
            }
        }
    }
}

/// Who is gone: pods by uid, nodes by name.
fn leaver(event: &Event) -> Option<Arc<str>> {
    match event {
        Event::PodGone(uid) | Event::PodEnded(uid) => Some(uid.clone()),
        Event::NodeGone(name) => Some(name.clone()),
        _ => None,
    }
}

/// Pods and nodes as the API server has them.
#[derive(Debug)]
struct Versions {
    pods: Vec<Version>,
    nodes: Vec<Version>,
}

impl Versions {
    /// The newest there are: without a `resourceVersion` no list comes from a cache that lags behind.
    async fn list(client: Client) -> Result<Self, kube::Error> {
        let pods = versions::<Watched<Pod>>(&client, ListParams::default().fields(watch::PODS));
        let nodes = versions::<Watched<Node>>(&client, ListParams::default());
        let (pods, nodes) = try_join(pods, nodes).await?;
        Ok(Self { pods, nodes })
    }

    /// Strikes out what was seen.
    fn strike(&mut self, scheduler: &Scheduler, gone: &BTreeSet<Arc<str>>) {
        self.pods.retain(|Version { uid, number, .. }| {
            !gone.contains(&**uid) && !scheduler.has_seen_pod(uid, number)
        });
        self.nodes.retain(|Version { name, number, .. }| {
            !gone.contains(&**name) && !scheduler.has_seen_node(name, number)
        });
    }

    fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.nodes.is_empty()
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} pod(s) and {} node(s)", self.pods.len(), self.nodes.len())
    }
}

/// One object by name and version; all else of its metadata is not kept.
#[derive(Debug, Deserialize)]
struct Named {
    metadata: Version,
}

#[derive(Debug, Deserialize)]
struct Version {
    uid: String,
    name: String,
    #[serde(rename = "resourceVersion")]
    number: String,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Named>,
}

/// Names and versions of all objects of a kind: `PartialObjectMetadataList`, without specs and statuses.
async fn versions<K: Resource<DynamicType = ()>>(
    client: &Client,
    parameters: ListParams,
) -> Result<Vec<Version>, kube::Error> {
    let request = Request::new(K::url_path(&(), None)).list_metadata(&parameters);
    let request = request.map_err(kube::Error::BuildRequest)?;
    let List { items } = client.request(request).await?;
    Ok(items.into_iter().map(|named| named.metadata).collect())
}
