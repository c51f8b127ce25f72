//! The one loop that owns the scheduler: watches and answers in, writes out.

use std::{collections::VecDeque, future::Future, pin::pin, sync::Arc};

use futures::{StreamExt, stream};
use kube::Client;
use tokio::task::{JoinError, JoinSet};

use super::{act::Hands, clock::Clock, metrics::Metrics, read::Reader, watch};
use crate::scheduling::{
    Effect, Event, Scheduler,
    scheduler::{self},
};

/// Why the loop ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A watch ended, which none ever should.
    #[error("the watches of pods and nodes have ended")]
    WatchEnded,
    /// A task that wrote to the API server panicked.
    #[error("a write to the API server panicked")]
    Write(#[source] JoinError),
}

/// What the loop is given.
#[derive(Clone)]
pub struct Binder {
    /// The client; it must not retry by itself.
    pub client: Client,
    /// What is read of pods and nodes.
    pub reader: Arc<Reader>,
    /// The present.
    pub clock: Clock,
    /// Counts what is done.
    pub metrics: Metrics,
    /// What the scheduler is told.
    pub settings: scheduler::Settings,
    /// How many writes may be under way at once.
    pub writes_at_once: usize,
}

/// Runs until `shutdown`; writes that are under way are waited for.
pub async fn run(binder: Binder, shutdown: impl Future<Output = ()>) -> Result<(), ClusterError> {
    let Binder { client, reader, clock, metrics, settings, writes_at_once } = binder;
    let pods = watch::pods(&client, reader.clone());
    let nodes = watch::nodes(&client, reader.clone(), metrics.clone());
    let mut watched = pin!(stream::select(pods, nodes).ready_chunks(256));
    let mut shutdown = pin!(shutdown);
    let mut scheduler = Scheduler::new(settings);
    let mut writes = Writes {
        hands: Hands { client, reader, clock, metrics: metrics.clone() },
        waiting: VecDeque::new(),
        under_way: JoinSet::new(),
        at_once: writes_at_once,
    };
    loop {
        let deadline = scheduler.next_deadline().map(|at| clock.instant(at));
        let events = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(answer) = writes.under_way.join_next() => answer.map_err(ClusterError::Write)?.into_iter().collect(),
            watched = watched.next() => watched.ok_or(ClusterError::WatchEnded)?,
            () = until(deadline) => vec![Event::Tick],
        };
        for event in events {
            scheduler.observe(event, clock.now());
        }
        for answer in writes.answered()? {
            scheduler.observe(answer, clock.now());
        }
        let effects = scheduler.settle(clock.now());
        metrics.queue(scheduler.depths(), scheduler.is_synced());
        writes.start(effects);
    }
    writes.finish().await
}

async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Writes that wait and writes that are under way.
struct Writes {
    hands: Hands,
    waiting: VecDeque<Effect>,
    under_way: JoinSet<Option<Event>>,
    at_once: usize,
}

impl Writes {
    /// What frees a node goes first: while its Binding waits behind other nodes' locks, a locked node serves nobody.
    fn start(&mut self, effects: Vec<Effect>) {
        let frees_a_node = |effect: &Effect| {
            matches!(effect, Effect::Bind { .. } | Effect::ReadPod { .. } | Effect::ReleaseLock { .. })
        };
        let (first, last): (Vec<_>, Vec<_>) = effects.into_iter().partition(frees_a_node);
        for effect in first.into_iter().rev() {
            self.waiting.push_front(effect);
        }
        self.waiting.extend(last);
        while self.under_way.len() < self.at_once {
            let Some(effect) = self.waiting.pop_front() else { return };
            self.under_way.spawn(self.hands.clone().act(effect));
        }
    }

    /// The answers that are already there.
    fn answered(&mut self) -> Result<Vec<Event>, ClusterError> {
        let mut events = Vec::new();
        while let Some(answer) = self.under_way.try_join_next() {
            events.extend(answer.map_err(ClusterError::Write)?);
        }
        Ok(events)
    }

    /// Waits for what is under way; what has not been started is left to the next who lists the cluster.
    async fn finish(mut self) -> Result<(), ClusterError> {
        while let Some(answer) = self.under_way.join_next().await {
            answer.map_err(ClusterError::Write)?;
        }
        Ok(())
    }
}
