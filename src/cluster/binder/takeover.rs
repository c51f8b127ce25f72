//! The beginning of a term: with the watches of the follower, if they are up to date, or with a list.
//!
//! It does not decide which replica leads. If the watches lag behind, the term does not use them and lists everything.

use std::{pin::Pin, time::Duration};

use futures::{FutureExt, Stream, StreamExt, stream};
use tokio::{
    task::JoinError,
    time::{Instant, sleep_until},
};

use super::Binder;
use crate::{
    cluster::{
        clock::until,
        informer::{list::ListError, other_schedulers, watch},
    },
    scheduling::{Event, ObjectChange, Scheduler, world::ledger::EndedCharges},
};
use awaited::AwaitedObjects;
use inquiry::Inquiry;

pub mod awaited;
pub mod inquiry;

/// A watch that has not delivered a known change within this time counts as stuck.
const LAG: Duration = Duration::from_secs(1);
/// If the watch of pods delivers nothing for this time, their names are listed. While pods change, the watch itself shows how new it is.
const QUIET: Duration = Duration::from_millis(50);
/// The longest time for a list of names.
const PATIENCE: Duration = Duration::from_secs(10);

/// The watches, as a stream of events that belong together.
pub type Events = Pin<Box<dyn Stream<Item = Vec<Event>> + Send>>;

/// All watches of the scheduler, beginning with lists.
///
/// Where locks can be left out, it is found out before the lists whether another scheduler runs: what one has written that has ended by
/// then is in the lists.
pub fn watches(binder: &Binder) -> Events {
    let Binder { client, reader, clock, settings, metrics, .. } = binder;
    let all = watch::all(client, reader, settings.claims, &metrics.unread_objects);
    if !reader.dialects().leave_out_locks() {
        return all.ready_chunks(256).boxed();
    }
    let reports = other_schedulers::reports(client, *clock, settings.lock_expiry);
    let reports = reports.map(|others| Event::Object(ObjectChange::OtherSchedulers(others))).boxed();
    let first =
        reports.into_future().map(|(first, reports)| stream::iter(first).chain(stream::select(reports, all)));
    first.flatten_stream().ready_chunks(256).boxed()
}

/// The watches of a follower, and what they have delivered so far.
pub struct Watching {
    /// The stream of events.
    pub events: Events,
    /// The scheduler that has seen the events so far.
    pub scheduler: Scheduler,
}

/// The watches and the scheduler that a term begins with.
pub struct Beginning {
    /// The events from now on.
    pub events: Events,
    /// The scheduler of the term, which has observed what the follower's watches delivered, or nothing.
    pub scheduler: Scheduler,
    /// What pods held that the follower has seen to end.
    pub ended: EndedCharges,
}

impl Beginning {
    /// Begins with lists; nothing is decided before they have arrived.
    ///
    /// The lists are the newest ones: without a `resourceVersion`, they never come from a cache of the API server that lags behind.
    /// They therefore contain everything that the last leader has bound.
    pub fn afresh(binder: &Binder) -> Self {
        Self {
            events: watches(binder),
            scheduler: binder.handoff.scheduler(binder.settings.clone()),
            ended: EndedCharges::default(),
        }
    }
}

/// Why the watches of the follower are not used.
#[derive(Debug, thiserror::Error)]
enum Behind {
    #[error("not everything was listed yet")]
    Unlisted,
    #[error("pods, nodes and claims could not be listed by name: {0}")]
    List(#[from] ListError),
    #[error("a task that lists pods, nodes or claims panicked")]
    Panicked(#[from] JoinError),
    #[error("the list of pods, nodes and claims by name took longer than {PATIENCE:?}")]
    Slow,
    #[error(
        "the watches did not deliver {pods} changed pod(s), {nodes} changed node(s) and {claims} changed claim(s) within {LAG:?}"
    )]
    Unseen { pods: usize, nodes: usize, claims: usize },
    #[error("a watch has ended")]
    Ended,
}

/// Begins with the watches of the follower, if they are provably up to date; otherwise with lists.
///
/// It is called after this replica became the leader: all writes of the last leader are then in the cluster, since they are fenced.
pub async fn begin(binder: &Binder, watching: Option<Watching>) -> Beginning {
    let began = Instant::now();
    let Some(mut watching) = watching else { return Beginning::afresh(binder) };
    let ended = watching.scheduler.take_measured().ended;
    match watching.catch_up(binder).await {
        Ok(beginning) => {
            tracing::info!(took = ?began.elapsed(), "what this replica watched as a follower is up to date");
            Beginning { ended, ..beginning }
        }
        Err(behind) => {
            tracing::info!(%behind, "what this replica watched as a follower is out of date; listing everything");
            Beginning { ended, ..Beginning::afresh(binder) }
        }
    }
}

impl Watching {
    /// Watches on until everything that the API server has now was seen as it is now, or later. Meanwhile a scheduler that has thought
    /// nothing yet is told what this one has seen.
    async fn catch_up(mut self, binder: &Binder) -> Result<Beginning, Behind> {
        if !self.scheduler.view().is_synced() {
            return Err(Behind::Unlisted);
        }
        let mut inquiry = Inquiry::begin(&binder.client, binder.settings.claims);
        let mut quiet = Some(Instant::now() + QUIET);
        let mut over = Instant::now() + PATIENCE;
        let mut begins = binder.handoff.scheduler(binder.settings.clone());
        let take_in = |begins: &mut Scheduler, events: Vec<Event>| {
            for event in events {
                binder.metrics.registrations(&event);
                begins.observe(event, binder.clock.now());
            }
        };
        take_in(&mut begins, self.scheduler.view().recount());
        let mut awaited = AwaitedObjects::default();
        loop {
            if awaited.is_seen(&begins) {
                let ended = EndedCharges::default();
                return Ok(Beginning { events: self.events, scheduler: begins, ended });
            }
            tokio::select! {
                biased;
                events = self.events.next() => {
                    let events = events.ok_or(Behind::Ended)?;
                    awaited.note(&events);
                    take_in(&mut begins, events);
                    continue;
                }
                Some(answer) = inquiry.next() => awaited.learn(answer??),
                () = until(quiet) => {
                    quiet = None;
                    if !awaited.pods_are_seen(&begins) {
                        inquiry.ask_for_pods();
                    }
                }
                () = sleep_until(over) => {
                    let [pods, nodes, claims] = awaited.unseen();
                    let unseen = Behind::Unseen { pods, nodes, claims };
                    return Err(if inquiry.is_over() { unseen } else { Behind::Slow });
                }
            }
            if inquiry.is_over() && quiet.is_none() {
                over = Instant::now() + LAG;
            }
        }
    }
}
