//! What a binder is given, and why it may end before it was asked to.
//!
//! Values only; it must not run anything.

use std::sync::Arc;

use kube::Client;
use tokio::task::JoinError;

use super::{
    candidate::{NoNamespace, Settings, SettingsError},
    clock::Clock,
    handoff::Handoff,
    metrics::Metrics,
    read::Reader,
};
use crate::scheduling::scheduler;

/// What a binder is given.
#[derive(Clone)]
pub struct Binder {
    /// The client; it must not retry by itself.
    pub client: Client,
    /// What is read of pods and nodes.
    pub reader: Arc<Reader>,
    /// The present.
    pub clock: Clock,
    /// Counts what is done.
    pub metrics: Metrics,
    /// The settings of the scheduler.
    pub settings: scheduler::Settings,
    /// How many writes may be under way at once.
    pub writes_at_once: usize,
    /// Whether this process binds, and when.
    pub leadership: Leadership,
    /// What it shows to its process, and what it is handed.
    pub handoff: Handoff,
}

/// How a binder knows that it is the only one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Leadership {
    /// There is no other.
    Alone,
    /// It holds a Lease.
    Elected(Settings),
}

/// Why a binder ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A watch ended, which none ever should.
    #[error("the watches of pods and nodes have ended")]
    WatchEnded,
    /// A task that wrote to the API server panicked.
    #[error("a write to the API server panicked")]
    Write(#[source] JoinError),
    /// The settings of the election make no sense.
    #[error(transparent)]
    Election(#[from] SettingsError),
    /// There is no namespace for the Lease.
    #[error(transparent)]
    NoNamespace(#[from] NoNamespace),
    /// The task that holds the Lease has ended.
    #[error("the task that holds the lease has ended")]
    Lease(#[source] Option<JoinError>),
}
