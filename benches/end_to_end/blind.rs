//! The blind binder: lock, Binding and Event for each pod with Berth's own client code, on the next node in turn.
//!
//! It must not know of capacity. It waits for a node's agent as every correct binder must: until a watch shows the lock gone.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    pin::pin,
    sync::Arc,
};

use anyhow::{Context as _, bail};
use berth::{
    cluster::{
        Clock, Reader,
        informer::{unread::UnreadObjects, watch},
        write::{bind, lock, tell},
    },
    device::{Assignment, Card, ContainerShares, Lock, Share},
    dialect::hami::Hami,
    scheduling::{
        Ask, BindOutcome, Claim, Concern, Details, Event, LockOutcome, NodeChange, NodeInfo, NodeName,
        PodChange, PodInfo, PodKey, Setback, Uid,
    },
};
use futures::{Stream, StreamExt as _};
use kube::Client;
use tokio::task::JoinSet;

/// The binder.
pub(crate) struct Blind {
    hands: Hands,
    seats: BTreeMap<NodeName, Seat>,
    /// The nodes in the order in which they are given pods.
    turns: VecDeque<NodeName>,
    /// Nodes that are free and have pods waiting.
    free: VecDeque<NodeName>,
    known: HashSet<Uid>,
    in_flight: JoinSet<anyhow::Result<Sent>>,
    at_once: usize,
}

#[derive(Clone)]
struct Hands {
    client: Client,
    reader: Arc<Reader>,
}

/// One node.
struct Seat {
    info: Arc<NodeInfo>,
    waiting: VecDeque<Work>,
    step: Step,
    /// Pods sent there so far.
    given: usize,
}

#[derive(Clone)]
struct Work {
    key: PodKey,
    ask: Arc<Ask>,
}

/// How far a node is with the pod that it serves.
enum Step {
    Free,
    /// In line for the next free place among the pods in flight.
    Offered,
    /// Its lock is being taken or has been, and no watch has shown it yet.
    Taking,
    /// A watch has shown the lock: once one shows none, the agent is done.
    Locked,
    /// The lock was refused on this version.
    Stale(String),
}

/// What became of one pod's writes.
enum Sent {
    Bound,
    Stale { node: Arc<NodeInfo>, work: Work },
}

impl Blind {
    pub(crate) fn new(client: Client, reader: Arc<Reader>, at_once: usize) -> Self {
        Self {
            hands: Hands { client, reader },
            seats: BTreeMap::new(),
            turns: VecDeque::new(),
            free: VecDeque::new(),
            known: HashSet::new(),
            in_flight: JoinSet::new(),
            at_once,
        }
    }

