//! What the paths answer from: the newest overview, who looks, and room for so many answers at a time.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http::{HeaderMap, HeaderName};
use serde::Serialize;
use tokio::{
    sync::{Semaphore, watch},
    task::spawn_blocking,
};

use super::{
    ApiError,
    fleet::CountedFleet,
    moves::{AnsweredMoves, MovesQuestion},
    pod,
    source::{AnswerSources, KeptAnswer, OverviewCache, seen},
    streams::{StreamPlace, Streams},
    usage::{self, Grouping},
    viewer::{Sees, Viewer, Viewers},
    what_if::{CheckedQuestion, WhatIfWorld},
};
use crate::{
    cluster::report::overview::{Overview, Recount},
    object::Workloads,
    scheduling::{plan::moves::MovablePods, showback::UsageAccount},
    webhook::{ServerReadiness, page::bearer::bearer},
};

/// Has the token where a proxy keeps `Authorization` to itself, as the API server's does.
const TOKEN: HeaderName = HeaderName::from_static("x-berth-token");

/// So many answers are made at a time, whoever asks: decisions need processors too.
const AT_ONCE: usize = 2;

/// So many changes are looked for at a time: each judges all nodes many times.
const CHANGES_AT_ONCE: usize = 1;

/// So many plans are made at a time: each takes a second of a processor on a large cluster.
const PLANS_AT_ONCE: usize = 1;

/// So many simulations are under way at a time: each decides all pods that wait.
const SIMULATIONS_AT_ONCE: usize = 1;

/// For so long a list of pods serves everybody who asks for moves.
const PODS_KEPT: Duration = Duration::from_secs(10);

/// For so long the account of what was used serves everybody; it is written once a minute.
const USAGE_KEPT: Duration = Duration::from_secs(10);

/// What the paths answer from.
pub struct Api {
    source: OverviewCache,
    sources: AnswerSources,
    viewers: Viewers,
    movable: KeptAnswer<MovablePods>,
    usage: KeptAnswer<Option<UsageAccount>>,
    readiness: watch::Receiver<ServerReadiness>,
    /// Versions of another process mean nothing here.
    epoch: String,
    streams: Arc<Streams>,
    room: Semaphore,
    room_for_changes: Semaphore,
    room_for_plans: Semaphore,
    room_for_simulations: Semaphore,
}

impl Api {
    /// Answers from these sources, for those whom `viewers` knows, until `readiness` says that the process ends.
    /// `epoch`: what tells this process from others.
    pub fn new(
        sources: AnswerSources,
        viewers: Viewers,
        readiness: watch::Receiver<ServerReadiness>,
        epoch: String,
    ) -> Self {
        Self {
            source: OverviewCache::new(sources.look.clone()),
            sources,
            viewers,
            movable: KeptAnswer::default(),
            usage: KeptAnswer::default(),
            readiness,
            epoch,
            streams: Arc::default(),
            room: Semaphore::new(AT_ONCE),
            room_for_changes: Semaphore::new(CHANGES_AT_ONCE),
            room_for_plans: Semaphore::new(PLANS_AT_ONCE),
            room_for_simulations: Semaphore::new(SIMULATIONS_AT_ONCE),
        }
    }

    /// How clients are told a version.
    pub(super) fn version_token(&self, version: u64) -> String {
        format!("{}-{version}", self.epoch)
    }

    /// How a viewer is told a version: what she is shown depends on what she may see too.
    pub(super) fn seen_token(&self, version: u64, viewer: &Viewer) -> String {
        format!("{}-{:x}", self.version_token(version), viewer.rights())
    }

    /// The version that a client was told; `None`: it is of another process, or was told to a viewer who could see other pods.
    pub(super) fn version(&self, token: &str, viewer: &Viewer) -> Option<u64> {
        let version = token.strip_prefix(&*self.epoch)?.strip_prefix('-')?;
        let (version, rights) =
            version.split_once('-').map_or((version, None), |(version, rights)| (version, Some(rights)));
        let is_same = rights.is_none_or(|rights| *rights == format!("{:x}", viewer.rights()));
        version.parse().ok().filter(|_| is_same)
    }

