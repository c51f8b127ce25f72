//! One term as the leader: the loop that owns the scheduler, with watch events and answers as input and writes as output.
//!
//! A term remembers nothing of an earlier one: it begins with the watches of the follower (`takeover`), or with a list. It does not
//! decide which replica leads.

use std::{future::Future, pin::pin, time::Duration};

use futures::StreamExt;
use tokio::time::Instant;

use super::{Binder, ClusterError, takeover::Beginning};
use crate::{
    cluster::{
        clock::{Clock, until},
        compare::Comparer,
        report::{metrics::Metrics, overview::Leading, showback::Showback},
        write::{act::Hands, fence::Fence, quota_use::QuotaUse, writes::Writes},
    },
    scheduling::{Event, Scheduler, scheduler::MeasuredWork, world::ledger::EndedCharges},
};

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

/// What a term carries out effects with.
fn hands(binder: &Binder, fence: &Fence) -> Hands {
    Hands {
        client: binder.client.clone(),
        reader: binder.reader.clone(),
        clock: binder.clock,
        metrics: binder.metrics.clone(),
        fence: fence.clone(),
        comparer: Comparer::default(),
        details: binder.details,
    }
}

/// Binds until `shutdown` or until the end of the claim. After `shutdown`, it takes no further lock, but binds a pod whose lock it
/// holds.
pub async fn term(
    binder: Binder,
    beginning: Beginning,
    fence: Fence,
    shutdown: impl Future<Output = ()>,
) -> Result<Ended, ClusterError> {
    let hands = hands(&binder, &fence);
    let mut quota_use = QuotaUse::new(binder.client.clone());
    let Beginning { events: mut watched, scheduler, ended } = beginning;
    let mut showback = Showback::new(&binder, &fence, ended);
    let Binder { reader, clock, metrics, details, writes_at_once, handoff, .. } = binder;
    let (mut questions, mut overviews) = (handoff.questions.open(), handoff.overviews.open());
    let dialects = reader.dialects().clone();
    let (mut shutdown, mut lost) = (pin!(shutdown), pin!(fence.lost()));
    let (mut publisher, mut inbox) = (handoff.publisher(reader.clone()), handoff.inbox(reader.clone()));
    let mut desk = handoff.desk(reader.clone(), details);
    let pulse = handoff.pulse().clone();
    let mut work = DrivenScheduler::new(scheduler, Writes::new(hands, writes_at_once));
    let mut teller = handoff.told();
    let mut drain_until = None;
    let turn = pulse.begin();
    work.go_on(Vec::new(), clock, &metrics)?;
    drop(turn);
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
            Some(question) = overviews.recv() => {
                question.answer(&work.scheduler, &reader, (Leading::Yes, details, clock.now()));
                continue;
            }
            asked = desk.next(), if work.scheduler.view().is_synced() => {
                desk.take(asked, &mut work.scheduler);
                Vec::new()
            }
            Some(answer) = work.writes.answer() => answer?.into_iter().collect(),
            watched = watched.next() => watched.ok_or(ClusterError::WatchEnded)?,
            () = until(deadline) => vec![Event::Tick],
            () = until(overdue) => vec![Event::Tick],
            () = until(publisher.due(&work.scheduler).into_iter().chain(teller.due(&work.scheduler)).min()) => {
                publisher.publish(&work.scheduler);
                teller.tell(&work.scheduler);
                continue;
            }
            () = quota_use.go_on(&work.scheduler), if drain_until.is_none() => continue,
            () = go_on(showback.as_mut(), &work.scheduler), if drain_until.is_none() => continue,
            hint = inbox.next(), if work.scheduler.view().is_synced() => {
                inbox.take(&hint, &mut work.scheduler, clock);
                continue;
            }
        };
        let _turn = pulse.begin();
        desk.direct(&mut work.scheduler, clock);
        work.go_on(events, clock, &metrics)?;
        let ended = std::mem::take(&mut work.ended);
        if let Some(showback) = &mut showback {
            showback.note(ended);
        }
        desk.answer(&mut work.scheduler, clock);
        publisher.publish(&work.scheduler);
        teller.tell(&work.scheduler);
        if drain_until.is_some() && work.is_done() {
            if let Some(showback) = &mut showback {
                showback.finish(&work.scheduler).await;
            }
            return Ok(Ended::Drained);
        }
    }
}

/// Counts what is used, where that is wanted.
async fn go_on(showback: Option<&mut Showback>, scheduler: &Scheduler) {
    match showback {
        Some(showback) => showback.go_on(scheduler).await,
        None => std::future::pending().await,
    }
}

/// The scheduler and its writes.
struct DrivenScheduler {
    scheduler: Scheduler,
    writes: Writes,
    began: Instant,
    /// What pods held that have ended.
    ended: EndedCharges,
}

impl DrivenScheduler {
    fn new(scheduler: Scheduler, writes: Writes) -> Self {
        Self { scheduler, writes, began: Instant::now(), ended: EndedCharges::default() }
    }

    /// Passes events to the scheduler and starts the resulting writes.
    fn go_on(&mut self, events: Vec<Event>, clock: Clock, metrics: &Metrics) -> Result<(), ClusterError> {
        let was_synced = self.scheduler.view().is_synced();
        for event in events {
            metrics.registrations(&event);
            self.scheduler.observe(event, clock.now());
        }
        for answer in self.writes.answered()? {
            self.scheduler.observe(answer, clock.now());
        }
        let before = Instant::now();
        let effects = self.scheduler.settle(clock.now());
        let MeasuredWork { measures, ended } = self.scheduler.take_measured();
        metrics.work(&measures, before.elapsed());
        self.ended.extend(ended);
        metrics.standing(&self.scheduler.view().standing(clock.now()));
        if self.scheduler.view().is_synced() && !was_synced {
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
        self.scheduler.view().is_drained() && self.writes.is_empty()
    }
}
