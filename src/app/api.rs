//! Who may look at the cluster: the API server authenticates the token, and says in which namespaces its user may list pods.
//!
//! Its answers are kept for a while, as the API server keeps those of webhooks: a page that is open asks every second.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use k8s_openapi::api::{
    authentication::v1::UserInfo,
    authorization::v1::{ResourceAttributes, SubjectAccessReviewSpec},
    core::v1::Pod,
};
use kube::{
    Api as KubeApi, Client,
    api::{ApiResource, DynamicObject},
};
use serde_json::Value;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use super::{
    Options,
    access::{bearer, in_time, may},
    binder::usage as account_of,
    facts::Shared,
};
use crate::{
    api::{
        Api,
        router::PREFIX,
        source::AnswerSources,
        viewer::{Sees, Viewer, Viewers},
    },
    cluster::{
        Handoff, UsageSettings,
        report::{advice::bound_pods, showback::stored_account},
    },
    scheduling::showback::UsageAccount,
    webhook::{ServerReadiness, page::bearer::Denial},
};

/// For so long a yes of the API server is believed.
const KEPT: Duration = Duration::from_mins(1);

/// For so long a no is: somebody who was just given a right should not wait for it.
const REFUSED: Duration = Duration::from_secs(5);

/// So many users are remembered at most.
const MOST_USERS: usize = 1024;

/// So many namespaces of one user are remembered at most; pods in others are not shown by name.
const MOST_NAMESPACES: usize = 4096;

/// So many reviews for all users are under way at a time.
const AT_ONCE: usize = 16;

/// So long namespaces are asked about for one answer: pods in the others are shown by name in the next.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the paths answer from, for the users that the API server knows.
pub(super) fn api(
    options: &Options,
    facts: &Shared,
    handoff: &Handoff,
    readiness: watch::Receiver<ServerReadiness>,
) -> Arc<Api> {
    let known = Arc::new(KnownUsers::new(options.client.clone()));
    let viewers: Viewers = Arc::new(move |token, namespaces| {
        let known = known.clone();
        Box::pin(async move { known.viewer(token, namespaces).await })
    });
    answering((options, facts), handoff, readiness, viewers)
}

/// As [`api`], for whoever asks: she sees every pod.
pub(super) fn open(
    options: &Options,
    facts: &Shared,
    handoff: &Handoff,
    readiness: watch::Receiver<ServerReadiness>,
) -> Arc<Api> {
    let viewers: Viewers = Arc::new(|_, _| {
        let viewer = Viewer { user: "you".to_owned(), sees: Sees::All };
        Box::pin(async move { Ok(viewer) })
    });
    answering((options, facts), handoff, readiness, viewers)
}

fn answering(
    (options, facts): (&Options, &Shared),
    handoff: &Handoff,
    readiness: watch::Receiver<ServerReadiness>,
    viewers: Viewers,
) -> Arc<Api> {
    let [overviews, snapshots, recounts] = [(); 3].map(|()| handoff.overviews().clone());
    let [pod, pods, usage] = [(); 3].map(|()| options.client.clone());
    let (account, clock) = (account_of(&options.leadership, &options.config), options.clock);
    let sources = AnswerSources {
        look: Arc::new(move || {
            let overviews = overviews.clone();
            Box::pin(async move { overviews.overview().await })
        }),
        snapshot: Arc::new(move || {
            let snapshots = snapshots.clone();
            Box::pin(async move { snapshots.snapshot().await })
        }),
        recount: Arc::new(move || {
            let recounts = recounts.clone();
            Box::pin(async move { recounts.recount().await })
        }),
        admit: facts.admit(),
        workloads: Arc::new(options.config.workloads()),
        settings: Arc::new(options.config.scheduler_settings()),
        pod: Arc::new(move |namespace, name| Box::pin(in_time(read_pod(pod.clone(), namespace, name)))),
        pods: Arc::new(move || Box::pin(in_time(list_pods(pods.clone())))),
        usage: Arc::new(move || {
            let (client, account) = (usage.clone(), account.clone());
            Box::pin(in_time(async move { read_usage(&client, account, clock.now()).await }))
        }),
    };
    let epoch = format!("{:x}", RandomState::new().hash_one(()));
    Arc::new(Api::new(sources, viewers, readiness, epoch))
}

/// The object of a pod.
async fn read_pod(client: Client, namespace: String, name: String) -> Result<Option<Value>, Denial> {
    let kind = ApiResource::erase::<Pod>(&());
    let pods: KubeApi<DynamicObject> = KubeApi::namespaced_with(client, &namespace, &kind);
    let pod = pods.get_opt(&name).await.map_err(|error| {
        let error = crate::excerpt::brief(&error);
        tracing::warn!(%error, "a pod could not be read for somebody who looks");
        Denial::Unavailable("the API server did not answer".to_owned())
    })?;
    Ok(pod.map(|pod| serde_json::to_value(pod).expect("an object has string keys only")))
}

/// Every pod that is bound.
async fn list_pods(client: Client) -> Result<Vec<crate::object::Pod>, Denial> {
    bound_pods(&client).await.map_err(|error| {
        tracing::warn!(%error, "pods could not be listed for somebody who asks which to move");
        Denial::Unavailable("the API server did not give the list of pods".to_owned())
    })
}

/// The account of what was used; `None`: there is none, or nothing counts.
async fn read_usage(
    client: &Client,
    account: Option<UsageSettings>,
    now: Timestamp,
) -> Result<Option<UsageAccount>, Denial> {
    let Some(account) = account else { return Ok(None) };
    stored_account(client, &account, now).await.map_err(|error| {
        tracing::warn!(%error, "what was used could not be read for somebody who looks");
        Denial::Unavailable("the account of what was used can't be read".to_owned())
    })
}