    /// The cluster as it was a second ago at most.
    pub(super) async fn fleet(&self) -> Result<Arc<CountedFleet>, ApiError> {
        self.source.fleet().await
    }

    /// An error unless the API server knows who asks.
    pub(super) async fn know(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        (self.viewers)(token(headers), BTreeSet::new()).await?;
        Ok(())
    }

    /// The cluster, and who looks at it.
    async fn look(&self, headers: &HeaderMap) -> Result<(Arc<CountedFleet>, Viewer), ApiError> {
        self.look_at(headers, BTreeSet::new()).await
    }

    /// As [`Self::look`], at these namespaces too, whether there is a pod in them or not.
    async fn look_at(
        &self,
        headers: &HeaderMap,
        mut namespaces: BTreeSet<Arc<str>>,
    ) -> Result<(Arc<CountedFleet>, Viewer), ApiError> {
        let token = token(headers);
        // Strangers make nobody look.
        let known = (self.viewers)(token.clone(), BTreeSet::new()).await?;
        let fleet = self.fleet().await?;
        let viewer = match known.sees {
            Sees::All => known,
            Sees::Namespaces(_) => {
                namespaces.extend(fleet.namespaces.iter().cloned());
                (self.viewers)(token, namespaces).await?
            }
        };
        Ok((fleet, viewer))
    }

    /// Lets `page` write about the cluster, beside the tasks that serve reviews.
    pub(super) async fn page(
        self: &Arc<Self>,
        headers: &HeaderMap,
        page: impl FnOnce(&Self, &CountedFleet, &Viewer) -> Result<Vec<u8>, ApiError> + Send + 'static,
    ) -> Result<Vec<u8>, ApiError> {
        self.page_of(headers, None, page).await
    }

    /// As [`Self::page`], about this namespace, where one is named: who may see its pods may do so while there are none.
    pub(super) async fn page_of(
        self: &Arc<Self>,
        headers: &HeaderMap,
        namespace: Option<&str>,
        page: impl FnOnce(&Self, &CountedFleet, &Viewer) -> Result<Vec<u8>, ApiError> + Send + 'static,
    ) -> Result<Vec<u8>, ApiError> {
        let (fleet, viewer) = self.look_at(headers, namespace.into_iter().map(Arc::from).collect()).await?;
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
        let (fleet, viewer) = self.look_at(headers, [Arc::from(&*namespace)].into()).await?;
        viewer.check(&namespace)?;
        // Only the name of a pod that was seen is put into a path.
        pod::check_waits(&fleet, &namespace, &name)?;
        let Ok(_turn) = self.room_for_changes.try_acquire() else {
            return Err(ApiError::Unavailable("Berth is busy with another such request; try again"));
        };
        let object = (self.sources.pod)(namespace, name.clone()).await?;
        let Some(object) = object else { return Err(ApiError::NotFound { kind: "pods", name }) };
        beside(move || Ok(json(&pod::change(&fleet, &object)?))).await
    }

    /// The moves of pods that answer a question best.
    pub(super) async fn moves(
        &self,
        headers: &HeaderMap,
        question: MovesQuestion,
    ) -> Result<Vec<u8>, ApiError> {
        let (fleet, viewer) = self.look(headers).await?;
        let Ok(_turn) = self.room_for_plans.try_acquire() else {
            return Err(ApiError::Unavailable("Berth is busy with another such request; try again"));
        };
        let reader = fleet.overview.view.reader.clone();
        if let Some(node) = &question.node
            && fleet.overview.view.outlook.world().node(node).is_none()
        {
            return Err(ApiError::NotFound { kind: "nodes", name: node.clone() });
        }
        let read = async {
            let (pods, reader) = ((self.sources.pods)().await?, reader.clone());
            beside(move || Ok(reader.movable_pods(&pods))).await
        };
        let pods = self.movable.within(PODS_KEPT, read).await?;
        let mut snapshot = seen((self.sources.snapshot)().await)?;
        beside(move || {
            let weights = fleet.overview.view.outlook.weights();
            let answer = AnsweredMoves::of(&question, &mut snapshot, &pods, (&reader, weights));
            Ok(json(&answer.report(|namespace| viewer.sees(namespace))))
        })
        .await
    }

