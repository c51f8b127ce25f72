//! A shadow of the cluster's current scheduler: it watches what a binder watches and compares each decision with Berth's own.
//!
//! It must not write: no Lease, no Event, no condition. It only lists and watches.

pub mod metrics;
pub mod report;

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use futures::StreamExt;
use jiff::SignedDuration;
use kube::Client;
use tokio::time::{Instant, interval_at};

use super::{
    binder::ClusterError,
    clock::{Clock, until},
    informer::{unread::UnreadObjects, watch},
    read::Reader,
};
use crate::scheduling::{
    Event, Scheduler, scheduler,
    shadow::{Shadow, ShadowFinding, comparison::Outcome},
};
use report::Board;

/// The counts are logged this often.
const SUMMARY: Duration = Duration::from_mins(10);

/// What a shadow is given.
#[derive(Clone)]
pub struct Shadowing {
    /// The client; only lists and watches are sent through it.
    pub client: Client,
    /// Reads pods of every scheduler ([`Reader::shadowing`]).
    pub reader: Arc<Reader>,
    /// The present.
    pub clock: Clock,
    /// What the scheduler is told.
    pub settings: scheduler::Settings,
    /// How long another scheduler may leave a pod pending that Berth would place.
    pub settle: SignedDuration,
    /// Where findings are kept and counted.
    pub board: Board,
}

/// Compares until `stopped`.
pub async fn run(shadowing: Shadowing, stopped: impl Future<Output = ()>) -> Result<(), ClusterError> {
    let Shadowing { client, reader, clock, settings, settle, board } = shadowing;
    let mut stopped = pin!(stopped);
    let mut shadow = Shadow::new(settings.weights, settle).after(board.take_counted());
    let claims = settings.claims;
    let mut scheduler = Scheduler::standing_by(settings);
    let mut watched = pin!(watch::all(&client, &reader, claims, &UnreadObjects::default()).ready_chunks(256));
    let mut summary = interval_at(Instant::now() + SUMMARY, SUMMARY);
    loop {
        let due = scheduler.next_deadline().into_iter().chain(shadow.next_deadline()).min();
        let events = tokio::select! {
            biased;
            () = &mut stopped => {
                board.leave(shadow.into_counted());
                return Ok(());
            }
            _ = summary.tick() => {
                board.log_summary();
                continue;
            }
            events = watched.next() => events.ok_or(ClusterError::WatchEnded)?,
            () = until(due.map(|at| clock.instant(at))) => vec![Event::Tick],
        };
        let was_synced = scheduler.view().is_synced();
        for event in events {
            shadow.observe(&scheduler, &event, clock.now());
            scheduler.observe(event, clock.now());
        }
        scheduler.settle(clock.now());
        shadow.settle(&scheduler, clock.now());
        if scheduler.view().is_synced() && !was_synced {
            tracing::info!("pods and nodes are known, decisions are compared from now on");
        }
        for finding in shadow.take_findings() {
            log(&finding);
            board.note(&finding, clock.now());
        }
        board.stand(scheduler.view().is_synced(), shadow.waiting());
    }
}

/// Logs a decision that Berth holds infeasible or would not have taken; of the others the counts say enough.
fn log(finding: &ShadowFinding) {
    match finding {
        ShadowFinding::Decided(found)
            if matches!(found.outcome(), Outcome::Infeasible | Outcome::WouldWait) =>
        {
            let message = crate::excerpt::shortened(found.reason.to_string(), crate::excerpt::MESSAGE);
            tracing::info!(
                pod = %found.pod, node = %found.chosen.node, outcome = %found.outcome(), reason = &*found.reason.name(),
                "Berth would not have placed the pod there: {message}"
            );
        }
        ShadowFinding::LeftPending(found) => {
            tracing::info!(pod = %found.pod, node = %found.own.node, "Berth would have placed the pending pod");
        }
        ShadowFinding::Decided(_) => {}
    }
}
