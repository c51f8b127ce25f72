//! The kubelets of all simulated nodes: one watch of pods, and for each node one pod after another.
//!
//! It must not choose cards: it asks the node's device plugin, container by container.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{Config, Event, watcher};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::allocate::{Ask, Refusal};
use super::api::code;
use super::audit::Ledger;
use super::fit::{Lack, Used};
use super::koordlet::books::Books;
use super::node::Node;
use super::plugin::Plugin;
use super::record::held;
use super::status;
use super::view::Pod;
use super::wire::Release;
use super::{Answer, Behaviour, Ending, Shared, cambricon, gpushare, hami, metax, volcano};

/// The pause before a broken watch is opened again; without chance, so that a seeded run replays.
#[derive(Debug)]
pub(crate) struct Second;

impl Iterator for Second {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }
}

impl Backoff for Second {
    fn reset(&mut self) {}
}

/// Runs until the watch of pods ends, which it never does by itself.
pub(super) async fn run(shared: Arc<Shared>) {
    let rooms = shared.seats.keys().map(|name| (name.clone(), Room::default())).collect();
    let mut kubelets =
        Kubelets { shared, rooms, known: BTreeMap::new(), listed: Vec::new(), work: JoinSet::new() };
    kubelets.serve().await;
}

struct Kubelets {
    shared: Arc<Shared>,
    rooms: BTreeMap<String, Room>,
    known: BTreeMap<String, Known>,
    /// Pods of a list that is not complete yet.
    listed: Vec<Pod>,
    work: JoinSet<Done>,
}

/// What the kubelet of one node has before it.
#[derive(Default)]
struct Room {
    queue: VecDeque<Job>,
    busy: bool,
    used: Used,
    ledger: Ledger,
    books: Books,
}

impl Room {
    /// Whether kubelet has room for the pod, and Koordinator's node side the devices that it was given.
    fn admit(&mut self, pod: &Pod, node: &Node) -> Result<(), Lack> {
        self.used.admit(pod, &node.amounts())?;
        node.koordlet.as_ref().map_or(Ok(()), |koordlet| self.books.start(&node.name, koordlet, pod))
    }
}

/// A pod of ours, as last seen.
struct Known {
    pod: Arc<Pod>,
    finalising: bool,
}

enum Job {
    Admit(String),
    Finalise(String),
}

/// A piece of work that ended; the node's next job may start.
enum Done {
    Admitted {
        node: String,
        pod: Arc<Pod>,
    },
    Rejected {
        node: String,
        pod: Arc<Pod>,
    },
    Finalised {
        node: String,
    },
    /// Something that is no job of the node's, such as the end of a pod's life time.
    Beside,
}

