//! A binder as a follower: it runs the same watches as the leader, so that its process can answer dry runs.
//!
//! It writes nothing. The next term takes over its watches, after checking that they are up to date (`takeover`).

use std::{future::Future, pin::pin, time::Duration};

use futures::StreamExt;
use tokio::time::{Instant, timeout};

use super::{
    Binder, ClusterError,
    takeover::{self, Watching},
};
use crate::{
    cluster::{clock::until, report::overview::Leading},
    scheduling::{Event, Scheduler},
};

/// A replica that becomes the leader within this time skips the list of a follower.
const PATIENCE: Duration = Duration::from_secs(1);

/// Follows until `called` returns, and returns its value together with the watches.
pub async fn stand_by<T>(
    binder: &Binder,
    called: impl Future<Output = T>,
) -> Result<(T, Option<Watching>), ClusterError> {
    let mut called = pin!(called);
    binder.metrics.stands_by();
    if let Ok(called) = timeout(PATIENCE, &mut called).await {
        return Ok((called, None));
    }
    let Binder { reader, clock, settings, handoff, details, .. } = binder;
    let mut watched = takeover::watches(binder);
    let mut scheduler = Scheduler::standing_by(settings.clone());
    let (mut publisher, mut told) = (handoff.publisher(reader.clone()), handoff.told());
    let mut overviews = handoff.overviews.open();
    let began = Instant::now();
    loop {
        let deadline = scheduler.next_deadline().map(|at| clock.instant(at));
        let events = tokio::select! {
            biased;
            called = &mut called => return Ok((called, Some(Watching { events: watched, scheduler }))),
            Some(question) = overviews.recv() => {
                question.answer(&scheduler, reader, (Leading::No, *details, clock.now()));
                continue;
            }
            watched = watched.next() => watched.ok_or(ClusterError::WatchEnded)?,
            () = until(deadline) => vec![Event::Tick],
            () = until(publisher.due(&scheduler)) => Vec::new(),
            () = until(told.due(&scheduler)) => Vec::new(),
        };
        let _turn = handoff.pulse().begin();
        let was_synced = scheduler.view().is_synced();
        for event in events {
            scheduler.observe(event, clock.now());
        }
        if scheduler.view().is_synced() && !was_synced {
            tracing::info!(took = ?began.elapsed(), "following; pods and nodes are known");
        }
        binder.metrics.standby_synced(scheduler.view().is_synced());
        scheduler.settle(clock.now());
        publisher.publish(&scheduler);
        told.tell(&scheduler);
    }
}
