//! A simulation under way: the scheduler decides the pods one after the other, and what it wants written becomes their rows.

use std::{
    collections::{BTreeMap, HashMap},
    ops::ControlFlow,
};

use jiff::Timestamp;
use serde_json::Value;

use super::{
    claims::ClaimRow,
    explain::Explanation,
    report::{EvictionRow, SimulatedPod, Simulation},
    simulated_cluster::{ClusterLists, SimulatedCluster},
    volume::VolumeRow,
};
use crate::{
    cluster::{Reader, report::ledger, write::bind},
    device::{Allocation, LockName, LockOwner, Share},
    dialect::Dialects,
    scheduling::{
        Claim, Effect, NodeName, PendingReason, PodInfo, PodKey, Uid,
        model::{
            extended_resources::{INFIX, StatedClaim},
            gang::{GangName, Membership, Policy},
            message::Message,
        },
        plan::{eviction, gang::GangReason},
        plugin::score::weights::ScoreWeights,
        scheduler::Settings,
    },
};

/// Which nodes the output explains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Explain {
    /// None.
    Nothing,
    /// All: whether the pod fits there, and if not, why.
    EveryNode,
}

/// What a simulation starts from.
#[derive(Debug)]
pub struct SimulationStage {
    /// The settings of the scheduler.
    pub settings: Settings,
    /// What the scheduler lists, the pods that want a place among it.
    pub lists: ClusterLists,
    /// What is known of each pod that is told of, by its place among them.
    pub rows: BTreeMap<u64, SimulatedPod>,
    /// The places of those that want one in the cluster.
    pub positions: HashMap<Uid, u64>,
    /// The allocations of claims that are told as they are written, by namespace and name of the claim.
    pub allocated: BTreeMap<(String, String), Value>,
}

/// Why a simulation has no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// The scheduler always has something left to do.
    #[error("the scheduler has not come to an end after {0} turns")]
    Endless(usize),
    /// It was to go on no longer.
    #[error("the simulation was ended before all pods were decided")]
    Halted,
}

/// Asked before each turn whether the simulation goes on.
pub type Halt<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// A simulation under way.
struct SimulationRun<'a> {
    reader: &'a Reader,
    cluster: SimulatedCluster,
    /// The pods that have their places, in the order in which they were listed.
    settled: Vec<Uid>,
    /// How many others there are.
    wanting: usize,
    /// The allocations that are told as they are written.
    allocated: BTreeMap<(String, String), Value>,
    /// How nodes are compared.
    weights: ScoreWeights,
    explain: Explain,
    now: Timestamp,
    /// What has come of the pods, by their place.
    rows: BTreeMap<u64, SimulatedPod>,
    /// The places of the pods that wanted one in the cluster.
    positions: HashMap<Uid, u64>,
}

/// Places every pod that wants a place, and tells of those that have rows. Why a pod waits, is told in the words of `told`.
///
/// # Errors
///
/// It did not come to an end, or was halted.
pub fn simulate(
    stage: SimulationStage,
    reader: &Reader,
    (explain, told): (Explain, &dyn Fn(Message) -> String),
    now: Timestamp,
    halt: Halt<'_>,
) -> Result<Simulation, SimulationError> {
    let SimulationStage { settings, lists, rows, positions, allocated } = stage;
    let settled = lists.pods.iter().filter(|pod| pod.claim == Claim::None);
    let settled = settled.map(|pod| pod.key.uid.clone()).collect();
    let wanting = lists.pods.iter().filter(|pod| pod.claim != Claim::None).count();
    let weights = settings.weights;
    let cluster = SimulatedCluster::new(settings, lists, now);
    let run = SimulationRun {
        reader,
        cluster,
        settled,
        wanting,
        allocated,
        weights,
        explain,
        now,
        rows,
        positions,
    };
    run.finish(told, halt)
}

/// So many turns of the scheduler are allowed for each pod: a lock, a Binding, two writes for each of its claims, its nomination and victims.
const TURNS: usize = 1_000;