    /// Where pods would go.
    pub(super) async fn what_if(
        &self,
        headers: &HeaderMap,
        question: CheckedQuestion,
    ) -> Result<Vec<u8>, ApiError> {
        let (fleet, viewer) = self.look_at(headers, question.namespaces()).await?;
        question.check(&viewer)?;
        let Ok(_turn) = self.room_for_simulations.try_acquire() else {
            return Err(ApiError::Unavailable("Berth is busy with another such request; try again"));
        };
        let events = match seen((self.sources.recount)().await)? {
            Recount::Events(events) => events,
            Recount::TooManyPods(_) => {
                let why =
                    "the cluster has too many pods for this question; run `berth what-if` on its objects";
                return Err(ApiError::Unavailable(why));
            }
        };
        let AnswerSources { admit, settings, .. } = self.sources.clone();
        beside(move || {
            let Overview { view, at, details, .. } = &fleet.overview;
            let world = WhatIfWorld {
                reader: &view.reader,
                admit: &admit,
                settings: &settings,
                weights: view.outlook.weights(),
                details: *details,
                now: *at,
            };
            Ok(json(&question.answer(events, &world, &viewer)?))
        })
        .await
    }

    /// What makes pods.
    pub(super) fn workloads(&self) -> &Workloads {
        &self.sources.workloads
    }

