//! One term as the leader: the loop that owns the scheduler, with watch events and answers as input and writes as output.
//!
//! A term remembers nothing of an earlier one: it begins with the watches of the follower (`takeover`), or with a list. It does not
//! decide which replica leads.

use std::{collections::VecDeque, future::Future, pin::pin, time::Duration};

use futures::StreamExt;
use tokio::{task::JoinSet, time::Instant};

use super::{
    act::Hands,
    binder::{Binder, ClusterError},
    clock::Clock,
    fence::Fence,
    metrics::Metrics,
    takeover::Beginning,
};
use crate::scheduling::{Effect, Event, LockOutcome, Scheduler};

/// The longest time to finish open work at the shutdown: the longest write, the read after it, and one more attempt.
const DRAIN: Duration = Duration::from_secs(20);

/// How a term ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// At the shutdown, with all work finished.
    Drained,
    /// At the shutdown, with writes that were not answered in time.
    Undrained,
    /// The claim to lead ended; open requests were dropped.
    Lost,
}

/// Binds until `shutdown` or until the end of the claim. After `shutdown`, it takes no further lock, but binds a pod whose lock it
/// holds.
pub async fn term(
    binder: Binder,
    beginning: Beginning,
    fence: Fence,
    shutdown: impl Future<Output = ()>,
) -> Result<Ended, ClusterError> {
    let Binder { client, reader, clock, metrics, writes_at_once, handoff, .. } = binder;
    let mut questions = handoff.questions.open();
    let dialects = reader.dialects().clone();
    let Beginning { events: mut watched, scheduler } = beginning;
    let (mut shutdown, mut lost) = (pin!(shutdown), pin!(fence.lost()));
    let (mut publisher, mut inbox) = (handoff.publisher(reader.clone()), handoff.inbox(reader.clone()));
    let mut desk = handoff.desk(reader.clone());
    let hands = Hands { client, reader, clock, metrics: metrics.clone(), fence: fence.clone() };
    let mut work = Work::new(scheduler, Writes::new(hands, writes_at_once));
    let mut teller = handoff.told();
    let mut drain_until = None;
    work.go_on(Vec::new(), clock, &metrics)?;
    loop {
        let overdue = desk.due();
        let deadline = work.scheduler.next_deadline().map(|at| clock.instant(at));
        let events = tokio::select! {
            biased;
            () = &mut lost => return Ok(Ended::Lost),
            () = until(drain_until) => return Ok(Ended::Undrained),
            () = &mut shutdown, if drain_until.is_none() => {
                drain_until = Some(Instant::now() + DRAIN);
                work.drain()
            }
            Some(question) = questions.recv() => {
                question.answer(&work.scheduler, &dialects);
                continue;
            }
            asked = desk.next(), if work.scheduler.is_synced() => {
                desk.take(asked, &mut work.scheduler);
                Vec::new()
            }
            Some(answer) = work.writes.under_way.join_next() => answer.map_err(ClusterError::Write)?.into_iter().collect(),
            watched = watched.next() => watched.ok_or(ClusterError::WatchEnded)?,
            () = until(deadline) => vec![Event::Tick],
            () = until(overdue) => vec![Event::Tick],
            () = until(publisher.due(&work.scheduler)) => {
                publisher.publish(&work.scheduler);
                continue;
            }
            hint = inbox.next(), if work.scheduler.is_synced() => {
                inbox.take(&hint, &mut work.scheduler, clock);
                continue;
            }
        };
        desk.direct(&mut work.scheduler, clock);
        work.go_on(events, clock, &metrics)?;
        desk.answer(&mut work.scheduler, clock);
        publisher.publish(&work.scheduler);
        teller.tell(&work.scheduler);
        if drain_until.is_some() && work.is_done() {
            return Ok(Ended::Drained);
        }
    }
}

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The scheduler and its writes.
struct Work {
    scheduler: Scheduler,
    writes: Writes,
    began: Instant,
}

impl Work {
    fn new(scheduler: Scheduler, writes: Writes) -> Self {
        Self { scheduler, writes, began: Instant::now() }
    }

    /// Passes events to the scheduler and starts the resulting writes.
    fn go_on(&mut self, events: Vec<Event>, clock: Clock, metrics: &Metrics) -> Result<(), ClusterError> {
        let was_synced = self.scheduler.is_synced();
        for event in events {
            metrics.registrations(&event);
            self.scheduler.observe(event, clock.now());
        }
        for answer in self.writes.answered()? {
            self.scheduler.observe(answer, clock.now());
        }
        let before = Instant::now();
        let effects = self.scheduler.settle(clock.now());
        metrics.work(&self.scheduler.take_measures(), before.elapsed());
        metrics.standing(&self.scheduler.standing(clock.now()));
        if self.scheduler.is_synced() && !was_synced {
            let nodes = self.scheduler.snapshot().nodes().count();
            tracing::info!(nodes, took = ?self.began.elapsed(), "pods and nodes are known");
        }
        self.writes.start(effects);
        Ok(())
    }

    /// Begins to drain: waiting writes that would begin something new are dropped.
    fn drain(&mut self) -> Vec<Event> {
        self.scheduler.drain();
        self.writes.withdraw()
    }

    fn is_done(&self) -> bool {
        self.scheduler.is_drained() && self.writes.is_empty()
    }
}

/// The writes that wait and those that are under way.
struct Writes {
    hands: Hands,
    waiting: VecDeque<Effect>,
    under_way: JoinSet<Option<Event>>,
    at_once: usize,
}

impl Writes {
    fn new(hands: Hands, at_once: usize) -> Self {
        Self { hands, waiting: VecDeque::new(), under_way: JoinSet::new(), at_once }
    }

    /// Writes that free a node go first: while a Binding waits behind the locks of other nodes, its locked node serves no pod.
    fn start(&mut self, effects: Vec<Effect>) {
        let frees_a_node = |effect: &Effect| {
            matches!(
                effect,
                Effect::Bind { .. }
                    | Effect::ReadPod { .. }
                    | Effect::ReadNode { .. }
                    | Effect::ReleaseLock { .. }
                    | Effect::Withdraw { .. }
            )
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

    /// The answers that have already arrived.
    fn answered(&mut self) -> Result<Vec<Event>, ClusterError> {
        let mut events = Vec::new();
        while let Some(answer) = self.under_way.try_join_next() {
            events.extend(answer.map_err(ClusterError::Write)?);
        }
        Ok(events)
    }

    /// Drops waiting writes that would begin something new. A dropped lock is answered as `Stale`.
    fn withdraw(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        for effect in std::mem::take(&mut self.waiting) {
            match effect {
                Effect::TakeLock { pod, node, locks, .. } => {
                    events.push(Event::LockAnswered { pod, node, locks, outcome: LockOutcome::Stale });
                }
                // The next leader reports, preempts or evicts again.
                Effect::Nominate { .. }
                | Effect::Preempt { .. }
                | Effect::EvictFromZone { .. }
                | Effect::TellEvictionPostponed { .. }
                | Effect::TellUnschedulable { .. }
                | Effect::TellSilent { .. }
                | Effect::TellWaiting { .. }
                | Effect::TellExcess { .. }
                | Effect::TellUnread { .. }
                | Effect::TellUnassigned { .. } => {}
                effect => self.waiting.push_back(effect),
            }
        }
        events
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }
}
