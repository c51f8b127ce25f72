//! An API server inside the process, as real as the program and its tests need it.
//!
//! It answers the Kubernetes API (v1.36) for the kinds in [`resource::RESOURCES`] from memory: the same seed, the same clock and
//! the same requests give the same answers. It must not hold product logic, read the machine's clock or use its
//! randomness (the certificate and token of [`Sandbox::serve`] excepted).
//!
//! What a real server does and this one does not: authorization (RBAC objects are stored; a review of access allows `system:masters` alone), admission policies and CEL match
//! conditions, quotas, controllers and garbage collection (a deleted namespace stays Terminating until `finalize`), field
//! ownership (an apply patch creates or merges, never removes and never conflicts), the types of fields beyond the quantities of
//! containers, tables of other kinds than pods and nodes, protobuf (kubectl's `create configmap` and the like send it: 415) and CBOR.

mod access;
mod admission;
pub mod agent;
mod attributes;
mod binding;
mod bootstrap;
pub mod claims;
mod clock;
mod controller;
mod create;
mod defaults;
mod delete;
mod discovery;
mod evict;
pub mod fault;
mod list;
mod name;
mod object;
mod patch;
mod pod_admission;
mod quantity;
mod reply;
mod request;
pub mod resource;
mod review;
mod route;
mod seed;
mod selector;
mod serve;
mod server;
mod service;
mod status;
pub mod storage;
mod store;
mod strategic_merge;
mod table;
mod update;
mod validate;
mod validate_pod;
mod watch;
mod webhook;
mod webhook_call;
mod wire;

pub use request::{UserInfo, Verb};
pub use serve::{ServeError, Served};
pub use server::RequestKey;
pub use service::ApiService;
pub use status::StatusError;
pub use webhook_call::{Https, InProcess, WebhookAnswer, WebhookCall, WebhookError, WebhookTransport};

use clock::Clock;
use jiff::Timestamp;
use server::Server;
use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

/// How a sandbox starts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides every uid and generated name.
    pub seed: u64,
    /// The time of the first instant; tokio's clock goes on from there.
    pub base_time: Timestamp,
    /// Changes kept for each resource: older watches and pages answer 410.
    pub history: usize,
    /// How admission webhooks are reached.
    pub transport: Arc<dyn WebhookTransport>,
    /// What is said about workloads, for which no controller makes pods here.
    pub workloads: Workloads,
}

/// What the server says to whoever creates an object that controllers would make pods of.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Workloads {
    /// Nothing, as a real one.
    #[default]
    Unremarked,
    /// A warning that no pods will come.
    Warned,
}

impl Default for Options {
    /// Seed 0, the first second of 2026 (UTC), 4096 changes, webhooks over HTTPS.
    fn default() -> Self {
        Self {
            seed: 0,
            base_time: Timestamp::constant(1_767_225_600, 0),
            history: 4096,
            transport: Arc::new(Https::default()),
            workloads: Workloads::default(),
        }
    }
}

/// A cluster's API server in memory; clones share it.
#[derive(Clone, Debug)]
pub struct Sandbox {
    server: Arc<Server>,
}

impl Sandbox {
    /// An API server with the namespaces and priority classes of a fresh cluster; its clock starts now.
    pub fn new(options: Options) -> Self {
        let clock = Clock::starting_at(options.base_time);
        let server = Server::new(options.seed, options.history, clock, options.transport, options.workloads);
        bootstrap::fill(&server);
        Self { server: Arc::new(server) }
    }

    /// The server as a service over HTTP requests, for the administrator.
    pub fn service(&self) -> ApiService {
        self.service_as(UserInfo::admin())
    }

    /// The server as a service for requests of that user; only admission reads who it is.
    pub fn service_as(&self, user: UserInfo) -> ApiService {
        ApiService::new(self.server.clone(), user)
    }

    /// A client for the administrator in the namespace `default`; it must be made inside a tokio runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// A client for that user.
    pub fn client_as(&self, user: UserInfo) -> kube::Client {
        kube::Client::new(self.service_as(user), "default")
    }

    /// Listens on `address` over HTTPS with a new certificate and token; nothing is answered until `run` is polled.
    pub async fn serve(&self, address: SocketAddr) -> Result<Served, ServeError> {
        serve::serve(self.service(), address).await
    }

    /// The revision of the newest write.
    pub fn resource_version(&self) -> u64 {
        self.server.store().revision()
    }

    /// The present time of the sandbox.
    pub fn now(&self) -> Timestamp {
        self.server.clock.now()
    }

    /// Forgets the history: watches and pages from before answer 410.
    pub fn compact(&self) {
        self.server.store().compact();
    }

    /// Every object of a kind of the core group as it stands, by namespace and name; `plural` as `pods`.
    pub fn objects(&self, plural: &str) -> Vec<Arc<serde_json::Value>> {
        self.objects_of("", plural)
    }

    /// Every object of a kind as it stands, by namespace and name; the core group is empty.
    pub fn objects_of(&self, group: &str, plural: &str) -> Vec<Arc<serde_json::Value>> {
        self.server.store().objects(resource::known(group, plural)).values().cloned().collect()
    }

    /// How many requests were answered, by verb, resource, subresource and code; a watch counts when it starts.
    pub fn requests(&self) -> BTreeMap<RequestKey, u64> {
        self.server.requests()
    }
}
