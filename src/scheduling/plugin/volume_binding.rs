//! Whether the claims of a pod can be mounted on a node: volumes that are bound by their node affinity, volumes that are to be bound
//! or made with the pod by what there is for the node.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/volumebinding` and `k8s.io/component-helpers/storage/volume`. Volumes of in-tree
//! drivers are not translated to CSI: where one carries only the old zone labels, they count as they are.

mod delayed;
pub mod scoring;

use std::{borrow::Cow, collections::BTreeSet, fmt, sync::Arc};

use super::{
    contract::{PreFilter, PreFiltered, PreScored, Reach, Reasons, Rejection, SchedulingPlugin},
    pod_counts::PodCounts,
};
use crate::{
    object::{
        Amount, Quantity, Requirement,
        selector::LabelValues,
        storage::{PersistentVolume, PersistentVolumeClaim, StorageClass},
    },
    scheduling::{
        model::{
            change::Change,
            footprint::{ClaimUse, Footprint},
            kind::Kind,
            kube_scheduler::KubeScheduler,
            name::full_name,
            node::NodeInfo,
            pod::Demand,
            prebind_step::{PrebindStep, VolumeChoice},
            steps::COMPARE,
        },
        world::{World, node_state::NodeState, object::Objects},
    },
};
use delayed::Delayed;
use scoring::VolumeCapacity;

/// Rejects a node where a claim can't be mounted, bound or made, and prefers nodes with more storage left. It scores in kube-scheduler by a feature
/// gate that is on by default from v1.37 on.
#[derive(Debug)]
pub struct VolumeBinding;

impl SchedulingPlugin for VolumeBinding {
    const NAME: &'static str = "VolumeBinding";
    const REACH: Reach = Reach::Cluster;
    const WEIGHT: Option<u32> = Some(0);
    const WEIGHT_SINCE: Option<(KubeScheduler, u32)> = Some((KubeScheduler::V1_37, 1));

    type Reason = VolumeReason;

    fn helps(pod: &Footprint, change: &Change, _objects: &Objects) -> bool {
        match change {
            Change::Object(Kind::PersistentVolumeClaim, name) => {
                pod.claims.iter().any(|one| full_name(&pod.namespace, &one.name) == *name)
            }
            Change::Object(kind, _) => Kind::STORAGE.contains(kind),
            Change::Node => true,
            Change::PodAdded(_)
            | Change::PodRemoved(_)
            | Change::ResourcesFreed
            | Change::Nomination
            | Change::DevicesFreed
            | Change::Charged(_)
            | Change::CardsClaimed(_) => false,
        }
    }
}

impl PreFilter for VolumeBinding {
    type Found<'a> = Arc<Claims<'a>>;

    fn prepare<'a>(
        demand: &'a Demand,
        world: &'a World,
        counts: &mut PodCounts,
    ) -> Result<Option<Arc<Claims<'a>>>, VolumeReason> {
        let Footprint { namespace, claims, .. } = &*demand.footprint;
        let claims = claims.iter().filter_map(|used| world.objects().claim(namespace, &used.name));
        let compared = claims.map(|claim| world.objects().storage_for(claim)).sum();
        counts.steps().add(COMPARE * 4, compared);
        Ok(Claims::of(demand, world)?.map(Arc::new))
    }
}

impl<'a> PreFiltered<'a, VolumeReason> for Arc<Claims<'a>> {
    fn test(&self, node: &NodeState) -> Result<(), Reasons<VolumeReason>> {
        self.choose(&node.info).map(drop)
    }

    fn steps(&self, node: &NodeState) -> Result<Vec<PrebindStep>, Reasons<VolumeReason>> {
        Ok(self.choose(&node.info)?.into_iter().map(PrebindStep::Volume).collect())
    }

    fn scoring(&self) -> Option<Box<dyn PreScored + 'a>> {
        VolumeCapacity::of(self).map(|capacity| Box::new(capacity) as Box<dyn PreScored + 'a>)
    }
}

/// Why a pod's claims keep it from a node.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum VolumeReason {
    /// A volume that a claim is bound to does not exist.
    Missing,
    /// A volume that a claim is bound to can't be mounted there.
    NodeAffinity,
    /// No volume can be bound to a claim or made for it there.
    NoneToBind,
    /// There is too little storage for a volume to be made there.
    StorageFull,
    /// Objects of these kinds, which decide on the pod's claims, are not known yet.
    StorageNotListed(Vec<Kind>),
    /// A claim of this name does not exist.
    ClaimMissing(Arc<str>),
    /// The claim of this name that lives as long as the pod does not exist yet.
    EphemeralClaimMissing(Arc<str>),
    /// The volume of the claim of this name is lost.
    ClaimLost(Arc<str>),
    /// The claim of this name is being deleted.
    ClaimDeleted(Arc<str>),
    /// The claim of this name was not made for the pod.
    ClaimNotOwned(Arc<str>),
    /// A claim is to be bound before the pod is placed, and is not.
    ClaimsUnbound,
}

