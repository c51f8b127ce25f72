//! What answers are made from, and the newest overview, counted: asked for at most once a second, however many look.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::{sync::Mutex, task::spawn_blocking, time::Instant};

use super::{ApiError, fleet::CountedFleet, what_if::AdmitPod};
use crate::{
    cluster::{
        binder::questions::NoAnswer,
        report::overview::{Overview, Recount},
    },
    object::{Pod, Workloads},
    scheduling::{Snapshot, scheduler::Settings, showback::UsageAccount},
    webhook::page::bearer::Denial,
};

/// For so long one overview serves everybody who asks.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Asks for an overview; `None` until everything is listed.
pub type Look = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<Overview>, NoAnswer>> + Send + Sync>;

/// Takes a copy of the cluster to plan on; `None` until everything is listed.
pub type TakeSnapshot = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<Snapshot>, NoAnswer>> + Send + Sync>;

/// Tells everything that the replica has seen; `None` until everything is listed.
pub type TakeRecount = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<Recount>, NoAnswer>> + Send + Sync>;

/// Reads the object of a pod by namespace and name; `None`: there is no such pod.
pub type ReadPod =
    Arc<dyn Fn(String, String) -> BoxFuture<'static, Result<Option<Value>, Denial>> + Send + Sync>;

/// Lists every pod that is bound.
pub type ListPods = Arc<dyn Fn() -> BoxFuture<'static, Result<Vec<Pod>, Denial>> + Send + Sync>;

/// Reads the account of what was used; `None`: there is none.
pub type ReadUsage = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<UsageAccount>, Denial>> + Send + Sync>;

/// What answers are made from.
#[derive(Clone)]
pub struct AnswerSources {
    /// Shows the cluster.
    pub look: Look,
    /// Copies it.
    pub snapshot: TakeSnapshot,
    /// Tells what was seen of it.
    pub recount: TakeRecount,
    /// Leads pods that are asked about through the rules of admission.
    pub admit: AdmitPod,
    /// Which objects make pods.
    pub workloads: Arc<Workloads>,
    /// The settings of the scheduler.
    pub settings: Arc<Settings>,
    /// Reads a pod.
    pub pod: ReadPod,
    /// Lists pods.
    pub pods: ListPods,
    /// Reads what was used.
    pub usage: ReadUsage,
}

/// What was read last, for as long as it serves everybody who asks.
pub(super) struct KeptAnswer<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for KeptAnswer<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> KeptAnswer<T> {
    /// What was read within this time, or what `read` reads now.
    pub(super) async fn within(
        &self,
        period: Duration,
        read: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<Arc<T>, ApiError> {
        let mut kept = self.0.lock().await;
        if let Some((at, value)) = &*kept
            && at.elapsed() < period
        {
            return Ok(value.clone());
        }
        *kept = None;
        let value = Arc::new(read.await?);
        *kept = Some((Instant::now(), value.clone()));
        Ok(value)
    }
}

/// What is seen, or why there is no answer now.
pub(super) fn seen<T>(answer: Result<Option<T>, NoAnswer>) -> Result<T, ApiError> {
    match answer {
        Ok(Some(seen)) => Ok(seen),
        Ok(None) => Err(ApiError::Unavailable("the cluster is still being listed; try again")),
        Err(NoAnswer::NotLeading) => {
            Err(ApiError::Unavailable("this replica does not watch the cluster yet; try again"))
        }
        Err(NoAnswer::Busy) => Err(ApiError::Unavailable("too many requests; try again")),
    }
}

/// The newest overview.
pub(super) struct OverviewCache {
    look: Look,
    newest: Mutex<Option<(Instant, Arc<CountedFleet>)>>,
}

impl OverviewCache {
    pub(super) fn new(look: Look) -> Self {
        Self { look, newest: Mutex::default() }
    }

    /// The cluster as it was a second ago at most.
    pub(super) async fn fleet(&self) -> Result<Arc<CountedFleet>, ApiError> {
        let mut newest = self.newest.lock().await;
        if let Some((at, fleet)) = &*newest
            && at.elapsed() < PERIOD
        {
            return Ok(fleet.clone());
        }
        let overview = seen((self.look)().await)?;
        let before = newest.as_ref().map(|(_, fleet)| fleet.clone());
        let counted = spawn_blocking(move || Arc::new(CountedFleet::of(overview, before.as_deref())));
        let fleet = counted.await.map_err(|error| {
            tracing::error!(%error, "counting what the cluster shows failed");
            ApiError::Unavailable("counting what the cluster shows failed")
        })?;
        *newest = Some((Instant::now(), fleet.clone()));
        Ok(fleet)
    }
}
