//! Simulated nodes: kubelets and device plugins of other projects, working on any API server through a client.
//!
//! They must not know Berth: they read what is on pods and nodes and answer as the real programs do.

mod allocate;
mod amd;
mod api;
mod ascend;
pub mod audit;
mod cambricon;
pub mod card;
pub mod cut;
mod fit;
mod gpushare;
mod hami;
pub mod handshake;
mod keys;
pub mod koordlet;
mod kubelet;
mod metax;
mod mig;
pub mod node;
pub mod plugin;
mod record;
mod register;
pub(super) mod share;
mod status;
pub mod strategy;
mod template;
mod view;
mod volcano;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use allocate::{CutForPod, Fault};
use api::{Calls, code};
use audit::Violation;
use card::Health;
use handshake::Reports;
pub(super) use kubelet::Second;
use node::Node;
use record::{Record, held};

const REGISTERING_AT_ONCE: usize = 16;

/// How one node's device plugin answers Allocate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Answer {
    /// At once.
    #[default]
    Promptly,
    /// After a while, each time; other pods of the node wait behind it.
    After(Duration),
    /// Not at all: the node's kubelet hangs in the call and does nothing else until this changes.
    Never,
    /// Every n-th call fails after the plugin found the pod.
    FailingEvery(u32),
}

/// When a pod that is being deleted ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// As soon as kubelet has seen it: its processes end at the first signal.
    #[default]
    AtOnce,
    /// After its grace period, if it runs: its processes do not heed the signal.
    AfterGrace,
}

/// What a test may change about one node while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// How Allocate is answered.
    pub answer: Answer,
    /// Pods that start from now on succeed after this time; without it they run until deleted.
    pub runs_for: Option<Duration>,
    /// When pods end whose deletion is seen from now on.
    pub ending: Ending,
}

/// A node could not be simulated.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The API server refused to register it.
    #[error("register node {node}: {source}")]
    Register {
        /// The node's name.
        node: String,
        /// The refusal.
        source: kube::Error,
    },
    /// The fleet has no such node.
    #[error("no simulated node {0}")]
    NoSuchNode(String),
    /// The node has no such card.
    #[error("node {node} has no card {card}")]
    NoSuchCard {
        /// The node's name.
        node: String,
        /// The card's uuid.
        card: String,
    },
}

/// Nodes with their agents, gone when dropped; the Node objects stay.
pub struct Fleet {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

struct Shared {
    calls: Calls,
    record: Record,
    seats: BTreeMap<String, Seat>,
    behaviour_changed: Notify,
}

/// One node, as the agents and the test share it.
struct Seat {
    node: Mutex<Node>,
    behaviour: Mutex<Behaviour>,
    allocates: AtomicU32,
    reports: watch::Sender<Reports>,
    cut: Mutex<Option<CutForPod>>,
}

impl Fleet {
    /// Registers the nodes as their kubelets and plugins would, and starts their agents.
    pub async fn start(client: Client, nodes: Vec<Node>) -> Result<Self, AgentError> {
        let calls = Calls::new(client);
        let registrations = nodes.iter().map(|node| register(&calls, node));
        stream::iter(registrations).buffer_unordered(REGISTERING_AT_ONCE).try_collect::<Vec<()>>().await?;
        let seats = nodes.into_iter().map(|node| (node.name.clone(), Seat::new(node))).collect();
        let behaviour_changed = Notify::new();
        let shared = Arc::new(Shared { calls, record: Record::default(), seats, behaviour_changed });
        let mut tasks = JoinSet::new();
        tasks.spawn(kubelet::run(Arc::clone(&shared)));
        for (name, seat) in &shared.seats {
            if handshake::is_written_by(&held(&seat.node)) {
                tasks.spawn(handshake::run(Arc::clone(&shared), name.clone()));
            }
        }
        Ok(Self { shared, tasks })
    }

    /// What the scheduler did wrong so far.
    pub fn violations(&self) -> Vec<Violation> {
        self.shared.record.violations()
    }

    /// Clean-ups of the agents that the API server refused for good.
    pub fn troubles(&self) -> Vec<String> {
        self.shared.record.troubles()
    }

    /// How many writes the agents sent, answered or not.
    pub fn writes(&self) -> u64 {
        self.shared.calls.writes()
    }

    /// How many reads the agents sent, the watch aside.
    pub fn reads(&self) -> u64 {
        self.shared.calls.reads()
    }