impl SimulationRun<'_> {
    /// Decides all pods, and says what has come of them.
    fn finish(
        mut self,
        told: &dyn Fn(Message) -> String,
        halt: Halt<'_>,
    ) -> Result<Simulation, SimulationError> {
        let evictions = self.evictions();
        let most = TURNS * (1 + self.wanting);
        for turn in 0.. {
            if turn == most {
                return Err(SimulationError::Endless(most));
            }
            if halt().is_break() {
                return Err(SimulationError::Halted);
            }
            let next = self.cluster.scheduler().view().next_pod().cloned();
            if let (Some(uid), Explain::EveryNode) = (&next, self.explain) {
                self.explain(uid);
            }
            let effects = self.cluster.turn();
            for effect in &effects {
                self.note(effect);
            }
            let is_still = effects.is_empty() && self.cluster.scheduler().view().next_pod() == next.as_ref();
            // A decided pod that waits for something which does not come holds up the others until its time is over.
            if is_still && !self.cluster.wait_for_queue() {
                break;
            }
        }
        self.tell_waiting(told);
        self.add_claims();
        let snapshot = self.cluster.scheduler().snapshot();
        let names = |uid: &Uid| self.cluster.pod(uid).map(|pod| pod.key.to_string());
        let nodes = ledger::nodes(snapshot, self.dialects(), &names);
        Ok(Simulation { pods: self.rows.into_values().collect(), evictions, other_evictions: 0, nodes })
    }

    fn dialects(&self) -> &Dialects {
        self.reader.dialects()
    }

    /// The pods whose window has closed and whose budgets let them go.
    fn evictions(&self) -> Vec<EvictionRow> {
        let snapshot = self.cluster.scheduler().snapshot();
        let bound = self.settled.iter().filter_map(|uid| self.cluster.pod(uid));
        let zone = |node: &NodeName| snapshot.node(node)?.zone.clone();
        let round = eviction::round(bound, zone, snapshot.objects(), |_| false);
        round.evictions.iter().map(EvictionRow::of).collect()
    }

    /// Says what each node makes of the pod whose turn comes, and of those that are placed together with it.
    fn explain(&mut self, uid: &Uid) {
        let together = self.placed_with(uid);
        let world = self.cluster.scheduler().snapshot().world();
        let (dialects, weights, now) = (self.reader.dialects(), &self.weights, self.now);
        let explanation = Explanation { world, dialects, weights, now };
        for uid in together {
            let Some(demand) = self.cluster.pod(&uid).and_then(PodInfo::demand) else { continue };
            let row = self.positions.get(&uid).and_then(|position| self.rows.get_mut(position));
            if let Some(row) = row {
                row.nodes = Some(explanation.verdicts(&demand));
            }
        }
    }

    /// The pod, and those of its gang that wait.
    fn placed_with(&self, uid: &Uid) -> Vec<Uid> {
        let gang = self.cluster.pod(uid).and_then(|pod| pod.groups.gang());
        let objects = self.cluster.scheduler().snapshot().objects();
        let is_one =
            |gang: &GangName| matches!(objects.membership(gang), Membership::Policy(Policy::Gang(_)));
        let Some(gang) = gang.map(|member| &member.gang).filter(|gang| is_one(gang)) else {
            return vec![uid.clone()];
        };
        let leaves = objects.groups().leaves(&objects.groups().root(gang));
        let is_mate = |uid: &&Uid| {
            let pod = self.cluster.pod(uid).filter(|pod| pod.demand().is_some());
            pod.and_then(|pod| pod.groups.gang()).is_some_and(|member| leaves.contains(&member.gang))
        };
        self.positions.keys().filter(is_mate).cloned().collect()
    }

    /// Takes into the pods' rows what is done for them.
    fn note(&mut self, effect: &Effect) {
        match effect {
            Effect::TakeLock { pod, locks, .. } => {
                let locks = self.locks(pod, locks);
                self.change(pod, |row| row.locked(locks));
            }
            Effect::Prebind { pod, write } => {
                if let Some(volume) = VolumeRow::of(write) {
                    self.change(pod, |row| row.with_volume(volume));
                }
            }
            Effect::Bind { pod, node, allocations, devices, zone } => {
                let given = (&**allocations, devices.as_ref());
                let record = bind::record(self.dialects(), given, node, zone.as_deref(), self.now);
                let shares = self.shares(allocations);
                self.change(pod, |row| match record {
                    Ok(record) => row.bound(node, &shares, record),
                    Err(reason) => row.unschedulable(reason),
                });
            }
            Effect::Nominate { pod, node, room: None } => {
                let victims = self.cluster.scheduler().view().victims(&pod.uid);
                let victims = victims.into_iter().map(ToString::to_string).collect();
                self.change(pod, |row| row.nominated(node.as_ref(), victims));
            }
            _ => {}
        }
    }

    fn change(&mut self, pod: &PodKey, change: impl FnOnce(SimulatedPod) -> SimulatedPod) {
        let Some(position) = self.positions.get(&pod.uid) else { return };
        if let Some(row) = self.rows.remove(position) {
            self.rows.insert(*position, change(row));
        }
    }

    /// Says of each pod that has no place why it waits.
    fn tell_waiting(&mut self, told: &dyn Fn(Message) -> String) {
        let view = self.cluster.scheduler().view();
        for (uid, position) in &self.positions {
            let Some(reason) = view.reason(uid).filter(|_| self.is_waiting(uid)) else { continue };
            if let Some(row) = self.rows.remove(position) {
                let error = match reason {
                    PendingReason::Fit(error) => Some(&**error),
                    PendingReason::Gang(GangReason::NoRoom(no_room)) => no_room.error(),
                    _ => None,
                };
                self.rows.insert(*position, row.waiting(told(reason.message()), error));
            }
        }
    }

    fn is_waiting(&self, uid: &Uid) -> bool {
        self.cluster.pod(uid).is_some_and(|pod| pod.demand().is_some())
    }

    /// The claims of devices that each pod uses, as they stand in the end.
    fn add_claims(&mut self) {
        for (uid, position) in &self.positions {
            let Some(info) = self.cluster.pod(uid) else { continue };
            let claims = self.claims(info);
            if let Some(row) = self.rows.get_mut(position) {
                row.claims = claims;
            }
        }
    }

    fn claims(&self, info: &PodInfo) -> Vec<ClaimRow> {
        let known = self.cluster.scheduler().snapshot().resource_claims();
        let namespace = &info.key.namespace;
        let mut rows: Vec<ClaimRow> = Vec::new();
        for name in info.footprint.resource_claims.iter().filter_map(|used| used.claim.as_ref()) {
            if known.claim(namespace, name).is_none() || rows.iter().any(|row| row.is_named(name)) {
                continue;
            }
            let names = (namespace.to_string(), name.to_string());
            let unchanged = self.allocated.get(&names).cloned();
            rows.push(ClaimRow::new(names, unchanged, known.allocation(namespace, name)));
        }
        // The claim that serves extended resources is called by what it has in common in every run.
        if let Some(StatedClaim { status: served, .. }) = &info.status.served {
            let names = (namespace.to_string(), format!("{}{INFIX}", info.key.name));
            let given = known.allocation(namespace, &served.resource_claim_name);
            rows.push(ClaimRow::new(names, None, given));
        }
        rows
    }

    /// The locks that are taken for the pod, each under its key.
    fn locks(&self, pod: &PodKey, locks: &[LockName]) -> BTreeMap<String, String> {
        let owner = LockOwner { namespace: pod.namespace.to_string(), name: pod.name.to_string() };
        let specs = locks.iter().filter_map(|lock| self.dialects().lock(lock));
        specs.map(|spec| (spec.key.clone(), spec.value(&owner, self.now))).collect()
    }

    /// Each share in words.
    fn shares(&self, allocations: &[Allocation]) -> Vec<String> {
        let of = |one: &Allocation| {
            let dialect = self.dialects().named(&one.profile).expect("an ask is of one of the dialects");
            let unit = dialect.profile().core_budget.unit();
            let words =
                |share: &Share| format!("{} ({}, {})", share.card, share.memory, unit.words(share.cores));
            let devices = one.assignment.devices.iter().flat_map(|(kind, devices)| {
                devices.iter().map(move |device| format!("{kind} {}", device.minor))
            });
            one.assignment.shares().map(words).chain(devices).collect::<Vec<_>>()
        };
        allocations.iter().flat_map(of).collect()
    }
}
