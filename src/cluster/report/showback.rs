//! The account of what was used, kept in a ConfigMap, so that restarts and hand-overs neither lose nor repeat anything.
//!
//! The leader alone counts. It begins with the account that is stored, which says until when it has counted, and each write replaces the version
//! that was read. After a write that was refused, lost or in doubt, the account is read again, and what is not in it is counted again.

mod seen;
mod stored;

use std::time::Duration;

use http::{Request, header::CONTENT_TYPE};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::json;
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    task::{JoinSet, block_in_place},
    time::{Instant, sleep_until, timeout},
};

use super::metrics::{Metrics, Written};
use crate::{
    cluster::{
        binder::{Binder, UsageSettings},
        clock::Clock,
        write::{
            fence::Fence,
            send::{self, CLIENT_TIMEOUT, SERVER_TIMEOUT, SendError},
        },
    },
    dialect::Dialects,
    object::ConfigMap,
    scheduling::{Scheduler, showback::UsageAccount, world::ledger::EndedCharges},
};
use seen::SeenCluster;
pub use seen::{parts, values};
use stored::NoAccount;

/// The time between two writes.
pub const PERIOD: Duration = Duration::from_mins(1);

/// How long after a failure it is tried again.
const PAUSE: Duration = Duration::from_secs(15);

/// Where nothing is held and nothing is stranded, the account is written only so often.
const QUIET: SignedDuration = SignedDuration::from_mins(10);

/// By so much clocks of replicas may differ.
const SKEW: SignedDuration = SignedDuration::from_mins(10);

/// Why the account is not stored as it should be.
#[derive(Debug, thiserror::Error)]
enum AccountFailure {
    #[error("it can't be read: {0}")]
    Read(SendError),
    #[error("it is left as it is, and nothing is counted until it is repaired or deleted: {0}")]
    NoAccount(#[from] NoAccount),
    #[error("it can't be written: {0}")]
    Write(SendError),
    #[error("the claim to lead became too short on the way")]
    Cut,
}

/// The account as it is stored.
#[derive(Clone, Debug)]
struct StoredAccount {
    account: UsageAccount,
    /// The version of its ConfigMap; `None`: there is none yet.
    version: Option<String>,
}

/// Reads and writes the account of one term.
#[derive(Clone)]
struct AccountStore {
    client: Client,
    settings: UsageSettings,
    fence: Fence,
    metrics: Metrics,
}

/// Counts what is used during one term.
pub(in crate::cluster) struct Showback {
    store: AccountStore,
    dialects: Dialects,
    clock: Clock,
    /// `None`: it is to be read.
    stored: Option<StoredAccount>,
    /// What pods have held that is not in the stored account yet.
    ended: EndedCharges,
    next: Instant,
    work: JoinSet<Result<StoredAccount, AccountFailure>>,
    /// The failure that was logged.
    failing: Option<String>,
}

impl Showback {
    /// Counts as the settings of the binder say, beginning with what was seen to end before the term; `None`: nothing is counted.
    pub(in crate::cluster) fn new(binder: &Binder, fence: &Fence, ended: EndedCharges) -> Option<Self> {
        let store = AccountStore {
            client: binder.client.clone(),
            settings: binder.usage.clone()?,
            fence: fence.clone(),
            metrics: binder.metrics.clone(),
        };
        Some(Self {
            store,
            dialects: binder.reader.dialects().clone(),
            clock: binder.clock,
            stored: None,
            ended,
            next: Instant::now(),
            work: JoinSet::new(),
            failing: None,
        })
    }

    /// Takes in what pods held that have ended.
    pub(in crate::cluster) fn note(&mut self, ended: EndedCharges) {
        self.ended.extend(ended);
    }

    /// Waits until it is time to count, or until that is done, and takes it in; cancelling the call loses nothing.
    pub(in crate::cluster) async fn go_on(&mut self, scheduler: &Scheduler) {
        let due = scheduler.view().is_synced() && self.work.is_empty();
        tokio::select! {
            // In the same order each time, so that a simulation can be repeated.
            biased;
            Some(done) = self.work.join_next() => match done {
                Ok(done) => self.take(done),
                Err(died) => {
                    tracing::error!(error = %died, "the task that counts what is used has ended");
                    (self.stored, self.next) = (None, Instant::now() + PERIOD);
                }
            },
            () = sleep_until(self.next), if due => self.count(scheduler),
            else => std::future::pending().await,
        }
    }

    /// Counts for the last time in this term, as far as that is done soon.
    pub(in crate::cluster) async fn finish(&mut self, scheduler: &Scheduler) {
        let last = async {
            while !self.work.is_empty() {
                self.go_on(scheduler).await;
            }
            if scheduler.view().is_synced() {
                self.count(scheduler);
            }
            while !self.work.is_empty() {
                self.go_on(scheduler).await;
            }
        };
        if timeout(CLIENT_TIMEOUT, last).await.is_err() {
            tracing::warn!("what was used last could not be stored in time; the next leader counts it");
        }
    }

    fn count(&mut self, scheduler: &Scheduler) {
        let now = self.clock.now();
        self.next = Instant::now() + PERIOD;
        let seen = SeenCluster::of(scheduler, &self.dialects, &self.ended, now);
        let (store, stored) = (self.store.clone(), self.stored.take());
        self.work.spawn(async move { store.count(stored, &seen, now).await });
    }

