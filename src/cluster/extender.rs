//! Between the extender that kube-scheduler calls and the loop that binds: what is asked goes in, how far a pod is comes back.
//!
//! It must not decide: the one writer does, and a pod that it is told to bind stands in its node's line as any other.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use super::{binder::view::BinderView, clock::Clock, read::Reader};
use crate::scheduling::{Demand, Details, Event, NodeName, PodKey, Scheduler, Uid, scheduler::Directed};

/// Requests that may wait for the loop.
const ROOM: usize = 256;

/// A pod waits so long in its node's line before kube-scheduler is told to try again: its own patience (`httpTimeout`) is 5 s by default.
pub const PATIENCE: Duration = Duration::from_secs(4);

/// A pod that kube-scheduler has given a node.
#[derive(Debug)]
struct Direction {
    pod: PodKey,
    node: NodeName,
    until: Instant,
    answer: oneshot::Sender<Result<(), String>>,
}

/// A node with pods that would be evicted from it.
pub type Candidate = (NodeName, Vec<Uid>);

#[derive(Debug)]
enum ExtenderRequest {
    Look(oneshot::Sender<BinderView>),
    Bind(Direction),
    Preempt { demand: Box<Demand>, candidates: Vec<Candidate>, answer: oneshot::Sender<Vec<bool>> },
}

/// This process does not bind: another one has the ledger.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("this replica does not lead")]
pub struct NotLeading;

/// How the loop that binds is asked; clones ask the same.
#[derive(Clone, Debug, Default)]
pub struct ExtenderChannel(Arc<Mutex<Option<mpsc::Sender<ExtenderRequest>>>>);

impl ExtenderChannel {
    /// The cluster as the loop has it now.
    pub async fn look(&self) -> Result<BinderView, NotLeading> {
        self.ask(ExtenderRequest::Look).await
    }

    /// Binds a pod to the node that kube-scheduler has chosen; the error says why it is not bound.
    pub async fn bind(&self, pod: PodKey, node: NodeName) -> Result<Result<(), String>, NotLeading> {
        let until = Instant::now() + PATIENCE;
        self.ask(|answer| ExtenderRequest::Bind(Direction { pod, node, until, answer })).await
    }

    /// For each candidate, whether it would have the pod without its victims.
    pub async fn preempt(&self, demand: Demand, candidates: Vec<Candidate>) -> Result<Vec<bool>, NotLeading> {
        let demand = Box::new(demand);
        self.ask(|answer| ExtenderRequest::Preempt { demand, candidates, answer }).await
    }

    async fn ask<T>(
        &self,
        request: impl FnOnce(oneshot::Sender<T>) -> ExtenderRequest,
    ) -> Result<T, NotLeading> {
        let asked = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or(NotLeading)?;
        let (answer, answered) = oneshot::channel();
        asked.send(request(answer)).await.map_err(|_| NotLeading)?;
        answered.await.map_err(|_| NotLeading)
    }

    /// From now on requests are answered by the loop that holds this.
    pub(super) fn open(&self, reader: Arc<Reader>, details: Details) -> Desk {
        let (asked, requests) = mpsc::channel(ROOM);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked);
        Desk { requests, reader, details, directions: HashMap::new() }
    }
}

/// Where one loop takes requests, and the pods that it was told to bind.
pub(super) struct Desk {
    requests: mpsc::Receiver<ExtenderRequest>,
    reader: Arc<Reader>,
    /// How much of an answer is told.
    details: Details,
    directions: HashMap<Uid, Direction>,
}

/// What has come in.
pub(super) struct ExtenderCall(ExtenderRequest);

impl Desk {
    /// The next request; none is lost where this is given up.
    pub(super) async fn next(&mut self) -> ExtenderCall {
        match self.requests.recv().await {
            Some(request) => ExtenderCall(request),
            None => std::future::pending().await,
        }
    }

    /// When a pod has waited for too long.
    pub(super) fn due(&self) -> Option<Instant> {
        self.directions.values().map(|direction| direction.until).min()
    }

    /// Answers what can be answered at once, and takes in the rest.
    pub(super) fn take(&mut self, ExtenderCall(request): ExtenderCall, scheduler: &mut Scheduler) {
        match request {
            ExtenderRequest::Look(answer) => {
                let view = BinderView { reader: self.reader.clone(), outlook: scheduler.view().outlook() };
                // The asker may be gone meanwhile, here and below.
                let _ = answer.send(view);
            }
            ExtenderRequest::Preempt { demand, candidates, answer } => {
                let relieves = |(node, victims): &Candidate| scheduler.relieves(&demand, node, victims);
                let _ = answer.send(candidates.iter().map(relieves).collect());
            }
            // kube-scheduler has asked again: its first request is over.
            ExtenderRequest::Bind(direction) => {
                drop(self.directions.insert(direction.pod.uid.clone(), direction));
            }
        }
    }

    /// Tells the scheduler of the pods that are to be bound.
    pub(super) fn direct(&self, scheduler: &mut Scheduler, clock: Clock) {
        for direction in self.directions.values() {
            let (pod, node) = (direction.pod.uid.clone(), direction.node.clone());
            scheduler.observe(Event::Directed { pod, node }, clock.now());
        }
    }

    /// Answers for the pods of which it is known now what has become, and for those that have waited for too long, which leave their
    /// lines unless they are being bound.
    pub(super) fn answer(&mut self, scheduler: &mut Scheduler, clock: Clock) {
        let now = Instant::now();
        // kube-scheduler writes the answer into the pod's condition.
        let called = |node: &NodeName| match self.details {
            Details::Full => format!("node {node}"),
            Details::Own => "the node".to_owned(),
        };
        for (uid, direction) in std::mem::take(&mut self.directions) {
            let answer = match scheduler.view().direction(&uid) {
                Directed::Bound(node) if node == direction.node => Ok(()),
                Directed::Bound(node) => Err(format!("pod {} is bound to {}", direction.pod, called(&node))),
                Directed::Waiting(Some(untaken)) => Err(untaken.to_string()),
                Directed::Waiting(None) => Err(format!("{} no longer has room", called(&direction.node))),
                Directed::InLine(_) | Directed::Unseen
                    if direction.until > now && !direction.answer.is_closed() =>
                {
                    self.directions.insert(uid, direction);
                    continue;
                }
                Directed::Unseen => Err(format!("pod {} is not known", direction.pod)),
                Directed::InLine(node) => {
                    let busy = format!("{} is busy with other pods", called(&node));
                    scheduler.observe(Event::Undirected { pod: uid }, clock.now());
                    Err(busy)
                }
            };
            let _ = direction.answer.send(answer);
        }
    }
}
