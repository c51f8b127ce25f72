//! The parameters of a binder, and the errors that end it early.
//!
//! It contains values only and runs nothing.

pub mod event_loop;
pub mod handoff;
pub(super) mod leading;
pub mod pulse;
pub mod questions;
pub mod standby;
pub mod takeover;
pub mod view;

use std::sync::Arc;

use kube::Client;
use tokio::task::JoinError;

use super::{
    clock::Clock,
    election::candidate::{ElectionSettings, NoNamespace, SettingsError},
    read::Reader,
    report::metrics::Metrics,
};
use crate::scheduling::{Details, scheduler};
use handoff::Handoff;

/// The parameters of a binder.
#[derive(Clone)]
pub struct Binder {
    /// The client; it must not retry by itself.
    pub client: Client,
    /// Reads pods and nodes into the scheduler's form.
    pub reader: Arc<Reader>,
    /// The clock.
    pub clock: Clock,
    /// The binder's metrics.
    pub metrics: Metrics,
    /// The settings of the scheduler.
    pub settings: scheduler::Settings,
    /// How much of a message stands where the users of a namespace read it.
    pub details: Details,
    /// The most writes at the same time.
    pub writes_at_once: usize,
    /// Whether this process binds, and when.
    pub leadership: Leadership,
    /// Where the account of what was used is kept; `None`: nothing is counted.
    pub usage: Option<UsageSettings>,
    /// The connection to the other parts of the process.
    pub handoff: Handoff,
}

/// Where the account is kept, and by what it is counted beside namespaces and workloads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsageSettings {
    /// The ConfigMap's namespace.
    pub namespace: String,
    /// The ConfigMap's name.
    pub name: String,
    /// Labels of pods.
    pub labels: Vec<Arc<str>>,
}

/// Whether a binder is elected by a Lease or runs alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Leadership {
    /// It is the only binder of the cluster.
    Alone,
    /// It binds while it holds a Lease.
    Elected(ElectionSettings),
}

/// Why a binder ended before the shutdown.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A watch ended; watches must not end by themselves.
    #[error("the watches of pods and nodes have ended")]
    WatchEnded,
    /// A task that wrote to the API server panicked.
    #[error("a write to the API server panicked")]
    Write(#[source] JoinError),
    /// The settings of the election contradict each other.
    #[error(transparent)]
    Election(#[from] SettingsError),
    /// There is no namespace for the Lease.
    #[error(transparent)]
    NoNamespace(#[from] NoNamespace),
    /// The task that holds the Lease has ended.
    #[error("the task that holds the lease has ended")]
    Lease(#[source] Option<JoinError>),
}
