//! What is used of ResourceQuotas, written where their owners read it: the annotation `berth.dev/used` of each.
//!
//! The API server counts nothing under the keys of shares, so the status of a ResourceQuota shows 0. Nothing is decided by what is written
//! here, and nothing reads it back: a write that fails is repeated at the next look.

use std::{collections::BTreeMap, time::Duration};

use http::{Method, Request, header::CONTENT_TYPE};
use kube::Client;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::send::{CLIENT_TIMEOUT, SendError, send};
use crate::{
    dialect::marks,
    scheduling::{Scheduler, world::quota::QuotaKey},
};

/// The shortest time between two writes to one quota.
const PERIOD: Duration = Duration::from_secs(5);
/// After this time every quota is written again although nothing has changed: somebody may have removed the annotation.
const REPEATED: Duration = Duration::from_mins(10);

/// What was written to a quota, and what came of it.
type Answered = (QuotaKey, String, Result<(), SendError>);

/// Writes what is used of quotas during one term.
pub(in crate::cluster) struct QuotaUse {
    client: Client,
    /// What was written to each quota, or was refused.
    written: BTreeMap<QuotaKey, String>,
    /// The version of the quotas that was looked at last.
    version: Option<u64>,
    /// No look before this.
    next: Instant,
    /// Everything is written anew after this.
    repeat: Instant,
    writing: JoinSet<Vec<Answered>>,
}

impl QuotaUse {
    pub(in crate::cluster) fn new(client: Client) -> Self {
        Self {
            client,
            written: BTreeMap::new(),
            version: None,
            next: Instant::now(),
            repeat: Instant::now() + REPEATED,
            writing: JoinSet::new(),
        }
    }

    /// When there is something to write; `None`: nothing has changed, or a write is under way.
    fn due(&self, scheduler: &Scheduler) -> Option<Instant> {
        let quotas = scheduler.snapshot().quotas();
        if !scheduler.view().is_synced() || !self.writing.is_empty() || quotas.standings().next().is_none() {
            return None;
        }
        let differs = self.version != Some(quotas.version());
        Some(if differs { self.next } else { self.repeat.max(self.next) })
    }

    /// Writes to each quota whose use is another than was written.
    fn write(&mut self, scheduler: &Scheduler) {
        let now = Instant::now();
        self.next = now + PERIOD;
        self.version = Some(scheduler.snapshot().quotas().version());
        let texts = texts(scheduler);
        if self.repeat <= now {
            self.repeat = now + REPEATED;
            self.written.clear();
        }
        self.written.retain(|key, _| texts.contains_key(key));
        let is_new = |(key, text): &(QuotaKey, String)| self.written.get(key) != Some(text);
        let due: Vec<_> = texts.into_iter().filter(is_new).collect();
        if due.is_empty() {
            return;
        }
        let client = self.client.clone();
        self.writing.spawn(async move {
            let mut answers = Vec::new();
            for (key, text) in due {
                let answer = patch(client.clone(), &key, &text).await;
                answers.push((key, text, answer));
            }
            answers
        });
    }

    /// Waits until there is something to write, or until writes are answered, and takes that in; cancelling the call loses nothing.
    pub(in crate::cluster) async fn go_on(&mut self, scheduler: &Scheduler) {
        let due = self.due(scheduler);
        tokio::select! {
            // In the same order each time, so that a simulation can be repeated.
            biased;
            Some(answered) = self.writing.join_next() => match answered {
                Ok(answers) => self.take(answers),
                Err(died) => {
                    tracing::error!(error = %died, "the task that writes what is used of quotas has ended");
                    self.version = None;
                }
            },
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.write(scheduler),
            else => std::future::pending().await,
        }
    }

    fn take(&mut self, answers: Vec<Answered>) {
        for (key, text, answer) in answers {
            let QuotaKey { namespace, name } = &key;
            let called = format!("{namespace}/{name}");
            match answer {
                Ok(()) => {}
                // It is gone, and its watch says so soon.
                Err(error) if error.code() == Some(404) => continue,
                Err(error) if error.is_refusal() => {
                    tracing::warn!(
                        resource_quota = %called, %error, again_in = ?REPEATED,
                        "what is used of the quota can't be written to its annotation {}", marks::USED
                    );
                    if matches!(error.code(), Some(401 | 403)) {
                        // The role lacks the right, for all of them.
                        self.next = Instant::now() + REPEATED;
                        self.version = None;
                        return;
                    }
                }
                Err(error) => {
                    tracing::debug!(resource_quota = %called, %error, "what is used of the quota is written again");
                    self.version = None;
                    continue;
                }
            }
            self.written.insert(key, text);
        }
    }
}

/// For each quota what is used by key, as `status.used` would have it.
fn texts(scheduler: &Scheduler) -> BTreeMap<QuotaKey, String> {
    let mut used: BTreeMap<QuotaKey, BTreeMap<&str, String>> = BTreeMap::new();
    for standing in scheduler.snapshot().quotas().standings() {
        let key = QuotaKey { namespace: standing.namespace.into(), name: standing.quota.into() };
        used.entry(key).or_default().insert(standing.key, standing.used.to_string());
    }
    let text = |used: &BTreeMap<&str, String>| serde_json::to_string(used).expect("its keys are strings");
    used.iter().map(|(key, used)| (key.clone(), text(used))).collect()
}

/// Writes through the status: the right to do so does not let the binder change what a quota allows.
async fn patch(client: Client, key: &QuotaKey, used: &str) -> Result<(), SendError> {
    let path = format!("/api/v1/namespaces/{}/resourcequotas/{}/status", key.namespace, key.name);
    let body = json!({"metadata": {"annotations": {marks::USED: used}}});
    let request = Request::builder().method(Method::PATCH).uri(path);
    let request =
        request.header(CONTENT_TYPE, "application/merge-patch+json").body(body.to_string().into_bytes());
    let request = request.expect("names of Kubernetes objects are valid in a path");
    send::<IgnoredAny>(client, request, CLIENT_TIMEOUT).await.map(drop)
}
