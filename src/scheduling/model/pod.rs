//! A pod, as scheduling sees it: what it wants, what it holds, how far it is.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use thin_vec::ThinVec;

pub use super::importance::{Deletion, Importance, PreemptionPolicy};
use super::{
    extended_resources::StatedClaim,
    feature::Feature,
    footprint::{Footprint, PortsAndDisks},
    gang::Member,
    kept_room::RoomStatus,
    name::{NodeName, Uid},
    node_affinity::NodeAffinityTerms,
    origin::Origin,
    resources::{DeclaredResources, ResourceAmounts},
    steps::{COMPARE, JUDGE},
    tdm::{Revocable, job::JobMember},
    tenure::Tenure,
};
use crate::{
    device::{Allocation, DeviceType, InitPhase, NodePolicy, ProfileName, ProfileRequest},
    object::{Toleration, pod::NodeAllocatableClaimStatus},
};

/// Whether one version of an object is older than another: versions are numbers that grow (KEP-5504); where they can't be read,
/// neither is.
pub fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<u64>(), than.parse::<u64>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

/// How a pod is named.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PodKey {
    /// Its uid.
    pub uid: Uid,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for PodKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// What a pod wants of a node beside room.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Constraints {
    /// Labels and names.
    pub affinity: NodeAffinityTerms,
    /// Taints that it bears.
    pub tolerations: Vec<Toleration>,
    /// Ports and disks of the node that only one pod can have.
    pub exclusive: Arc<PortsAndDisks>,
    /// Features of the kubelet that it needs.
    pub features: Vec<Feature>,
    /// Which revocable zones it may use, and how long it runs.
    pub revocable: Revocable,
    /// What it declares of resources, where it has claims, whose devices may take more of the node.
    pub declared: Option<Arc<DeclaredResources>>,
}

/// All that decides where a pod fits. Pods with equal asks form a class and are decided alike.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Ask {
    /// Shares of cards, one request for each dialect; a node has to serve all of them.
    pub devices: Vec<ProfileRequest>,
    /// Resources that Kubernetes accounts.
    pub resources: Arc<ResourceAmounts>,
    /// Labels, taints and the rest.
    pub constraints: Constraints,
    /// Which node is taken first, where it asks for no shares: these have a policy of their own.
    pub policy: NodePolicy,
}

impl Ask {
    /// What judging one node for it costs, in steps.
    pub(in crate::scheduling) fn cost(&self) -> u64 {
        let Constraints { affinity, tolerations, .. } = &self.constraints;
        let compared = affinity.requirements() + tolerations.len() + self.resources.iter().count();
        let containers: usize = self.devices.iter().map(|device| device.request.containers.len()).sum();
        JUDGE
            + COMPARE * u64::try_from(compared).unwrap_or(u64::MAX)
            + JUDGE / 4 * u64::try_from(containers).unwrap_or(u64::MAX)
    }

    /// Whether the node is taken first where the pod leaves least of no use.
    pub fn wastes_least(&self) -> bool {
        let mut shares = self.devices.iter().map(|device| device.request.node_policy).peekable();
        match shares.peek() {
            None => self.policy == NodePolicy::LeastWaste,
            Some(_) => shares.all(|policy| policy == NodePolicy::LeastWaste),
        }
    }

    /// The dialects whose cards it asks for.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileName> {
        self.devices.iter().map(|device| &device.profile.name)
    }

    /// Those of them whose agents serve the pod. Of devices by type, agents of other projects serve GPUs alone.
    pub fn served(&self) -> impl Iterator<Item = &ProfileName> {
        let serves =
            |device: &&ProfileRequest| device.joint.as_ref().is_none_or(|joint| joint.asks(DeviceType::Gpu));
        self.devices.iter().filter(serves).map(|device| &device.profile.name)
    }
}

/// A pod that is to be placed: what it asks of one node, and what it is among other pods.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Demand {
    /// What decides on one node.
    pub ask: Arc<Ask>,
    /// What decides among other pods.
    pub footprint: Arc<Footprint>,
    /// Its priority: nodes that are kept for pods of no lower one have less room for it.
    pub priority: i32,
    /// Its uid: a node that is kept for it is its own.
    pub uid: Uid,
    /// Whether it may preempt pods of lower priority.
    pub preemption_policy: PreemptionPolicy,
    /// The full name of its PodGroup of Kubernetes: it does not preempt that group.
    pub group: Option<Arc<str>>,
    /// The node that is kept for it, as its status says: it is tried first.
    pub nominated: Option<NodeName>,
    /// What it is made from: it moves scores alone.
    pub origin: Option<Arc<Origin>>,
    /// The claim that serves extended resources of it, as its status says.
    pub served: Option<StatedClaim>,
    /// What its status says that claims take of a node, which an earlier attempt has written.
    pub taken: Arc<[NodeAllocatableClaimStatus]>,
}

impl Demand {
    /// Whether both pods may go to the same places: what is found out for one holds for the other.
    pub fn is_alike(&self, other: &Self) -> bool {
        // A Reservation may be for one of them.
        let alone =
            |demand: &Self| !demand.footprint.is_cross_node() && demand.footprint.reservation.is_none();
        self.ask == other.ask
            && self.priority == other.priority
            && self.footprint.namespace == other.footprint.namespace
            && self.footprint.labels == other.footprint.labels
            && self.nominated == other.nominated
            && alone(self)
            && alone(other)
    }
}