    fn take(&mut self, done: Result<StoredAccount, AccountFailure>) {
        match done {
            Ok(stored) => {
                self.ended.forget(stored.account.counted_until);
                self.stored = Some(stored);
                if self.failing.take().is_some() {
                    tracing::info!("what is used is stored again");
                }
            }
            Err(failure) => {
                self.next = self.next.min(Instant::now() + PAUSE);
                let UsageSettings { namespace, name, .. } = &self.store.settings;
                let said = failure.to_string();
                // Another leader has written meanwhile, or the answer was lost: the next read tells.
                let is_usual = matches!(&failure, AccountFailure::Cut)
                    || matches!(&failure, AccountFailure::Write(error) if !error.is_refusal());
                if is_usual {
                    tracing::debug!(config_map = %format!("{namespace}/{name}"), said, "the account of what is used is read again");
                } else if self.failing.as_ref() != Some(&said) {
                    tracing::warn!(config_map = %format!("{namespace}/{name}"), "the account of what is used: {said}");
                    self.failing = Some(said);
                }
            }
        }
    }
}

/// Counting a large cluster takes a while: where there are threads for them, other tasks go on meanwhile.
fn beside_others<T>(count: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => block_in_place(count),
        _ => count(),
    }
}

impl AccountStore {
    /// Counts up to this time from the account that is stored, and stores that.
    async fn count(
        &self,
        stored: Option<StoredAccount>,
        seen: &SeenCluster,
        now: Timestamp,
    ) -> Result<StoredAccount, AccountFailure> {
        let is_first = stored.is_none();
        let stored = match stored {
            Some(stored) => stored,
            None => self.read(now).await?,
        };
        if is_first {
            self.metrics.usage().begin(&stored.account);
        }
        let account = beside_others(|| {
            let (spans, stranded) = seen.counted(&self.settings.labels);
            stored.account.advance(now, spans, &stranded)
        });
        let is_quiet = account.has_same_sums(&stored.account)
            && now.duration_since(stored.account.counted_until) < QUIET;
        if stored.version.is_some() && is_quiet {
            return Ok(stored);
        }
        let stored = self.write(account, stored.version).await?;
        self.metrics.usage().count(&stored.account);
        Ok(stored)
    }

    /// The account that is stored; where there is none, one begins.
    async fn read(&self, now: Timestamp) -> Result<StoredAccount, AccountFailure> {
        let Some(mut stored) = read(&self.client, &self.settings, now).await? else {
            return Ok(StoredAccount { account: UsageAccount::begin(now), version: None });
        };
        stored.account.keep_labels(&self.settings.labels);
        Ok(stored)
    }

    /// Stores the account in the place of this version of it.
    async fn write(
        &self,
        account: UsageAccount,
        version: Option<String>,
    ) -> Result<StoredAccount, AccountFailure> {
        let written = self.put(&account, version.as_deref()).await;
        let object = match written {
            // Somebody has deleted it: what was counted stands.
            Err(AccountFailure::Write(error)) if version.is_some() && error.code() == Some(404) => {
                self.put(&account, None).await?
            }
            written => written?,
        };
        Ok(StoredAccount { account, version: Some(object.metadata.resource_version) })
    }

    async fn put(&self, account: &UsageAccount, version: Option<&str>) -> Result<ConfigMap, AccountFailure> {
        let UsageSettings { namespace, name, .. } = &self.settings;
        let mut metadata =
            json!({"name": name, "namespace": namespace, "labels": {"app.kubernetes.io/name": "berth"}});
        let query = format!("timeout={}s", SERVER_TIMEOUT.as_secs());
        let request = match version {
            Some(version) => {
                metadata["resourceVersion"] = json!(version);
                Request::put(format!("{}?{query}", self.path()))
            }
            None => Request::post(format!("/api/v1/namespaces/{namespace}/configmaps?{query}")),
        };
        let body = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {stored::KEY: stored::write(account)},
        });
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string().into_bytes())
            .expect("names of Kubernetes objects are valid in a path");
        self.metrics.write(Written::usage);
        let written = send::send::<ConfigMap>(self.client.clone(), request, CLIENT_TIMEOUT);
        match self.fence.within(send::REACH, written).await {
            Some(written) => written.map_err(AccountFailure::Write),
            None => Err(AccountFailure::Cut),
        }
    }

    fn path(&self) -> String {
        path(&self.settings)
    }
}

fn path(UsageSettings { namespace, name, .. }: &UsageSettings) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps/{name}")
}

/// The account that is stored; `None`: there is none.
async fn read(
    client: &Client,
    settings: &UsageSettings,
    now: Timestamp,
) -> Result<Option<StoredAccount>, AccountFailure> {
    let request = Request::get(path(settings)).body(Vec::new());
    let request = request.expect("names of Kubernetes objects are valid in a path");
    let object = match send::send::<ConfigMap>(client.clone(), request, CLIENT_TIMEOUT).await {
        Ok(found) => found,
        Err(error) if error.code() == Some(404) => return Ok(None),
        Err(error) => return Err(AccountFailure::Read(error)),
    };
    let text = object.data.get(stored::KEY).map(String::as_str);
    let account = stored::read(text, now.saturating_add(SKEW).unwrap_or(now))?;
    Ok(Some(StoredAccount { account, version: Some(object.metadata.resource_version) }))
}

/// Why the account of what was used can't be told.
#[derive(Debug, thiserror::Error)]
#[error("the account of what was used: {0}")]
pub struct UnreadAccount(String);

/// The account that a leader has stored, for whoever asks; `None`: there is none.
pub async fn stored_account(
    client: &Client,
    settings: &UsageSettings,
    now: Timestamp,
) -> Result<Option<UsageAccount>, UnreadAccount> {
    let stored = read(client, settings, now).await.map_err(|failure| UnreadAccount(failure.to_string()))?;
    Ok(stored.map(|stored| stored.account))
}
