//! The connection between a binder and the rest of its process: the binder publishes its view of the cluster, and receives hints.
//!
//! Neither side waits for the other: a reader sees the newest view, and a hint without room is dropped.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{pulse::Pulse, questions::Questions, view::BinderView};
use crate::{
    cluster::{
        clock::Clock,
        extender::{Desk, ExtenderChannel},
        read::Reader,
        report::{ledger::LedgerQuestion, overview::OverviewQuestion},
    },
    object::Pod,
    scheduling::{
        Claim, Details, Event, Scheduler, scheduler,
        world::{ledger::Used, quota_holder::QuotaHolders},
    },
};

/// The shortest time between two published views.
const PERIOD: Duration = Duration::from_millis(100);

/// The shortest time between two looks for the pods that hold most of quotas: each costs as much as there are pods.
const HOLDERS_PERIOD: Duration = Duration::from_secs(1);

/// The most hints that wait.
const ROOM: usize = 64;

/// After a hint, the loop takes no other for this many times as long as the hint took, so that hints use at most a tenth of its time.
const REST: u32 = 9;

/// Whether a hint was kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hinted {
    /// It waits for the binder.
    Taken,
    /// It was dropped: too many hints wait.
    Dropped,
}

/// The connection between a binder and its process; clones share it.
#[derive(Clone, Debug)]
pub struct Handoff {
    pub(super) questions: Questions<LedgerQuestion>,
    pub(super) overviews: Questions<OverviewQuestion>,
    pulse: Pulse,
    /// How kube-scheduler's choices come in, where it chooses.
    extender: Option<ExtenderChannel>,
    views: watch::Sender<Option<BinderView>>,
    used: watch::Sender<Arc<Used>>,
    holders: watch::Sender<Arc<QuotaHolders>>,
    hints: mpsc::Sender<Box<Pod>>,
    inbox: Arc<Mutex<mpsc::Receiver<Box<Pod>>>>,
}

impl Default for Handoff {
    fn default() -> Self {
        let (hints, inbox) = mpsc::channel(ROOM);
        Self {
            questions: Questions::default(),
            overviews: Questions::default(),
            pulse: Pulse::default(),
            extender: None,
            views: watch::Sender::new(None),
            used: watch::Sender::default(),
            holders: watch::Sender::default(),
            hints,
            inbox: Arc::new(Mutex::new(inbox)),
        }
    }
}

impl Handoff {
    /// The binder's view, from its first list on. While no receiver exists, nothing is published.
    pub fn views(&self) -> watch::Receiver<Option<BinderView>> {
        self.views.subscribe()
    }

    /// What the pods of each namespace with a quota hold; empty until the binder knows.
    pub fn used(&self) -> watch::Receiver<Arc<Used>> {
        self.used.subscribe()
    }

    /// The pods that hold most of quotas, up to a second late; none until the binder knows. While no receiver exists, nothing is published.
    pub fn quota_holders(&self) -> watch::Receiver<Arc<QuotaHolders>> {
        self.holders.subscribe()
    }

    /// The hand-off of a binder for which kube-scheduler chooses the nodes.
    pub fn for_extender() -> Self {
        Self { extender: Some(ExtenderChannel::default()), ..Self::default() }
    }

    /// How the binder is told what kube-scheduler has chosen, where it chooses.
    pub fn extender(&self) -> Option<&ExtenderChannel> {
        self.extender.as_ref()
    }

    /// A scheduler that decides what is left to it.
    pub(super) fn scheduler(&self, settings: scheduler::Settings) -> Scheduler {
        let scheduler = Scheduler::new(settings);
        if self.extender.is_some() { scheduler.directed() } else { scheduler }
    }

    pub(super) fn desk(&self, reader: Arc<Reader>, details: Details) -> Desk {
        self.extender.clone().unwrap_or_default().open(reader, details)
    }

    /// Whether the binder's loop goes on.
    pub fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Where the ledger is asked for.
    pub fn questions(&self) -> &Questions<LedgerQuestion> {
        &self.questions
    }

    /// Where the cluster is asked for as this replica sees it, whether it leads or not.
    pub fn overviews(&self) -> &Questions<OverviewQuestion> {
        &self.overviews
    }

    /// Passes on a pod that may be created soon. It may be called any number of times.
    pub fn hint(&self, pod: Box<Pod>) -> Hinted {
        self.hints.try_send(pod).map_or(Hinted::Dropped, |()| Hinted::Taken)
    }