/// What there is to do for a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Claim {
    /// Nothing: it is not ours, bound, gated, or on its way out.
    None,
    /// A place.
    Place(Arc<Ask>),
    /// Nothing but to say why it can't be read.
    Unreadable(Box<UnreadableRequest>),
}

/// Why it can't be read what a pod asks for, in words.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnreadableRequest(pub String);

impl Claim {
    /// Nothing but to say this.
    pub fn unreadable(why: String) -> Self {
        Self::Unreadable(Box::new(UnreadableRequest(why)))
    }
}

/// How far a pod is in its life.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stage {
    /// Not started: phase `Pending`.
    Pending,
    /// Started.
    Running,
    /// Ended: it holds nothing any more.
    Ended,
}

/// What a pod holds on its node.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Holding {
    /// The node.
    pub node: NodeName,
    /// Its shares of cards, one allocation for each dialect; none: it uses no cards.
    pub allocations: Arc<[Allocation]>,
    /// The dialects of which the pod asks for shares and carries no assignment, where it is bound.
    pub unassigned: ThinVec<ProfileName>,
    /// Whether its init containers still count.
    pub init: InitPhase,
    /// The dialects whose agents may serve another pod with its assignments once it is dead.
    pub takeable: ThinVec<ProfileName>,
    /// Whether the pod is bound there, or only meant to be by another scheduler.
    pub binding: Binding,
    /// Since when it holds that, and whose it is; `None`: it is not bound.
    pub tenure: Option<Arc<Tenure>>,
}

/// Who places a pod.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Placer {
    /// Berth.
    #[default]
    Berth,
    /// Another scheduler.
    Another,
}

/// Whether an assignment has been committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Binding {
    /// `spec.nodeName` is set.
    Bound,
    /// Another scheduler has annotated the pod but not bound it.
    Intended,
}

/// When a pod came, and when it is to go.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Lifetime {
    /// When it was created.
    pub created: Timestamp,
    /// When it is to be gone, where it is being deleted, as few pods are.
    pub leaving: Option<Box<Timestamp>>,
}

/// What the status of a waiting pod says.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct WaitingPodStatus {
    /// The node that is kept for it.
    pub nominated: Option<NodeName>,
    /// The claim that serves extended resources of it.
    pub served: Option<StatedClaim>,
    /// What claims take of the node's own resources.
    pub taken: Arc<[NodeAllocatableClaimStatus]>,
    /// The message of its `PodScheduled=False/Unschedulable` condition, where it has one.
    pub told: Option<String>,
    /// What became of the room that was kept for it; `None`: none was.
    pub room: Option<RoomStatus>,
}

/// The groups of pods that a pod belongs to. Most belong to none, and take one word for that.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PodGroups(Option<Arc<Memberships>>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Memberships {
    gang: Option<Member>,
    job: Option<JobMember>,
}

impl PodGroups {
    /// The group that a pod is placed with, and the job whose budget evictions at the end of a window observe, where the settings have windows.
    pub fn of(gang: Option<Member>, job: Option<JobMember>) -> Self {
        let is_any = gang.is_some() || job.is_some();
        Self(is_any.then(|| Arc::new(Memberships { gang, job })))
    }

    /// The one that the pod is placed with.
    pub fn gang(&self) -> Option<&Member> {
        self.0.as_ref()?.gang.as_ref()
    }

    /// The job whose budget evictions at the end of a window observe, where the settings have windows.
    pub fn job(&self) -> Option<&JobMember> {
        self.0.as_ref()?.job.as_ref()
    }
}

/// A pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodInfo {
    /// Its names.
    pub key: PodKey,
    /// Its version; what is older than what is known is passed over.
    pub resource_version: Box<str>,
    /// Its priority, and what else decides whether it is a victim of preemption.
    pub importance: Importance,
    /// When it was created, and when it is to be gone.
    pub lifetime: Lifetime,
    /// Who places it.
    pub placer: Placer,
    /// How far it is.
    pub stage: Stage,
    /// What there is to do for it.
    pub claim: Claim,
    /// What it holds.
    pub holding: Option<Holding>,
    /// What it is to the plugins beside its cards.
    pub footprint: Arc<Footprint>,
    /// What it is made from, while it waits.
    pub origin: Option<Arc<Origin>>,
    /// What its status says while it waits.
    pub status: Arc<WaitingPodStatus>,
    /// The groups of pods that it belongs to.
    pub groups: PodGroups,
}

impl PodInfo {
    /// What the pod asks for, where it is to be placed.
    pub fn demand(&self) -> Option<Demand> {
        match &self.claim {
            Claim::Place(ask) => Some(Demand {
                ask: ask.clone(),
                footprint: self.footprint.clone(),
                priority: self.importance.priority,
                preemption_policy: self.importance.preemption_policy,
                group: self.importance.group.clone(),
                uid: self.key.uid.clone(),
                nominated: self.status.nominated.clone(),
                origin: self.origin.clone(),
                served: self.status.served.clone(),
                taken: self.status.taken.clone(),
            }),
            Claim::None | Claim::Unreadable(_) => None,
        }
    }
}
