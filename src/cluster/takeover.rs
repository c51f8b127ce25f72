//! With what a term begins: what its replica watched while another led, once that is as new as the cluster, or nothing.
//!
//! It does not decide which replica leads. If the watches lag behind, the term does not use them and lists everything.

use std::{pin::Pin, time::Duration};

use futures::{Stream, StreamExt};
use tokio::{
    task::JoinError,
    time::{Instant, sleep_until},
};

use super::{binder::Binder, event_loop::until, list::ListError, watch};
use crate::scheduling::{Event, Scheduler};
use awaited::Awaited;
use inquiry::Inquiry;

pub mod awaited;
pub mod inquiry;

/// What the API server shows is seen by a watch within this time, or the watch is taken to be stuck.
const LAG: Duration = Duration::from_secs(1);
/// Where the watch of pods tells nothing new for so long, their names are listed. While pods come and go it tells enough at once.
const QUIET: Duration = Duration::from_millis(50);
/// A list of names that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is watched, as events that come together.
pub type Events = Pin<Box<dyn Stream<Item = Vec<Event>> + Send>>;

/// Everything that the scheduler is to see, from a list on.
pub fn watches(binder: &Binder) -> Events {
    watch::all(&binder.client, &binder.reader).ready_chunks(256).boxed()
}

/// The watches of a follower, and what they have delivered so far.
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
        Self { events: watches(binder), scheduler: binder.handoff.scheduler(binder.settings.clone()) }
    }
}

/// Why what was watched is not used.
#[derive(Debug, thiserror::Error)]
enum Behind {
    #[error("not everything was listed yet")]
    Unlisted,
    #[error("pods and nodes could not be listed by name: {0}")]
    List(#[from] ListError),
    #[error("asking for them panicked")]
    Panicked(#[from] JoinError),
    #[error("the list of pods and nodes by name took longer than {PATIENCE:?}")]
    Slow,
    #[error("{pods} pod(s) and {nodes} node(s) have changed and were not seen to within {LAG:?}")]
    Unseen { pods: usize, nodes: usize },
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
            tracing::info!(took = ?began.elapsed(), "what this replica watched as a follower is up to date");
            beginning
        }
        Err(behind) => {
            tracing::info!(%behind, "what this replica watched as a follower is out of date; listing everything");
            Beginning::afresh(binder)
        }
    }
}

impl Watching {
    /// Watches on until everything that the API server has now was seen as it is now, or later. Meanwhile a scheduler that has thought
    /// nothing yet is told what this one has seen.
    async fn catch_up(mut self, binder: &Binder) -> Result<Beginning, Behind> {
        if !self.scheduler.is_synced() {
            return Err(Behind::Unlisted);
        }
        let mut inquiry = Inquiry::begin(&binder.client);
        let mut quiet = Some(Instant::now() + QUIET);
        let mut over = Instant::now() + PATIENCE;
        let mut begins = binder.handoff.scheduler(binder.settings.clone());
        let take_in = |begins: &mut Scheduler, events: Vec<Event>| {
            for event in events {
                binder.metrics.registrations(&event);
                begins.observe(event, binder.clock.now());
            }
        };
        take_in(&mut begins, self.scheduler.recount());
        let mut awaited = Awaited::default();
        loop {
            if awaited.is_seen(&begins) {
                return Ok(Beginning { events: self.events, scheduler: begins });
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
                    let (pods, nodes) = awaited.unseen();
                    return Err(if inquiry.is_over() { Behind::Unseen { pods, nodes } } else { Behind::Slow });
                }
            }
            if inquiry.is_over() && quiet.is_none() {
                over = Instant::now() + LAG;
            }
        }
    }
}