    pub(super) fn publisher(&self, reader: Arc<Reader>) -> Publisher {
        Publisher { views: self.views.clone(), reader, published: None, due: Instant::now() }
    }

    pub(super) fn told(&self) -> Told {
        Told {
            used: self.used.clone(),
            version: 0,
            holders: self.holders.clone(),
            changes: None,
            due: Instant::now(),
        }
    }

    pub(super) fn inbox(&self, reader: Arc<Reader>) -> Inbox {
        Inbox { hints: self.inbox.clone(), reader, rests_until: Instant::now() }
    }
}

/// Publishes the view of one loop.
pub(super) struct Publisher {
    views: watch::Sender<Option<BinderView>>,
    reader: Arc<Reader>,
    /// The state of the scheduler that was published last.
    published: Option<u64>,
    due: Instant,
}

impl Publisher {
    /// When the next view is published; `None`: the last one is up to date, or there is no receiver.
    pub(super) fn due(&self, scheduler: &Scheduler) -> Option<Instant> {
        let differs = scheduler.view().is_synced() && self.published != Some(scheduler.view().changes());
        (differs && self.views.receiver_count() > 0).then_some(self.due)
    }

    /// Publishes the view, if it is due.
    pub(super) fn publish(&mut self, scheduler: &Scheduler) {
        if self.due(scheduler).is_none_or(|at| at > Instant::now()) {
            return;
        }
        let view = BinderView { reader: self.reader.clone(), outlook: scheduler.view().outlook() };
        self.views.send_replace(Some(view));
        self.published = Some(scheduler.view().changes());
        self.due = Instant::now() + PERIOD;
    }
}

/// Publishes what is used of quotas, as one loop knows it; dropping it clears the values.
pub(super) struct Told {
    used: watch::Sender<Arc<Used>>,
    version: u64,
    holders: watch::Sender<Arc<QuotaHolders>>,
    /// The state of the scheduler in which the holders were looked for last.
    changes: Option<u64>,
    due: Instant,
}

impl Told {
    /// When the holders are looked for next; `None`: nothing has changed, or there is no quota or no receiver.
    pub(super) fn due(&self, scheduler: &Scheduler) -> Option<Instant> {
        let asked = self.holders.receiver_count() > 0 && !scheduler.snapshot().quotas().used().is_empty();
        let differs = scheduler.view().is_synced() && self.changes != Some(scheduler.view().changes());
        (asked && differs).then_some(self.due)
    }

    /// Publishes the values that have changed.
    pub(super) fn tell(&mut self, scheduler: &Scheduler) {
        let quotas = scheduler.snapshot().quotas();
        if scheduler.view().is_synced() && quotas.version() != self.version {
            self.version = quotas.version();
            self.used.send_replace(Arc::new(quotas.used().clone()));
        }
        let now = Instant::now();
        if self.due(scheduler).is_some_and(|at| at <= now) {
            let holders = scheduler.view().quota_holders();
            self.holders.send_if_modified(|known| {
                let differs = **known != holders;
                if differs {
                    *known = Arc::new(holders);
                }
                differs
            });
            self.changes = Some(scheduler.view().changes());
            self.due = now + HOLDERS_PERIOD;
        }
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.used.send_replace(Arc::default());
        self.holders.send_replace(Arc::default());
    }
}

/// Receives the hints for one loop.
pub(super) struct Inbox {
    hints: Arc<Mutex<mpsc::Receiver<Box<Pod>>>>,
    reader: Arc<Reader>,
    rests_until: Instant,
}

impl Inbox {
    /// The next hint; cancelling the call loses none.
    pub(super) async fn next(&self) -> Box<Pod> {
        if self.rests_until > Instant::now() {
            sleep_until(self.rests_until).await;
        }
        match self.hints.lock().await.recv().await {
            Some(pod) => pod,
            None => std::future::pending().await,
        }
    }

    /// Lets the scheduler prepare for the pod of a hint.
    pub(super) fn take(&mut self, pod: &Pod, scheduler: &mut Scheduler, clock: Clock) {
        let began = Instant::now();
        if let Claim::Place(ask) = self.reader.pod(pod).0.claim {
            scheduler.observe(Event::Hinted(ask), clock.now());
        }
        self.rests_until = Instant::now() + began.elapsed() * REST;
    }
}

#[cfg(test)]
mod tests;
