//! A cluster without an API server: the scheduler of the live binder, and what answers it at once.
//!
//! What is decided, in which order, and what is to be written for it, is the [`Scheduler`]'s alone. Here stands what it is surrounded by: an API
//! server that accepts each write, controllers and drivers that follow it before anything else happens, and device plugins that allocate at once.

mod device_claims;
mod volumes;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use jiff::Timestamp;
use thin_vec::ThinVec;

use crate::{
    cluster::compare,
    device::{Allocation, Answer, InitPhase, Lock, LockName},
    scheduling::{
        BindOutcome, Claim, Computed, Effect, Event, EvictionOutcome, Holding, LockOutcome, NodeChange,
        NodeInfo, NodeName, ObjectChange, PodChange, PodInfo, PodKey, QuotaChange, QuotaInfo, ReadAnswer,
        ReadRequest, ReleaseOutcome, Scheduler, TellOutcome, Uid, WaitingPodStatus, WithdrawOutcome,
        WriteOutcome,
        effect::PrebindWrite,
        model::{
            extended_resources::StatedClaim, kept_room::RoomStatus, kind::Kind, node_resources::charged,
            pod::Binding, steps::Allowance,
        },
        scheduler::Settings,
        world::object::Object,
    },
};

/// The version of nodes and pods as they are listed. What is written later has a higher one than any object of the input.
const FIRST_VERSION: u64 = 1 << 62;

/// Everything that is listed before the first pod is decided.
#[derive(Debug, Default)]
pub struct ClusterLists {
    /// Nodes. Their locks are free, whatever they say.
    pub nodes: Vec<NodeInfo>,
    /// Pods in the order in which they are seen. What their nodes' device plugins still owe them is done.
    pub pods: Vec<PodInfo>,
    /// Quotas.
    pub quotas: Vec<QuotaInfo>,
    /// Other objects. A kind of PodGroup of which there is none is not served: each pod is placed alone.
    pub objects: Vec<Object>,
}

/// A scheduler, and the cluster that answers it.
#[derive(Debug)]
pub struct SimulatedCluster {
    scheduler: Scheduler,
    /// The pods that want a place, or wanted one, as they are. The others are as the scheduler has seen them.
    wanting: HashMap<Uid, PodInfo>,
    version: u64,
    now: Timestamp,
    victims: Victims,
}

/// What becomes of pods that are to be deleted or evicted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Victims {
    /// They stay, and nothing is answered: what would be done is to be seen, not what comes of it.
    Stay,
    /// They end at once.
    Leave,
}

impl SimulatedCluster {
    /// A cluster in which nothing has been decided yet.
    pub fn new(settings: Settings, lists: ClusterLists, now: Timestamp) -> Self {
        let ClusterLists { nodes, mut pods, quotas, objects } = lists;
        for pod in &mut pods {
            answer(pod);
            pod.resource_version = FIRST_VERSION.to_string().into();
        }
        let wanting = pods.iter().filter(|pod| pod.claim != Claim::None);
        let wanting = wanting.map(|pod| (pod.key.uid.clone(), pod.clone())).collect();
        let mut cluster = Self {
            scheduler: Scheduler::new(settings),
            wanting,
            version: FIRST_VERSION,
            now,
            victims: Victims::Stay,
        };
        let mut of_kind: BTreeMap<Kind, Vec<Object>> = BTreeMap::new();
        for object in objects {
            of_kind.entry(object.kind()).or_default().push(object);
        }
        cluster.observe(Event::Pod(PodChange::Listed(pods.into_iter().collect())));
        cluster.observe(Event::Node(NodeChange::Listed(nodes.into_iter().map(unlocked).collect())));
        cluster.observe(Event::Quota(QuotaChange::Listed(quotas)));
        for kind in Kind::ALL {
            let listed = of_kind.remove(kind).unwrap_or_default();
            let is_served = !listed.is_empty() || !Kind::POD_GROUPS.contains(kind);
            let change =
                if is_served { ObjectChange::Listed(*kind, listed) } else { ObjectChange::Unserved(*kind) };
            cluster.observe(Event::Object(change));
        }
        cluster
    }

    /// The same, in which pods that are to be deleted or evicted end at once.
    #[must_use]
    pub fn with_victims_that_leave(self) -> Self {
        Self { victims: Victims::Leave, ..self }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// It is this time now.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.observe(Event::Tick);
    }

    /// A pod is created.
    pub fn arrive(&mut self, pod: PodInfo) {
        let pod = PodInfo { resource_version: self.next_version().into(), ..pod };
        self.wanting.insert(pod.key.uid.clone(), pod.clone());
        self.observe(Event::Pod(PodChange::Seen(Box::new(pod))));
    }

    /// Another object is created.
    pub fn create(&mut self, object: Object) {
        self.observe(Event::Object(ObjectChange::Seen(object)));
    }

    /// Another object is deleted.
    pub fn delete(&mut self, object: &Object) {
        self.observe(Event::Object(ObjectChange::Gone(object.kind(), object.name())));
    }