    /// Pods that kubelets let run.
    pub fn admitted(&self) -> u64 {
        self.shared.record.admitted()
    }

    /// Pods that kubelets rejected.
    pub fn rejected(&self) -> u64 {
        self.shared.record.rejected()
    }

    /// Returns once this many pods were admitted or rejected since the start.
    pub async fn answered(&self, pods: u64) {
        self.shared.record.answered(pods).await;
    }

    /// Returns when the agents ended, which is a defect; panics with them.
    pub async fn ended(&mut self) {
        if let Some(Err(error)) = self.tasks.join_next().await
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    /// Changes how a node behaves from its next job on.
    pub fn behave(&self, node: &str, behaviour: Behaviour) -> Result<(), AgentError> {
        *held(&self.seat(node)?.behaviour) = behaviour;
        self.shared.behaviour_changed.notify_one();
        Ok(())
    }

    /// Lets a node's plugin report its life from now on, or no longer; only HAMi's up to v2.7 do.
    pub fn report(&self, node: &str, reports: Reports) -> Result<(), AgentError> {
        self.seat(node)?.reports.send_replace(reports);
        Ok(())
    }

    /// Makes a card unhealthy or healthy, and lets plugin and kubelet publish it.
    pub async fn set_health(&self, node: &str, card: &str, health: Health) -> Result<(), AgentError> {
        let changed = {
            let mut changed = held(&self.seat(node)?.node);
            let found = changed.cards.iter_mut().find(|own| own.uuid == card);
            let own = found.map(|found| found.health = health);
            let beside = changed.koordlet.as_mut().and_then(|koordlet| koordlet.set_health(card, health));
            let missing = || AgentError::NoSuchCard { node: node.to_owned(), card: card.to_owned() };
            own.or(beside).ok_or_else(missing)?;
            changed.clone()
        };
        republish(&self.shared.calls, &changed).await
    }

    /// Puts another machine in a node's place, or brings the same one back, and registers it.
    pub async fn replace(&self, node: Node) -> Result<(), AgentError> {
        *held(&self.seat(&node.name)?.node) = node.clone();
        register(&self.shared.calls, &node).await
    }

    fn seat(&self, node: &str) -> Result<&Seat, AgentError> {
        self.shared.seats.get(node).ok_or_else(|| AgentError::NoSuchNode(node.to_owned()))
    }
}

impl Seat {
    fn new(node: Node) -> Self {
        let behaviour = Mutex::new(Behaviour::default());
        let reports = watch::Sender::new(Reports::default());
        Self {
            node: Mutex::new(node),
            behaviour,
            allocates: AtomicU32::new(0),
            reports,
            cut: Mutex::default(),
        }
    }

    /// Counts one Allocate.
    fn next_fault(&self) -> Option<Fault> {
        let count = self.allocates.fetch_add(1, Ordering::Relaxed) + 1;
        match held(&self.behaviour).answer {
            Answer::FailingEvery(n) if n > 0 && count.is_multiple_of(n) => Some(Fault),
            _ => None,
        }
    }
}

/// Creates the Node, or brings one that is already there up to date.
async fn register(calls: &Calls, node: &Node) -> Result<(), AgentError> {
    match calls.create_node(node.object()).await {
        Err(error) if code(&error) == Some(409) => republish(calls, node).await,
        Err(source) => Err(AgentError::Register { node: node.name.clone(), source }),
        Ok(()) => publish(calls, node).await,
    }
}

/// Writes the Device of a node with Koordinator's node side.
async fn publish(calls: &Calls, node: &Node) -> Result<(), AgentError> {
    let Some(koordlet) = &node.koordlet else { return Ok(()) };
    let failed = |source| AgentError::Register { node: node.name.clone(), source };
    calls.put_device(&node.name, koordlet.object(&node.name)).await.map_err(failed)
}

async fn republish(calls: &Calls, node: &Node) -> Result<(), AgentError> {
    let failed = |source| AgentError::Register { node: node.name.clone(), source };
    let mut object = node.object();
    let status = object["status"].take();
    let patch = json!({"metadata": object["metadata"]});
    calls.patch_node(&node.name, patch).await.map_err(failed)?;
    calls.patch_node_status(&node.name, &status).await.map(drop).map_err(failed)?;
    publish(calls, node).await
}
