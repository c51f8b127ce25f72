//! The cluster as a replica sees it at one moment, with who holds what and who waits: for those who look at it, not for decisions.
//!
//! A loop copies references, between two decisions, when it is asked: on a standby too. Whatever is counted or written is made outside it.

use std::sync::Arc;

use jiff::Timestamp;

use tokio::sync::oneshot;

use crate::{
    cluster::{
        binder::{
            questions::{NoAnswer, Questions},
            view::BinderView,
        },
        read::Reader,
    },
    scheduling::{Details, Event, Scheduler, Snapshot, pending::PendingPod, world::ledger::Charges},
};

/// Whether the replica binds pods.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Leading {
    /// It does.
    Yes,
    /// It stands by.
    No,
}

/// The cluster at one moment.
#[derive(Debug)]
pub struct Overview {
    /// When that was.
    pub at: Timestamp,
    /// Whether the replica binds pods.
    pub leading: Leading,
    /// How much owners are told of other objects.
    pub details: Details,
    /// Nodes and other objects, and how pods are read.
    pub view: BinderView,
    /// What pods hold.
    pub holders: Charges,
    /// The pods that want a place and have none, in the order in which they would be decided.
    pub pending: Vec<PendingPod>,
}

/// What a loop is asked for, whether it binds or not; the answer is `None` until everything is listed.
#[derive(Debug)]
pub enum OverviewQuestion {
    /// The cluster, to look at.
    Overview(oneshot::Sender<Option<Overview>>),
    /// A copy of the cluster, to plan on.
    Snapshot(oneshot::Sender<Option<Snapshot>>),
    /// Everything that was seen, to play on.
    Recount(oneshot::Sender<Option<Recount>>),
}

/// Everything that a scheduler has seen.
#[derive(Debug)]
pub enum Recount {
    /// As events that would let another see the same.
    Events(Vec<Event>),
    /// It has seen so many pods, more than are copied between two decisions.
    TooManyPods(usize),
}

/// So many pods are copied at most: more of them would hold up decisions for too long.
const MOST_PODS: usize = 20_000;

impl OverviewQuestion {
    /// Answers it; the one that asked may have gone meanwhile.
    pub(in crate::cluster) fn answer(
        self,
        scheduler: &Scheduler,
        reader: &Arc<Reader>,
        (leading, details, at): (Leading, Details, Timestamp),
    ) {
        match self {
            Self::Overview(answer) => {
                drop(answer.send(Overview::of(scheduler, reader, (leading, details, at))));
            }
            Self::Snapshot(answer) => {
                let is_synced = scheduler.view().is_synced();
                drop(answer.send(is_synced.then(|| scheduler.snapshot().clone())));
            }
            Self::Recount(answer) => drop(answer.send(Recount::of(scheduler))),
        }
    }
}

impl Questions<OverviewQuestion> {
    /// The cluster as this replica sees it now; `None` until everything is listed.
    pub async fn overview(&self) -> Result<Option<Overview>, NoAnswer> {
        self.ask(OverviewQuestion::Overview).await
    }

    /// Everything that this replica has seen, to play on; `None` until everything is listed.
    pub async fn recount(&self) -> Result<Option<Recount>, NoAnswer> {
        self.ask(OverviewQuestion::Recount).await
    }

    /// A copy of the cluster as this replica sees it now, to plan on; `None` until everything is listed.
    pub async fn snapshot(&self) -> Result<Option<Snapshot>, NoAnswer> {
        self.ask(OverviewQuestion::Snapshot).await
    }
}

impl Recount {
    /// What a scheduler has seen; `None` until it has listed everything.
    pub fn of(scheduler: &Scheduler) -> Option<Self> {
        let view = scheduler.view();
        let pods = view.keys().count();
        view.is_synced().then(|| match pods {
            0..=MOST_PODS => Self::Events(view.recount()),
            _ => Self::TooManyPods(pods),
        })
    }
}

impl Overview {
    /// What a scheduler sees; `None` until it has listed everything, since a part would look like the whole.
    pub(super) fn of(
        scheduler: &Scheduler,
        reader: &Arc<Reader>,
        (leading, details, at): (Leading, Details, Timestamp),
    ) -> Option<Self> {
        let view = scheduler.view();
        view.is_synced().then(|| Self {
            at,
            leading,
            details,
            view: BinderView { reader: reader.clone(), outlook: view.outlook() },
            holders: scheduler.snapshot().ledger().shared(),
            pending: view.pending(),
        })
    }
}