impl Rejection for VolumeReason {
    fn name(&self) -> Cow<'static, str> {
        let name = match self {
            Self::Missing => "VolumeMissing",
            Self::NodeAffinity => "VolumeNodeAffinity",
            Self::NoneToBind => "VolumeBinding",
            Self::StorageFull => "StorageFull",
            Self::StorageNotListed(_) => "StorageNotListed",
            Self::ClaimMissing(_) | Self::EphemeralClaimMissing(_) => "ClaimMissing",
            Self::ClaimLost(_) => "ClaimLost",
            Self::ClaimDeleted(_) => "ClaimDeleted",
            Self::ClaimNotOwned(_) => "ClaimNotOwned",
            Self::ClaimsUnbound => "ClaimsUnbound",
        };
        name.into()
    }
}

impl fmt::Display for VolumeReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, what) = match self {
            Self::Missing => {
                return formatter
                    .write_str("node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)");
            }
            Self::NodeAffinity => {
                return formatter.write_str("node(s) didn't match PersistentVolume's node affinity");
            }
            Self::NoneToBind => {
                return formatter.write_str("node(s) didn't find available persistent volumes to bind");
            }
            Self::StorageFull => return formatter.write_str("node(s) did not have enough free storage"),
            Self::StorageNotListed(kinds) => {
                let kinds: Vec<_> = kinds.iter().map(|kind| kind.resource()).collect();
                return write!(formatter, "these are not listed yet: {}", kinds.join(", "));
            }
            Self::EphemeralClaimMissing(name) => {
                let what = "waiting for ephemeral volume controller to create the persistentvolumeclaim";
                return write!(formatter, "{what} {name:?}");
            }
            Self::ClaimsUnbound => {
                return formatter.write_str("pod has unbound immediate PersistentVolumeClaims");
            }
            Self::ClaimMissing(name) => (name, "not found"),
            Self::ClaimLost(name) => (name, "bound to a non-existent persistentvolume"),
            Self::ClaimDeleted(name) => (name, "is being deleted"),
            Self::ClaimNotOwned(name) => (name, "was not created for the pod"),
        };
        write!(formatter, "persistentvolumeclaim {name:?} {what}")
    }
}

/// The node that a claim's volume is made for, as the scheduler writes it on the claim.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The node that the claim's volume is made for.
pub fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.metadata.annotation(SELECTED_NODE)
}

/// The claims of one pod that is to be placed.
#[derive(Debug)]
pub struct Claims<'a> {
    objects: &'a Objects,
    /// Volumes that are bound; `None` where the volume does not exist.
    bound: Vec<Option<&'a Arc<PersistentVolume>>>,
    /// Claims that are bound with the pod, smallest first.
    delayed: Vec<Delayed<'a>>,
}

impl<'a> Claims<'a> {
    /// The claims as they stand; `None`: the pod has none. The error holds on every node.
    fn of(demand: &Demand, world: &'a World) -> Result<Option<Self>, VolumeReason> {
        let objects = world.objects();
        let uses = &demand.footprint.claims;
        if uses.is_empty() {
            return Ok(None);
        }
        if !objects.are_listed(Kind::STORAGE) {
            return Err(VolumeReason::StorageNotListed(objects.unlisted(Kind::STORAGE).collect()));
        }
        let namespace = &demand.footprint.namespace;
        let found = uses.iter().map(|one| usable(one, namespace, objects)).collect::<Result<Vec<_>, _>>()?;
        let mut claims = Self { objects, bound: Vec::new(), delayed: Vec::new() };
        for claim in found {
            if claim.is_bound() {
                claims.bound.push(objects.volume(&claim.spec.volume_name));
            } else if claim.spec.volume_name.is_empty() && is_delayed(claim, objects) {
                claims.delayed.push(Delayed::prepare(claim, world));
            } else {
                return Err(VolumeReason::ClaimsUnbound);
            }
        }
        claims.delayed.sort_by_key(|delayed| size(delayed.claim.spec.resources.request("storage")));
        Ok(Some(claims))
    }

    /// What binds the claims with the pod on this node, or every reason why they can't be mounted there.
    fn choose(&self, node: &NodeInfo) -> Result<Vec<VolumeChoice>, Reasons<VolumeReason>> {
        let mut reasons = Reasons::new();
        if self.bound.iter().any(Option::is_none) {
            reasons.push(VolumeReason::Missing);
        } else if !self.bound.iter().flatten().all(|volume| is_mountable(volume, node)) {
            reasons.push(VolumeReason::NodeAffinity);
        }
        match self.choose_delayed(node) {
            Ok(choices) if reasons.is_empty() => Ok(choices),
            Ok(_) => Err(reasons),
            Err(reason) => {
                reasons.push(reason);
                Err(reasons)
            }
        }
    }

