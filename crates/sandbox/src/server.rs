//! What all requests share: the store, the clock, the seed, the webhook transport and the count of requests.

use super::{
    Workloads,
    clock::Clock,
    request::{Call, UserInfo, Verb},
    resource::Resource,
    seed::Sequence,
    status::{Result, StatusError},
    store::{Key, Store},
    table::Printer,
    webhook_call::WebhookTransport,
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
};

/// What requests are counted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKey {
    /// What was asked.
    pub verb: Verb,
    /// Plural, with the group unless it is core: `leases.coordination.k8s.io`.
    pub resource: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// HTTP status code of the answer.
    pub code: u16,
}

/// The API server behind all its services.
#[derive(Debug)]
pub(super) struct Server {
    store: Mutex<Store>,
    sequence: Mutex<Sequence>,
    requests: Mutex<BTreeMap<RequestKey, u64>>,
    bearers: Mutex<BTreeMap<String, UserInfo>>,
    pub(super) clock: Clock,
    pub(super) transport: Arc<dyn WebhookTransport>,
    pub(super) workloads: Workloads,
}

impl Server {
    pub(super) fn new(
        seed: u64,
        history: usize,
        clock: Clock,
        transport: Arc<dyn WebhookTransport>,
        workloads: Workloads,
    ) -> Self {
        Self {
            store: Mutex::new(Store::new(history)),
            sequence: Mutex::new(Sequence::new(seed)),
            requests: Mutex::default(),
            bearers: Mutex::default(),
            clock,
            transport,
            workloads,
        }
    }

    /// The store; the guard must not live across an await.
    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().expect("no holder of this lock panics")
    }

    /// Lets the bearer of this token be this user.
    pub(super) fn admit(&self, token: &str, user: UserInfo) {
        self.bearers.lock().expect("no holder of this lock panics").insert(token.to_owned(), user);
    }

    /// The user whose token this is.
    pub(super) fn bearer(&self, token: &str) -> Option<UserInfo> {
        self.bearers.lock().expect("no holder of this lock panics").get(token).cloned()
    }

    pub(super) fn uid(&self) -> String {
        self.sequence.lock().expect("no holder of this lock panics").uid()
    }

    pub(super) fn name_suffix(&self) -> String {
        self.sequence.lock().expect("no holder of this lock panics").suffix()
    }

    pub(super) fn get(&self, resource: &'static Resource, key: &Key) -> Result<Arc<Value>> {
        self.store().get(resource, key).ok_or_else(|| StatusError::not_found(resource, &key.1))
    }

    /// How the objects of this call are printed; none where they are sent as they are.
    pub(super) fn printer(&self, call: &Call) -> Result<Option<Printer>> {
        Printer::asked(&call.accept, call.resource, &call.query, self.clock)
    }

    pub(super) fn count(&self, call: &Call, code: u16) {
        let key = RequestKey {
            verb: call.verb,
            resource: call.resource.qualified(),
            subresource: call.subresource.clone(),
            code,
        };
        let mut requests = self.requests.lock().expect("no holder of this lock panics");
        *requests.entry(key).or_default() += 1;
    }

    pub(super) fn requests(&self) -> BTreeMap<RequestKey, u64> {
        self.requests.lock().expect("no holder of this lock panics").clone()
    }
}
