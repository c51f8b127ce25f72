//! The cluster as a replica sees it at one moment, with who holds what and who waits: for those who look at it, not for decisions.
//!
//! A loop copies references, between two decisions, when it is asked: on a standby too. Whatever is counted or written is made outside it.

use std::sync::Arc;

use jiff::Timestamp;

use tokio::sync::oneshot;

use super::{
    questions::{NoAnswer, Questions},
    read::Reader,
    view::BinderView,
};
use crate::scheduling::{Details, PodKey, Scheduler, pending::PendingPod, world::ledger::Charge};

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
    /// The pods that hold shares of cards, in no order.
    pub holders: Vec<(PodKey, Arc<Charge>)>,
    /// The pods that want a place and have none, in the order in which they would be decided.
    pub pending: Vec<PendingPod>,
}

/// Whom a loop is to answer with an overview; `None` until everything is listed.
#[derive(Debug)]
pub struct OverviewQuestion(oneshot::Sender<Option<Overview>>);

impl OverviewQuestion {
    /// Answers it; the one that asked may have gone meanwhile.
    pub(super) fn answer(
        self,
        scheduler: &Scheduler,
        reader: &Arc<Reader>,
        (leading, details, at): (Leading, Details, Timestamp),
    ) {
        drop(self.0.send(Overview::of(scheduler, reader, (leading, details, at))));
    }
}

impl Questions<OverviewQuestion> {
    /// The cluster as this replica sees it now; `None` until everything is listed.
    pub async fn overview(&self) -> Result<Option<Overview>, NoAnswer> {
        self.ask(OverviewQuestion).await
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
            holders: view.holders().map(|(key, charge)| (key.clone(), charge.clone())).collect(),
            pending: view.pending(),
        })
    }
}