    /// How much was used, as far as that is stored.
    pub(super) async fn usage(&self, headers: &HeaderMap, by: &Grouping) -> Result<Vec<u8>, ApiError> {
        let token = token(headers);
        let known = (self.viewers)(token.clone(), BTreeSet::new()).await?;
        let read = async { Ok((self.sources.usage)().await?) };
        let account = self.usage.within(USAGE_KEPT, read).await?;
        let Some(account) = &*account else {
            return Err(ApiError::NotFound { kind: "configmaps", name: "berth-usage".to_owned() });
        };
        let viewer = match known.sees {
            Sees::All => known,
            Sees::Namespaces(_) => (self.viewers)(token, usage::namespaces(account)).await?,
        };
        Ok(json(&usage::page(account, by, &viewer)?))
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

#[cfg(test)]
mod tests {
    use futures::future::pending;

    use super::*;
    use crate::{
        api::what_if::WhatIfQuestion,
        cluster::{Reader, binder::view::BinderView, report::overview::Leading},
        dialect::Dialects,
        scheduling::{Details, Scheduler, fixtures, world::ledger::Charges},
        simulation::Entered,
    };

    fn viewer(sees: Sees) -> Viewer {
        Viewer { user: "ada".to_owned(), sees }
    }

    /// An empty cluster, for somebody who sees all of it; lists of pods never end.
    fn api() -> Api {
        let look = || {
            let scheduler = Scheduler::new(fixtures::settings());
            let reader = Arc::new(Reader::new(Dialects::default(), "berth".to_owned()));
            let overview = Overview {
                at: jiff::Timestamp::UNIX_EPOCH,
                leading: Leading::Yes,
                details: Details::Full,
                view: BinderView { reader, outlook: scheduler.view().outlook() },
                holders: Charges::default(),
                pending: Vec::new(),
            };
            Ok(Some(overview))
        };
        let sources = AnswerSources {
            look: Arc::new(move || Box::pin(async move { look() })),
            snapshot: Arc::new(|| Box::pin(pending())),
            recount: Arc::new(|| Box::pin(pending())),
            admit: Arc::new(|_, _, _| Ok(Entered::Ignored(Vec::new()))),
            workloads: Arc::default(),
            settings: Arc::new(fixtures::settings()),
            pod: Arc::new(|_, _| Box::pin(pending())),
            pods: Arc::new(|| Box::pin(pending())),
            usage: Arc::new(|| Box::pin(async { Ok(None) })),
        };
        let viewers: Viewers = Arc::new(|_, _| Box::pin(async { Ok(viewer(Sees::All)) }));
        let (_, readiness) = watch::channel(ServerReadiness::Ready);
        Api::new(sources, viewers, readiness, "e".to_owned())
    }

    #[tokio::test]
    async fn moves_are_planned_for_one_request_at_a_time() {
        let (api, headers) = (api(), HeaderMap::new());
        let first = api.moves(&headers, MovesQuestion::default());
        // Whichever of them comes second is refused.
        let second = api.moves(&headers, MovesQuestion::default());
        let refused = tokio::select! {
            refused = first => refused.unwrap_err(),
            refused = second => refused.unwrap_err(),
        };
        let busy = ApiError::Unavailable("Berth is busy with another such request; try again");
        assert_eq!(refused, busy);
        let none = MovesQuestion { node: Some("none".to_owned()), ..MovesQuestion::default() };
        let unknown = api.moves(&headers, none).await.unwrap_err();
        assert_eq!(unknown.to_string(), "nodes \"none\" not found");
    }

    fn question() -> CheckedQuestion {
        let pod =
            r#"{"kind": "Pod", "metadata": {"name": "a", "namespace": "team"}, "spec": {"containers": []}}"#;
        WhatIfQuestion::read(format!(r#"{{"pods": [{pod}]}}"#).as_bytes(), &Workloads::default()).unwrap()
    }

    #[tokio::test]
    async fn what_would_be_is_found_out_for_one_request_at_a_time() {
        let (api, headers) = (api(), HeaderMap::new());
        let first = api.what_if(&headers, question());
        let second = api.what_if(&headers, question());
        let refused = tokio::select! {
            refused = first => refused.unwrap_err(),
            refused = second => refused.unwrap_err(),
        };
        let busy = ApiError::Unavailable("Berth is busy with another such request; try again");
        assert_eq!(refused, busy);
    }

    #[tokio::test]
    async fn so_many_pods_are_not_copied_for_a_question() {
        let mut api = api();
        api.sources.recount = Arc::new(|| Box::pin(async { Ok(Some(Recount::TooManyPods(1_000_000))) }));
        let refused = api.what_if(&HeaderMap::new(), question()).await.unwrap_err();
        assert!(refused.to_string().starts_with("the cluster has too many pods"), "{refused}");
        api.sources.recount = Arc::new(|| Box::pin(async { Ok(None) }));
        let early = api.what_if(&HeaderMap::new(), question()).await.unwrap_err();
        assert_eq!(early.to_string(), "the cluster is still being listed; try again");
    }

    #[tokio::test]
    async fn where_nothing_counts_there_is_no_usage() {
        let none = api().usage(&HeaderMap::new(), &Grouping::Namespace).await.unwrap_err();
        assert_eq!(none.to_string(), "configmaps \"berth-usage\" not found");
    }

    #[tokio::test]
    async fn a_version_is_known_to_the_process_and_the_rights_for_which_it_was_told() {
        let (api, all, some) = (api(), viewer(Sees::All), viewer(Sees::Namespaces(["a".into()].into())));
        let told = api.seen_token(7, &some);
        assert_eq!(api.version(&told, &some), Some(7));
        assert_eq!(api.version(&told, &all), None, "she may see more now");
        assert_eq!(api.version("e-7", &all), Some(7), "the stream tells versions to everybody");
        for other in ["f-7", "e7", "", "e-", "e-x"] {
            assert_eq!(api.version(other, &all), None, "{other}");
        }
    }
}