/// What is kept of a token instead of it.
type TokenHash = [u64; 2];

/// The users who have looked lately.
struct KnownUsers {
    client: Client,
    users: Mutex<HashMap<TokenHash, KnownUser>>,
    hashers: [RandomState; 2],
    room: Arc<Semaphore>,
}

/// A user, and what she may.
#[derive(Clone, Debug)]
struct KnownUser {
    since: Instant,
    info: UserInfo,
    /// Whether she may list the pods of all namespaces.
    everywhere: ListPermission,
    namespaces: HashMap<Arc<str>, ListPermission>,
}

/// An answer of the API server.
#[derive(Clone, Copy, Debug)]
struct ListPermission {
    at: Instant,
    granted: bool,
}

impl ListPermission {
    fn now(granted: bool) -> Self {
        Self { at: Instant::now(), granted }
    }

    /// Whether it is still believed.
    fn holds(&self) -> bool {
        self.at.elapsed() < if self.granted { KEPT } else { REFUSED }
    }
}

impl KnownUser {
    fn holds(&self) -> bool {
        self.since.elapsed() < KEPT && self.everywhere.holds()
    }
}

impl KnownUsers {
    fn new(client: Client) -> Self {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let hashers = [RandomState::new(), RandomState::new()];
        Self { client, users: Mutex::default(), hashers, room }
    }

    /// Who bears the token, and in which of the namespaces she may list pods.
    async fn viewer(&self, token: Option<String>, namespaces: BTreeSet<Arc<str>>) -> Result<Viewer, Denial> {
        let token = token.ok_or(Denial::Unknown)?;
        let key = self.hashers.each_ref().map(|hasher| hasher.hash_one(&token));
        let user = match self.user(key) {
            Some(user) => user,
            None => self.introduce(key, token).await?,
        };
        let name = user.info.username.clone().unwrap_or_default();
        if user.everywhere.granted {
            return Ok(Viewer { user: name, sees: Sees::All });
        }
        let fresh = |namespace: &Arc<str>| {
            user.namespaces.get(namespace).filter(|known| known.holds()).map(|known| known.granted)
        };
        let asked = namespaces.iter().filter(|namespace| fresh(namespace).is_none()).cloned().collect();
        let answers = self.ask(&user.info, asked).await;
        self.remember(key, &answers);
        let answers: HashMap<_, _> = answers.into_iter().collect();
        let sees = namespaces.into_iter().filter(|namespace| {
            fresh(namespace).or_else(|| answers.get(namespace).copied()).unwrap_or_default()
        });
        Ok(Viewer { user: name, sees: Sees::Namespaces(sees.collect()) })
    }

    fn user(&self, key: TokenHash) -> Option<KnownUser> {
        let users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.get(&key).filter(|user| user.holds()).cloned()
    }

    /// Has the API server say whose token it is.
    async fn introduce(&self, key: TokenHash, token: String) -> Result<KnownUser, Denial> {
        let _turn = self.room.acquire().await.expect("it is never closed");
        let (client, since) = (self.client.clone(), Instant::now());
        let user = in_time(async move {
            let info = bearer(client.clone(), token, PREFIX).await?;
            let everywhere = may_list(client, &info, None).await?;
            Ok(KnownUser {
                since,
                info,
                everywhere: ListPermission::now(everywhere),
                namespaces: HashMap::new(),
            })
        });
        let mut user = user.await?;
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, user| user.since.elapsed() < KEPT);
        if let Some(known) = users.remove(&key) {
            user.namespaces = known.namespaces;
        }
        if users.len() < MOST_USERS {
            users.insert(key, user.clone());
        }
        Ok(user)
    }

    /// Whether the user may list the pods of each of these namespaces, as far as that is answered in time.
    async fn ask(&self, user: &UserInfo, namespaces: Vec<Arc<str>>) -> Vec<(Arc<str>, bool)> {
        let until = Instant::now() + PATIENCE;
        let answers = stream::iter(namespaces.into_iter().take(MOST_NAMESPACES)).map(async |namespace| {
            let _turn = self.room.acquire().await.expect("it is never closed");
            let may = may_list(self.client.clone(), user, Some(&namespace)).await;
            may.ok().map(|may| (namespace, may))
        });
        let mut answers = std::pin::pin!(answers.buffer_unordered(AT_ONCE));
        let mut known = Vec::new();
        while let Ok(Some(answer)) = tokio::time::timeout_at(until, answers.next()).await {
            known.extend(answer);
        }
        known
    }

    fn remember(&self, key: TokenHash, answers: &[(Arc<str>, bool)]) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(user) = users.get_mut(&key) else { return };
        user.namespaces.retain(|_, known| known.holds());
        let room = MOST_NAMESPACES.saturating_sub(user.namespaces.len());
        let answers = answers.iter().take(room);
        let answers = answers.map(|(namespace, may)| (namespace.clone(), ListPermission::now(*may)));
        user.namespaces.extend(answers);
    }
}

/// Whether the user may list the pods of the namespace, or of all.
async fn may_list(client: Client, user: &UserInfo, namespace: Option<&str>) -> Result<bool, Denial> {
    let pods = ResourceAttributes {
        namespace: namespace.map(str::to_owned),
        verb: Some("list".to_owned()),
        version: Some("v1".to_owned()),
        resource: Some("pods".to_owned()),
        ..ResourceAttributes::default()
    };
    let asked = |spec| SubjectAccessReviewSpec { resource_attributes: Some(pods), ..spec };
    may(client, user.clone(), PREFIX, asked).await
}