impl Kubelets {
    async fn serve(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut pods = pin!(watcher(shared.calls.all_pods(), Config::default()).backoff(Second));
        loop {
            // Always in this order, so that a seeded run replays.
            tokio::select! {
                biased;
                event = pods.next() => match event {
                    Some(Ok(event)) => self.see(event),
                    Some(Err(error)) => tracing::warn!(%error, "watch of pods broke, starting over"),
                    None => return,
                },
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => self.finish(done),
                    Err(error) => std::panic::resume_unwind(error.into_panic()),
                },
                () = shared.behaviour_changed.notified() => self.start_all(),
            }
        }
    }

    fn see(&mut self, event: Event<Pod>) {
        match event {
            Event::Apply(pod) => self.apply(pod),
            Event::Delete(pod) => {
                self.forget(pod.uid());
                self.mourn(pod);
            }
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => self.listed.push(pod),
            Event::InitDone => self.resync(),
        }
    }

    /// What went away while nobody watched is released before what came is charged.
    fn resync(&mut self) {
        let listed = std::mem::take(&mut self.listed);
        let alive: BTreeSet<&str> = listed.iter().filter(|pod| !pod.is_terminal()).map(Pod::uid).collect();
        let gone = self.known.keys().filter(|uid| !alive.contains(uid.as_str()));
        for uid in gone.cloned().collect::<Vec<_>>() {
            self.forget(&uid);
        }
        for pod in listed {
            self.apply(pod);
        }
    }

    fn apply(&mut self, pod: Pod) {
        let uid = pod.uid().to_owned();
        let Some(node) = pod.spec.node_name.clone() else {
            return;
        };
        let (Some(room), Some(seat)) = (self.rooms.get_mut(&node), self.shared.seats.get(&node)) else {
            return;
        };
        if pod.is_terminal() {
            room.ledger.release(&uid);
            room.books.release(&uid);
            room.used.release(&uid);
        } else {
            let node = held(&seat.node);
            let cards = room.ledger.charge(&node, &pod);
            let devices =
                node.koordlet.iter().flat_map(|koordlet| room.books.charge(&node.name, koordlet, &pod));
            for violation in cards.into_iter().chain(devices) {
                self.shared.record.violation(violation);
            }
        }
        let known = self.known.get_mut(&uid);
        let (new, finalising) = (known.is_none(), known.is_some_and(|known| known.finalising));
        if new && pod.is_pending() && !pod.is_terminating() {
            room.queue.push_back(Job::Admit(uid.clone()));
        } else if new && !pod.is_terminal() {
            room.used.keep(&pod);
        }
        if pod.is_terminating() && !finalising {
            room.queue.push_back(Job::Finalise(uid.clone()));
        }
        let finalising = finalising || pod.is_terminating();
        self.known.insert(uid, Known { pod: Arc::new(pod), finalising });
        self.start_next(&node);
    }

    fn forget(&mut self, uid: &str) {
        let Some(known) = self.known.remove(uid) else {
            return;
        };
        let node = known.pod.spec.node_name.as_deref().unwrap_or_default();
        if let Some(room) = self.rooms.get_mut(node) {
            room.ledger.release(uid);
            room.books.release(uid);
            room.used.release(uid);
        }
    }

    /// What a plugin does that sees that a pod of its node is gone.
    fn mourn(&mut self, pod: Pod) {
        let node = pod.spec.node_name.clone().unwrap_or_default();
        let plugin = self.shared.seats.get(&node).and_then(|seat| held(&seat.node).plugin);
        let Some(Plugin::Cambricon(spelling)) = plugin else { return };
        let shared = Arc::clone(&self.shared);
        self.work.spawn(async move {
            if let Err(error) = cambricon::mourn(&shared.calls, &node, &pod, spelling).await {
                shared.record.trouble(format!("node {node}, pod {}: {error}", pod.key()));
            }
            Done::Beside
        });
    }

    fn finish(&mut self, done: Done) {
        let (node, rejected) = match done {
            Done::Beside => return,
            Done::Finalised { node } => (node, None),
            Done::Rejected { node, pod } => (node, Some(pod)),
            Done::Admitted { node, pod } => {
                self.let_live(&node, pod);
                (node, None)
            }
        };
        let room = self.rooms.get_mut(&node).expect("jobs are of our nodes");
        room.busy = false;
        if let Some(pod) = rejected {
            room.used.release(pod.uid());
        }
        self.start_next(&node);
    }

    fn let_live(&mut self, node: &str, pod: Arc<Pod>) {
        if let Some(life) = held(&self.shared.seats[node].behaviour).runs_for {
            let shared = Arc::clone(&self.shared);
            self.work.spawn(async move { shared.end_after(life, &pod).await });
        }
    }

    fn start_all(&mut self) {
        let nodes: Vec<String> = self.rooms.keys().cloned().collect();
        for node in &nodes {
            self.start_next(node);
        }
    }

    /// Starts the node's next job unless one is under way or the node is silent.
    fn start_next(&mut self, node: &str) {
        let room = self.rooms.get_mut(node).expect("asked for our nodes only");
        let seat = &self.shared.seats[node];
        if room.busy || held(&seat.behaviour).answer == Answer::Never {
            return;
        }
        while let Some(job) = room.queue.pop_front() {
            let (Job::Admit(uid) | Job::Finalise(uid)) = &job;
            let Some(Known { pod, .. }) = self.known.get(uid) else {
                continue;
            };
            let (shared, pod, node) = (Arc::clone(&self.shared), Arc::clone(pod), node.to_owned());
            match job {
                Job::Admit(_) if pod.is_terminating() || !pod.is_pending() => continue,
                Job::Admit(_) => {
                    let fits = room.admit(&pod, &held(&seat.node));
                    self.work.spawn(async move { shared.admit(node, pod, fits).await });
                }
                Job::Finalise(_) if lingers(&pod, &held(&seat.behaviour)) => {
                    self.work.spawn(async move { shared.finalise_after_grace(&pod).await });
                    continue;
                }
                Job::Finalise(_) => {
                    self.work.spawn(async move { shared.finalise(node, &pod).await });
                }
            }
            room.busy = true;
            return;
        }
    }
}

/// Whether the pod's processes run on until its grace period is over.
fn lingers(pod: &Pod, behaviour: &Behaviour) -> bool {
    behaviour.ending == Ending::AfterGrace && !pod.is_pending() && !pod.is_terminal() && !pod.is_kept()
}