    /// Binds what comes until `shutdown`, and says when the cluster has been listed; fails on anything but a stale lock.
    pub(crate) async fn run(
        mut self,
        shutdown: impl Future<Output = ()>,
        ready: impl FnOnce(),
    ) -> anyhow::Result<()> {
        let mut watched = pin!(self.watched());
        let mut shutdown = pin!(shutdown);
        let (mut ready, mut lists) = (Some(ready), 0);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(sent) = self.in_flight.join_next() => self.settle(sent??),
                events = watched.next() => {
                    for event in events.context("the watches have ended")? {
                        lists += usize::from(matches!(event, Event::Pod(PodChange::Listed(_)) | Event::Node(NodeChange::Listed(_))));
                        self.see(event)?;
                    }
                }
            }
            if let Some(ready) = ready.take_if(|_| lists > 1) {
                ready();
            }
            self.start();
        }
        while let Some(sent) = self.in_flight.join_next().await {
            sent??;
        }
        Ok(())
    }

    /// The same watches as Berth's.
    fn watched(&self) -> impl Stream<Item = Vec<Event>> + use<> {
        let Hands { client, reader } = &self.hands;
        watch::pods_and_nodes(client, reader, &UnreadObjects::default()).ready_chunks(256)
    }

    fn see(&mut self, event: Event) -> anyhow::Result<()> {
        match event {
            Event::Pod(PodChange::Listed(pods)) => pods.into_pods().try_for_each(|pod| self.see_pod(*pod)),
            Event::Pod(PodChange::Seen(pod)) => self.see_pod(*pod),
            Event::Node(NodeChange::Listed(nodes)) => {
                for node in nodes {
                    self.see_node(node);
                }
                Ok(())
            }
            Event::Node(NodeChange::Seen(node)) => {
                self.see_node(*node);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A pod that wants a place is given to the next node in turn.
    fn see_pod(&mut self, pod: PodInfo) -> anyhow::Result<()> {
        let Claim::Place(ask) = pod.claim else { return Ok(()) };
        if !self.known.insert(pod.key.uid.clone()) {
            return Ok(());
        }
        let node = self.turns.pop_front().context("a pod came before the nodes were listed")?;
        self.turns.push_back(node.clone());
        let seat = self.seats.get_mut(&node).expect("turns are of nodes with a seat");
        seat.waiting.push_back(Work { key: pod.key, ask });
        self.offer(&node);
        Ok(())
    }

    fn see_node(&mut self, info: NodeInfo) {
        let (name, info) = (info.name.clone(), Arc::new(info));
        let Some(seat) = self.seats.get_mut(&name) else {
            let seat = Seat { info, waiting: VecDeque::new(), step: Step::Free, given: 0 };
            self.turns.push_back(name.clone());
            self.seats.insert(name, seat);
            return;
        };
        let lock = info.locks.of(&Hami::NAME.into()).map(|lock| &lock.state);
        let locked = !matches!(lock, None | Some(Lock::Free));
        seat.step = match std::mem::replace(&mut seat.step, Step::Free) {
            Step::Taking if locked => Step::Locked,
            Step::Locked if !locked => Step::Free,
            Step::Stale(version) if info.resource_version != version => Step::Free,
            same => same,
        };
        seat.info = info;
        self.offer(&name);
    }

    fn offer(&mut self, name: &NodeName) {
        let seat = self.seats.get_mut(name).expect("offered are nodes with a seat");
        if matches!(seat.step, Step::Free) && !seat.waiting.is_empty() {
            seat.step = Step::Offered;
            self.free.push_back(name.clone());
        }
    }

    fn settle(&mut self, sent: Sent) {
        if let Sent::Stale { node, work } = sent {
            let place = self.seats.get_mut(&node.name).expect("pods are sent to nodes with a seat");
            place.waiting.push_front(work);
            let moved = place.info.resource_version != node.resource_version;
            place.step = if moved { Step::Free } else { Step::Stale(node.resource_version.clone()) };
            self.offer(&node.name);
        }
    }

    fn start(&mut self) {
        while self.in_flight.len() < self.at_once {
            let Some(name) = self.free.pop_front() else { return };
            let seat = self.seats.get_mut(&name).expect("free are nodes with a seat");
            let Some(work) = seat.waiting.pop_front() else { continue };
            seat.step = Step::Taking;
            seat.given += 1;
            self.in_flight.spawn(self.hands.clone().send(seat.info.clone(), seat.given, work));
        }
    }
}

impl Hands {
    /// The three writes.
    async fn send(self, node: Arc<NodeInfo>, given: usize, work: Work) -> anyhow::Result<Sent> {
        let dialect = self.reader.dialects().named(&Hami::NAME.into()).context("no such dialect")?;
        let spec = dialect.locks().first().context("this dialect has a lock")?;
        let version = &node.resource_version;
        let now = Clock::System.now();
        match lock::take(self.client.clone(), &[spec], &node.name, &work.key, version, now).await {
            LockOutcome::Taken { .. } => {}
            LockOutcome::Stale => return Ok(Sent::Stale { node, work }),
            LockOutcome::Failed(Setback { why: message, .. })
            | LockOutcome::Throttled(Setback { why: message, .. })
            | LockOutcome::Refused(message) => {
                bail!("lock of {}: {message}", node.name)
            }
        }
        let record = dialect.record(&assignment(&node, given, &work.ask)?, &node.name, Clock::System.now());
        match bind::bind(self.client.clone(), &work.key, &node.name, record).await {
            BindOutcome::Bound => {}
            BindOutcome::Doubtful(Setback { why: message, .. })
            | BindOutcome::Throttled(Setback { why: message, .. })
            | BindOutcome::Refused(message) => {
                bail!("Binding of {}: {message}", work.key)
            }
        }
        let news = tell::News::Scheduled { node: &node.name };
        let reporter = (self.reader.scheduler_name(), Details::Full);
        tell::event(self.client.clone(), reporter, &Concern::Pod(work.key), news, Clock::System.now())
            .await?;
        Ok(Sent::Bound)
    }
}

/// What is asked for, of the node's cards in turn.
fn assignment(node: &NodeInfo, given: usize, ask: &Ask) -> anyhow::Result<Assignment> {
    let offer = node.devices.offer(&Hami::NAME.into()).and_then(|offer| offer.inventory.as_deref());
    let cards = offer.context("the node has registered no cards")?.cards();
    let share = |container: &berth::device::ContainerRequest, card: &Card| {
        let share = container.share?;
        Some(Share {
            card: card.id.clone(),
            memory: share.memory.of(card.memory),
            cores: share.cores.of(card.cores),
            slice: None,
        })
    };
    let containers = ask.devices[0].request.containers.iter().map(|container| {
        let count = container.share.map_or(0, |share| share.cards.get() as usize);
        let own = cards.iter().cycle().skip(given % cards.len().max(1)).take(count);
        ContainerShares {
            role: container.role,
            shares: own.filter_map(|card| share(container, card)).collect(),
        }
    });
    Ok(Assignment { containers: containers.collect(), ..Assignment::default() })
}
