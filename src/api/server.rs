//! What the paths answer from: the newest overview, who looks, and room for so many answers at a time.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName};
use serde::Serialize;
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
};

use super::{
    ApiError,
    fleet::CountedFleet,
    pod,
    source::{Look, OverviewCache},
    streams::{StreamPlace, Streams},
    viewer::{Sees, Viewer, Viewers},
};
use crate::webhook::{
    ServerReadiness,
    bearer::{Denial, bearer},
};

/// Has the token where a proxy keeps `Authorization` to itself, as the API server's does.
const TOKEN: HeaderName = HeaderName::from_static("x-berth-token");

/// So many answers are made at a time, whoever asks: decisions need processors too.
const AT_ONCE: usize = 2;

/// So many changes are looked for at a time: each judges all nodes many times.
const CHANGES_AT_ONCE: usize = 1;

/// Reads the object of a pod by namespace and name; `None`: there is no such pod.
pub type ReadPod =
    Arc<dyn Fn(String, String) -> BoxFuture<'static, Result<Option<Value>, Denial>> + Send + Sync>;

/// What the paths answer from.
pub struct Api {
    source: OverviewCache,
    viewers: Viewers,
    read_pod: ReadPod,
    readiness: watch::Receiver<ServerReadiness>,
    /// Versions of another process mean nothing here.
    epoch: String,
    streams: Arc<Streams>,
    room: Semaphore,
    room_for_changes: Semaphore,
}

impl Api {
    /// Answers from what `look` shows and `read_pod` reads, for those whom `viewers` knows, until `readiness` says that the process ends.
    /// `epoch`: what tells this process from others.
    pub fn new(
        (look, read_pod): (Look, ReadPod),
        viewers: Viewers,
        readiness: watch::Receiver<ServerReadiness>,
        epoch: String,
    ) -> Self {
        Self {
            source: OverviewCache::new(look),
            viewers,
            read_pod,
            readiness,
            epoch,
            streams: Arc::default(),
            room: Semaphore::new(AT_ONCE),
            room_for_changes: Semaphore::new(CHANGES_AT_ONCE),
        }
    }

    /// How clients are told a version.
    pub(super) fn version_token(&self, version: u64) -> String {
        format!("{}-{version}", self.epoch)
    }

    /// The version that a client was told; `None`: it is of another process.
    pub(super) fn version(&self, token: &str) -> Option<u64> {
        let (epoch, version) = token.rsplit_once('-')?;
        if epoch == self.epoch { version.parse().ok() } else { None }
    }

    /// The cluster as it was a second ago at most.
    pub(super) async fn fleet(&self) -> Result<Arc<CountedFleet>, ApiError> {
        self.source.fleet().await
    }

    /// The cluster, and who looks at it.
    async fn look(&self, headers: &HeaderMap) -> Result<(Arc<CountedFleet>, Viewer), ApiError> {
        let token = token(headers);
        // Strangers make nobody look.
        let known = (self.viewers)(token.clone(), BTreeSet::new()).await?;
        let fleet = self.fleet().await?;
        let viewer = match known.sees {
            Sees::All => known,
            Sees::Namespaces(_) => (self.viewers)(token, fleet.namespaces.clone()).await?,
        };
        Ok((fleet, viewer))
    }

    /// Lets `page` write about the cluster, beside the tasks that serve reviews.
    pub(super) async fn page(
        self: &Arc<Self>,
        headers: &HeaderMap,
        page: impl FnOnce(&Self, &CountedFleet, &Viewer) -> Result<Vec<u8>, ApiError> + Send + 'static,
    ) -> Result<Vec<u8>, ApiError> {
        let (fleet, viewer) = self.look(headers).await?;
        let _turn = self.room.acquire().await.expect("it is never closed");
        let api = Arc::clone(self);
        beside(move || page(&api, &fleet, &viewer)).await
    }

    /// The smallest change with which a pod that waits would fit.
    pub(super) async fn change(
        &self,
        headers: &HeaderMap,
        (namespace, name): (String, String),
    ) -> Result<Vec<u8>, ApiError> {
        let (fleet, viewer) = self.look(headers).await?;
        viewer.check(&namespace)?;
        // Only the name of a pod that was seen is put into a path.
        pod::check_waits(&fleet, &namespace, &name)?;
        let Ok(_turn) = self.room_for_changes.try_acquire() else {
            return Err(ApiError::Unavailable("Berth is busy with another such request; try again"));
        };
        let object = (self.read_pod)(namespace, name.clone()).await?;
        let Some(object) = object else { return Err(ApiError::NotFound { kind: "pods", name }) };
        beside(move || Ok(json(&pod::change(&fleet, &object)?))).await
    }

    /// Room for a stream, for those whom the API server knows; and what says that the process ends.
    pub(super) async fn stream(
        &self,
        headers: &HeaderMap,
    ) -> Result<(StreamPlace, watch::Receiver<ServerReadiness>), ApiError> {
        let Viewer { user, .. } = (self.viewers)(token(headers), BTreeSet::new()).await?;
        match self.streams.enter(user) {
            Some(place) => Ok((place, self.readiness.clone())),
            None => Err(ApiError::Unavailable("too many streams are open; try again later")),
        }
    }
}

/// Does this beside the tasks that serve reviews.
async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "an answer could not be made");
        ApiError::Unavailable("an internal error ended the answer")
    })?
}

/// A page as it is sent.
pub(super) fn json(page: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(page).expect("a page has string keys only")
}

/// The token of a request.
fn token(headers: &HeaderMap) -> Option<String> {
    let own = || headers.get(TOKEN)?.to_str().ok().map(str::to_owned);
    own().or_else(|| bearer(headers))
}