/// Every Allocate of a pod: the container's place, and how many devices of one resource.
fn asks(plugin: Plugin, pod: &Pod) -> Vec<(usize, u64)> {
    let mut asks = Vec::new();
    for (place, container) in pod.in_kubelet_order().enumerate() {
        let amounts = plugin.served().iter().filter_map(|resource| container.amount(resource));
        asks.extend(amounts.map(|amount| (place, amount)));
    }
    asks
}

impl Shared {
    async fn admit(&self, node: String, pod: Arc<Pod>, fits: Result<(), Lack>) -> Done {
        let outcome = match fits {
            Err(lack) => Err(lack),
            Ok(()) => self.allocate_all(&node, &pod).await.map_err(|refusal| Lack {
                reason: "UnexpectedAdmissionError".to_owned(),
                message: format!(
                    "Allocate failed due to rpc error: code = Unknown desc = {refusal}, which is unexpected"
                ),
            }),
        };
        match outcome {
            Ok(()) => {
                self.report(&pod, status::running(&pod)).await;
                self.record.count_admitted();
                Done::Admitted { node, pod }
            }
            Err(Lack { reason, message }) => {
                self.report(&pod, json!({"phase": "Failed", "reason": reason, "message": message})).await;
                self.record.count_rejected();
                Done::Rejected { node, pod }
            }
        }
    }

    /// Init containers first, then app containers, each with its own call.
    async fn allocate_all(&self, node: &str, pod: &Pod) -> Result<(), Refusal> {
        let seat = &self.seats[node];
        let node = held(&seat.node).clone();
        let Some(plugin) = node.plugin else { return Ok(()) };
        for (place, wanted) in asks(plugin, pod) {
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            let answer = held(&seat.behaviour).answer.clone();
            if let Answer::After(delay) = answer {
                tokio::time::sleep(delay).await;
            }
            let fault = seat.next_fault();
            let (calls, record, cut) = (&self.calls, &self.record, &seat.cut);
            let ask = Ask { calls, record, node: &node, pod, place, wanted, fault, cut };
            match (plugin, plugin.wire()) {
                (Plugin::Hami(release), Some(wire)) => hami::allocate(&ask, release, wire).await?,
                (_, Some(wire)) => hami::allocate(&ask, Release::V2_10, wire).await?,
                (Plugin::Cambricon(spelling), _) => cambricon::allocate(&ask, spelling).await?,
                (Plugin::Metax, _) => metax::allocate(&ask).await?,
                (Plugin::GpuShare(strategy), _) => gpushare::allocate(&ask, strategy).await?,
                _ => volcano::allocate(&ask).await?,
            }
        }
        Ok(())
    }

    async fn finalise(&self, node: String, pod: &Pod) -> Done {
        // Since Kubernetes 1.27 the last phase is written before the removal, which shows where the object stays.
        if pod.is_kept() {
            self.report(pod, json!({"phase": "Failed"})).await;
        }
        self.insist(pod, Write::Removal).await;
        Done::Finalised { node }
    }

    /// The node's other pods do not wait for it.
    async fn finalise_after_grace(&self, pod: &Pod) -> Done {
        tokio::time::sleep(pod.grace()).await;
        self.insist(pod, Write::Removal).await;
        Done::Beside
    }

    async fn end_after(&self, life: Duration, pod: &Pod) -> Done {
        tokio::time::sleep(life).await;
        self.report(pod, status::succeeded(pod)).await;
        Done::Beside
    }

    async fn report(&self, pod: &Pod, status: Value) {
        self.insist(pod, Write::Status(status)).await;
    }

    /// As kubelet's status writer: again until it lands or the pod is gone.
    async fn insist(&self, pod: &Pod, write: Write) {
        let mut wait = Duration::from_millis(100);
        loop {
            let outcome = match &write {
                Write::Status(status) => self.calls.patch_status(pod, status).await.map(drop),
                Write::Removal => self.calls.remove_pod(pod).await,
            };
            let Err(error) = outcome else { return };
            match code(&error) {
                Some(404 | 409) => return,
                Some(400..=428) => return self.record.trouble(format!("pod {}: {error}", pod.key())),
                _ => tokio::time::sleep(wait).await,
            }
            wait = (wait * 2).min(Duration::from_secs(10));
        }
    }
}

/// What kubelet repeats until the API server takes it.
enum Write {
    Status(Value),
    Removal,
}