    fn choose_delayed(&self, node: &NodeInfo) -> Result<Vec<VolumeChoice>, VolumeReason> {
        let (mut choices, mut to_provision) = (Vec::new(), Vec::new());
        let (mut open, mut chosen) = (Vec::new(), BTreeSet::new());
        for delayed in &self.delayed {
            match (delayed.reserved, selected_node(delayed.claim)) {
                // Another pod has chosen for this claim, or a volume is being made for it: on that node or nowhere.
                (Some((other, _)), _) if *other != node.name => return Err(VolumeReason::NoneToBind),
                (_, Some(other)) if *other != *node.name => return Err(VolumeReason::NoneToBind),
                (Some((_, choice)), _) => choices.push(choice.clone()),
                (None, Some(_)) => to_provision.push(delayed),
                (None, None) => open.push(delayed),
            }
        }
        for delayed in open {
            match delayed.matching(node, &chosen) {
                Some(volume) => {
                    chosen.insert(volume.metadata.name.as_str());
                    let volume = volume.metadata.name.as_str().into();
                    choices.push(VolumeChoice::Bind { claim: delayed.name(), volume });
                }
                None => to_provision.push(delayed),
            }
        }
        for delayed in to_provision {
            delayed.can_be_made(node)?;
            choices.push(VolumeChoice::Provision { claim: delayed.name() });
        }
        Ok(choices)
    }
}

/// The claim that a pod uses, if it can be used at all.
fn usable<'a>(
    used: &ClaimUse,
    namespace: &str,
    objects: &'a Objects,
) -> Result<&'a Arc<PersistentVolumeClaim>, VolumeReason> {
    let name = || used.name.clone();
    let claim = objects.claim(namespace, &used.name).ok_or_else(|| match &used.owner {
        None => VolumeReason::ClaimMissing(name()),
        Some(_) => VolumeReason::EphemeralClaimMissing(name()),
    })?;
    if claim.status.phase == "Lost" {
        return Err(VolumeReason::ClaimLost(name()));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(VolumeReason::ClaimDeleted(name()));
    }
    let owned = |owner: &Arc<str>| claim.metadata.is_controlled_by(owner);
    if used.owner.as_ref().is_some_and(|owner| !owned(owner)) {
        return Err(VolumeReason::ClaimNotOwned(name()));
    }
    Ok(claim)
}

/// Whether the claim waits for its first pod.
fn is_delayed(claim: &PersistentVolumeClaim, objects: &Objects) -> bool {
    let class = objects.class(claim.class());
    class.is_some_and(|class| class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer"))
}

/// Whether the volume is bound to this claim or reserved for it.
pub fn is_meant_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|wanted| {
        wanted.name == claim.metadata.name
            && wanted.namespace == claim.metadata.namespace
            && (wanted.uid.is_empty() || wanted.uid == claim.metadata.uid)
    })
}

/// Whether a scheduler or the volume controller has bound the volume to this claim: with its uid.
pub fn is_bound_to(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let with_uid = volume.spec.claim_ref.as_ref().is_some_and(|bound| !bound.uid.is_empty());
    with_uid && is_meant_for(volume, claim)
}

/// Whether both are of one mode and one attributes class, and the volume is to stay.
fn is_alike(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (its, wanted) = (&volume.spec, &claim.spec);
    let modes = [&its.volume_mode, &wanted.volume_mode].map(|mode| mode.as_deref().unwrap_or("Filesystem"));
    let classes = [&its.volume_attributes_class_name, &wanted.volume_attributes_class_name];
    let classes = classes.map(|class| class.as_deref().unwrap_or_default());
    modes[0] == modes[1] && classes[0] == classes[1] && volume.metadata.deletion_timestamp.is_none()
}

/// Whether an available volume of the claim's class may be bound to it.
fn is_free_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    claim.spec.selector.as_ref().is_none_or(|selector| selector.matches(&volume.metadata))
        && claim.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
}

/// Whether the volume's node affinity admits the node.
pub fn is_mountable(volume: &PersistentVolume, node: &NodeInfo) -> bool {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    // Upstream matches a node that has labels and no name.
    required.is_none_or(|required| required.matches("", &node.labels))
}

/// Whether volumes of the class can be made for a node with these labels.
fn admits(class: &StorageClass, labels: &dyn LabelValues) -> bool {
    let listed = |requirement: &Requirement| {
        let value = labels.value(&requirement.key);
        value.is_some_and(|value| requirement.values.iter().any(|listed| listed == value))
    };
    let mut terms = class.allowed_topologies.iter().map(|term| &term.match_label_expressions);
    class.allowed_topologies.is_empty() || terms.any(|term| !term.is_empty() && term.iter().all(listed))
}

/// An amount of storage; 0 where it is absent or can't be read.
fn size(quantity: Option<&Quantity>) -> Amount {
    quantity.and_then(|quantity| quantity.amount().ok()).unwrap_or_default()
}