    /// A pod ends.
    pub fn end(&mut self, uid: &Uid) {
        let Some(pod) = self.pod(uid).cloned() else { return };
        self.wanting.remove(uid);
        self.observe(Event::Pod(PodChange::Ended(uid.clone())));
        let left = device_claims::left(&pod, self.scheduler.snapshot().resource_claims());
        for mut claim in left {
            claim.metadata.resource_version = self.next_version();
            self.observe(Event::Object(ObjectChange::Seen(Object::ResourceClaim(Arc::new(claim)))));
        }
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The pod as it is now.
    pub fn pod(&self, uid: &str) -> Option<&PodInfo> {
        self.wanting.get(uid).or_else(|| self.scheduler.view().pod(uid))
    }

    /// Lets the scheduler have one turn, and answers what it wants done, which is returned; empty: nothing is left to do at this time.
    pub fn turn(&mut self) -> Vec<Effect> {
        let effects = self.scheduler.settle(self.now);
        for effect in &effects {
            self.carry_out(effect);
        }
        effects
    }

    /// Lets the time pass until something is due, where pods are in the queue; whether there are such.
    pub fn wait_for_queue(&mut self) -> bool {
        let has_active = self.scheduler.view().standing(self.now).active > 0;
        match self.scheduler.next_deadline().filter(|_| has_active) {
            Some(deadline) => {
                self.advance(deadline);
                true
            }
            None => false,
        }
    }

    fn observe(&mut self, event: Event) {
        self.scheduler.observe(event, self.now);
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Does what an API server, controllers and agents would do for it.
    fn carry_out(&mut self, effect: &Effect) {
        match effect {
            Effect::TakeLock { pod, node, locks, .. } => self.take_lock(pod, node, locks),
            Effect::ReleaseLock { node, resource_version, locks } => {
                self.free_locks(node);
                self.observe(Event::LockReleased {
                    node: node.clone(),
                    resource_version: resource_version.clone(),
                    locks: locks.clone(),
                    outcome: ReleaseOutcome::Done,
                });
            }
            Effect::Bind { pod, node, allocations, .. } => self.bind(pod, node, allocations),
            Effect::Prebind { pod, write } => self.prebind(pod, write),
            Effect::Nominate { pod, node, room } => self.nominate(pod, node.as_ref(), *room),
            Effect::Withdraw { pod, node, .. } => {
                let (pod, node) = (pod.clone(), node.clone());
                self.observe(Event::Withdrawn { pod, node, outcome: WithdrawOutcome::Done });
            }
            Effect::CompareClaims(comparison) => {
                let mut allowance = Allowance::of(compare::MOST);
                self.observe(Event::Computed(Computed::Claims(comparison.run(|toll| allowance.take(toll)))));
            }
            Effect::RenewMix(renewal) => self.observe(Event::Computed(Computed::Mix(renewal.clone().skip()))),
            Effect::Read(request) => self.read(request),
            Effect::TellUnschedulable { pod, reason, .. } => {
                let (pod, message) = (pod.clone(), reason.message().full);
                self.observe(Event::Told { pod, message, outcome: TellOutcome::Done });
            }
            Effect::Preempt { pod, preemptor, .. } if self.victims == Victims::Leave => {
                let outcome = WriteOutcome::Written { resource_version: self.next_version() };
                let (victim, preemptor) = (pod.clone(), preemptor.clone());
                self.observe(Event::Preempted { pod: victim, preemptor, outcome });
                self.end(&pod.uid);
            }
            Effect::EvictFromZone { eviction } if self.victims == Victims::Leave => {
                let (eviction, outcome) = (eviction.clone(), EvictionOutcome::Granted);
                let uid = eviction.pod.uid.clone();
                self.observe(Event::EvictionAnswered { eviction, outcome });
                self.end(&uid);
            }
            Effect::RollBack { pod, .. } if self.victims == Victims::Leave => self.end(&pod.uid),
            Effect::Preempt { .. }
            | Effect::RollBack { .. }
            | Effect::EvictFromZone { .. }
            | Effect::TellEvictionPostponed { .. }
            | Effect::TellScheduled { .. }
            | Effect::TellAgent { .. }
            | Effect::TellGroup(_)
            | Effect::TellWaiting { .. }
            | Effect::ReportFinding { .. }
            | Effect::CountFindings { .. } => {}
        }
    }

    fn take_lock(&mut self, pod: &PodKey, node: &NodeName, locks: &[LockName]) {
        let outcome = LockOutcome::Taken { resource_version: self.next_version() };
        let (pod, node) = (pod.clone(), node.clone());
        self.observe(Event::LockAnswered { pod, node, locks: locks.to_vec(), outcome });
    }

    /// The device plugin has given the locks of its node back.
    fn free_locks(&mut self, node: &NodeName) {
        let Some(state) = self.scheduler.snapshot().node(node) else { return };
        let mut info = NodeInfo::clone(&state.info);
        info.resource_version = self.next_version();
        self.observe(Event::Node(NodeChange::Seen(Box::new(info))));
    }

    /// The pod is bound, and its device plugin has allocated what it was given.
    fn bind(&mut self, pod: &PodKey, node: &NodeName, allocations: &[Allocation]) {
        let (key, name) = (pod.clone(), node.clone());
        self.observe(Event::BindAnswered { pod: key, node: name, outcome: BindOutcome::Bound });
        let resource_version = self.next_version();
        let Some(info) = self.wanting.get_mut(&pod.uid) else { return };
        let holding = Holding {
            node: node.clone(),
            allocations: allocations.to_vec().into(),
            unassigned: ThinVec::new(),
            init: InitPhase::Ahead,
            takeable: ThinVec::new(),
            binding: Binding::Bound,
            tenure: None,
        };
        let status = WaitingPodStatus {
            nominated: None,
            told: None,
            room: None,
            ..WaitingPodStatus::clone(&info.status)
        };
        // What claims take of the node counts as the status says.
        let footprint = charged(info, &[]);
        let bound = PodInfo {
            claim: Claim::None,
            holding: Some(holding),
            status: Arc::new(status),
            resource_version: resource_version.into(),
            footprint,
            ..info.clone()
        };
        *info = bound;
        answer(info);
        let seen = Box::new(info.clone());
        self.observe(Event::Pod(PodChange::Seen(seen)));
        if self.scheduler.snapshot().node(node).is_some_and(|state| !state.info.locks.needed.is_empty()) {
            self.free_locks(node);
        }
    }

    /// A write for a claim is stored, and what follows from it is seen.
    fn prebind(&mut self, pod: &PodKey, write: &PrebindWrite) {
        let resource_version = self.next_version();
        if let PrebindWrite::StateClaim { status, .. } = write {
            if let Some(info) = self.wanting.get_mut(&pod.uid) {
                Arc::make_mut(&mut info.status).served =
                    status.clone().map(|status| StatedClaim { status, lasts: false });
                info.resource_version = resource_version.as_str().into();
                let seen = Box::new(info.clone());
                self.observe(Event::Pod(PodChange::Seen(seen)));
            }
        } else if let PrebindWrite::StateNodeResources { statuses, .. } = write {
            if let Some(info) = self.wanting.get_mut(&pod.uid) {
                Arc::make_mut(&mut info.status).taken = statuses.clone();
                info.resource_version = resource_version.as_str().into();
                let seen = Box::new(info.clone());
                self.observe(Event::Pod(PodChange::Seen(seen)));
            }
        } else {
            let changes = if write.is_of_devices() {
                device_claims::written(pod, write, &resource_version).into_iter().collect()
            } else {
                volumes::written(write, self.scheduler.snapshot().world(), &resource_version)
            };
            for change in changes {
                self.observe(Event::Object(change));
            }
        }
        let outcome = WriteOutcome::Written { resource_version };
        self.observe(Event::Prebound { pod: pod.clone(), write: write.clone(), outcome });
    }

    fn nominate(&mut self, pod: &PodKey, node: Option<&NodeName>, room: Option<RoomStatus>) {
        let resource_version = self.next_version();
        if let Some(info) = self.wanting.get_mut(&pod.uid) {
            let status = Arc::make_mut(&mut info.status);
            status.nominated = node.cloned();
            status.room = room.or(status.room);
            info.resource_version = resource_version.as_str().into();
        }
        let outcome = WriteOutcome::Written { resource_version };
        self.observe(Event::Nominated { pod: pod.clone(), node: node.cloned(), room, outcome });
    }

    fn read(&mut self, request: &ReadRequest) {
        let answer = match request {
            ReadRequest::Pod(pod) => {
                let found = self.pod(&pod.uid).cloned().map(Box::new);
                ReadAnswer::Pod { pod: pod.clone(), found }
            }
            ReadRequest::Node(node) => {
                let state = self.scheduler.snapshot().node(node);
                let found = state.map(|state| Box::new(NodeInfo::clone(&state.info)));
                let is_there =
                    |pod: &&PodInfo| pod.holding.as_ref().is_some_and(|holding| holding.node == *node);
                let pods = self.scheduler.view().pods().filter_map(|pod| self.pod(&pod.key.uid));
                let pods = pods.filter(is_there).cloned().collect();
                ReadAnswer::Node { node: node.clone(), found, pods }
            }
            ReadRequest::Holder { owner, since } => {
                ReadAnswer::Holder { owner: owner.clone(), since: *since, found: None }
            }
        };
        self.observe(Event::Read(answer));
    }
}

/// The node as it is listed: without a lock.
fn unlocked(mut node: NodeInfo) -> NodeInfo {
    for lock in &mut node.locks.needed {
        lock.state = Lock::Free;
    }
    node.resource_version = FIRST_VERSION.to_string();
    node
}

/// The node's device plugins do what they owe the pod.
fn answer(pod: &mut PodInfo) {
    for allocation in pod.holding.iter_mut().flat_map(|holding| Arc::make_mut(&mut holding.allocations)) {
        if matches!(allocation.answer, Answer::Awaited | Answer::ByLock) {
            allocation.answer = Answer::Succeeded;
        }
    }
}
