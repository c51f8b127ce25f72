//! A binder while another leads: it watches what the leader watches, so that its process can answer where a pod would go.
//!
//! It must not write, and hands nothing down to the term that follows: that begins with a list of its own.

use std::{future::Future, pin::pin, time::Duration};

use futures::StreamExt;
use tokio::time::timeout;

use super::{
    event_loop::{Binder, ClusterError, until},
    metrics::Metrics,
    watch,
};
use crate::scheduling::{Event, Scheduler};

/// Who is called to lead within this time has listed nothing in vain.
const PATIENCE: Duration = Duration::from_secs(1);

/// Looks on until it is called, and returns with what it was called for.
pub async fn stand_by<T>(binder: &Binder, called: impl Future<Output = T>) -> Result<T, ClusterError> {
    let mut called = pin!(called);
    binder.metrics.stands_by();
    if let Ok(called) = timeout(PATIENCE, &mut called).await {
        return Ok(called);
    }
    let Binder { client, reader, clock, settings, handoff, .. } = binder;
    // Who leads counts the nodes that can't be read.
    let uncounted = Metrics::default();
    let mut watched = pin!(watch::all(client, reader, &uncounted).ready_chunks(256));
    let mut scheduler = Scheduler::standing_by(settings.clone());
    let (mut publisher, mut told) = (handoff.publisher(reader.clone()), handoff.told());
    loop {
        let deadline = scheduler.next_deadline().map(|at| clock.instant(at));
        let events = tokio::select! {
            biased;
            called = &mut called => return Ok(called),
            watched = watched.next() => watched.ok_or(ClusterError::WatchEnded)?,
            () = until(deadline) => vec![Event::Tick],
            () = until(publisher.due(&scheduler)) => Vec::new(),
        };
        for event in events {
            scheduler.observe(event, clock.now());
        }
        scheduler.settle(clock.now());
        publisher.publish(&scheduler);
        told.tell(&scheduler);
    }
}
