//! The newest overview, counted: asked for at most once a second, however many look.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::{sync::Mutex, task::spawn_blocking, time::Instant};

use super::{ApiError, fleet::CountedFleet};
use crate::cluster::{overview::Overview, questions::NoAnswer};

/// For so long one overview serves everybody who asks.
pub(super) const PERIOD: Duration = Duration::from_secs(1);

/// Asks for an overview; `None` until everything is listed.
pub type Look = Arc<dyn Fn() -> BoxFuture<'static, Result<Option<Overview>, NoAnswer>> + Send + Sync>;

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
        let overview = match (self.look)().await {
            Ok(Some(overview)) => overview,
            Ok(None) => return Err(ApiError::Unavailable("the cluster is still being listed; try again")),
            Err(NoAnswer::NotLeading) => {
                return Err(ApiError::Unavailable("this replica does not watch the cluster yet; try again"));
            }
            Err(NoAnswer::Busy) => return Err(ApiError::Unavailable("too many requests; try again")),
        };
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
