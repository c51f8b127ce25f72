//! Whether the claims of a pod can be mounted on a node: volumes that are bound by their node affinity, volumes that are to be bound
//! or made with the pod by what there is for the node.
//!
//! Source: v1.36 `pkg/scheduler/framework/plugins/volumebinding` and `k8s.io/component-helpers/storage/volume`. Volumes of in-tree
//! drivers are not translated to CSI: where one carries only the old zone labels, they count as they are.

mod by_label;
mod delayed;
pub(in crate::scheduling) mod scoring;

use std::{collections::BTreeSet, sync::Arc};

use crate::{
    object::{
        Amount, Labels, Quantity, Requirement,
        storage::{PersistentVolume, PersistentVolumeClaim, StorageClass},
    },
    scheduling::{
        model::{
            change::Change,
            footprint::{ClaimUse, Footprint},
            kind::Kind,
            name::full_name,
            node::NodeInfo,
            node_affinity::matches_one_of,
            pod::Demand,
            prebind_step::VolumeChoice,
            reason::{NodeReasons, Reason},
        },
        world::{object::Objects, surroundings::Surroundings},
    },
};
use delayed::Delayed;

/// The node that a claim's volume is made for, as the scheduler writes it on the claim.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The node that the claim's volume is made for.
pub fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.metadata.annotation(SELECTED_NODE)
}

/// The claims of one pod that is to be placed.
#[derive(Debug)]
pub(in crate::scheduling) struct Claims<'a> {
    objects: &'a Objects,
    /// Volumes that are bound; `None` where the volume does not exist.
    bound: Vec<Option<&'a Arc<PersistentVolume>>>,
    /// Claims that are bound with the pod, smallest first.
    delayed: Vec<Delayed<'a>>,
}

impl<'a> Claims<'a> {
    /// The claims as they stand; `None`: the pod has none. The error holds on every node.
    pub(in crate::scheduling) fn prepare(
        demand: &Demand,
        around: Surroundings<'a>,
    ) -> Result<Option<Self>, Reason> {
        let objects = around.objects;
        let uses = &demand.footprint.claims;
        if uses.is_empty() {
            return Ok(None);
        }
        if !objects.are_listed(Kind::STORAGE) {
            return Err(Reason::StorageNotListed(objects.unlisted(Kind::STORAGE).collect()));
        }
        let namespace = &demand.footprint.namespace;
        let found = uses.iter().map(|one| usable(one, namespace, objects)).collect::<Result<Vec<_>, _>>()?;
        let mut claims = Self { objects, bound: Vec::new(), delayed: Vec::new() };
        for claim in found {
            if claim.is_bound() {
                claims.bound.push(objects.volume(&claim.spec.volume_name));
            } else if claim.spec.volume_name.is_empty() && is_delayed(claim, objects) {
                claims.delayed.push(Delayed::prepare(claim, around));
            } else {
                return Err(Reason::ClaimsUnbound);
            }
        }
        claims.delayed.sort_by_key(|delayed| size(delayed.claim.spec.resources.request("storage")));
        Ok(Some(claims))
    }

    /// What binds the claims with the pod on this node, or every reason why they can't be mounted there.
    pub(in crate::scheduling) fn choose(&self, node: &NodeInfo) -> Result<Vec<VolumeChoice>, NodeReasons> {
        let mut reasons = Vec::new();
        if self.bound.iter().any(Option::is_none) {
            reasons.push(Reason::VolumeMissing);
        } else if !self.bound.iter().flatten().all(|volume| is_mountable(volume, node)) {
            reasons.push(Reason::VolumeNodeAffinity);
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

    fn choose_delayed(&self, node: &NodeInfo) -> Result<Vec<VolumeChoice>, Reason> {
        let (mut choices, mut to_provision) = (Vec::new(), Vec::new());
        let (mut open, mut chosen) = (Vec::new(), BTreeSet::new());
        for delayed in &self.delayed {
            match (delayed.reserved, selected_node(delayed.claim)) {
                // Another pod has chosen for this claim, or a volume is being made for it: on that node or nowhere.
                (Some((other, _)), _) if *other != node.name => return Err(Reason::NoVolumeToBind),
                (_, Some(other)) if *other != *node.name => return Err(Reason::NoVolumeToBind),
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

/// Whether the change could let a pod through that was rejected here.
pub(in crate::scheduling) fn helps(pod: &Footprint, change: &Change) -> bool {
    match change {
        Change::Object(Kind::PersistentVolumeClaim, name) => {
            pod.claims.iter().any(|one| full_name(&pod.namespace, &one.name) == *name)
        }
        Change::Object(kind, _) => Kind::STORAGE.contains(kind),
        Change::Node => true,
        Change::PodAdded(_)
        | Change::PodRemoved(_)
        | Change::Nomination
        | Change::DevicesFreed
        | Change::Charged(_)
        | Change::CardsClaimed(_) => false,
    }
}

/// The claim that a pod uses, if it can be used at all.
fn usable<'a>(
    used: &ClaimUse,
    namespace: &str,
    objects: &'a Objects,
) -> Result<&'a Arc<PersistentVolumeClaim>, Reason> {
    let name = || used.name.clone();
    let claim = objects.claim(namespace, &used.name).ok_or_else(|| match &used.owner {
        None => Reason::ClaimMissing(name()),
        Some(_) => Reason::EphemeralClaimMissing(name()),
    })?;
    if claim.status.phase == "Lost" {
        return Err(Reason::ClaimLost(name()));
    }
    if claim.metadata.deletion_timestamp.is_some() {
        return Err(Reason::ClaimDeleted(name()));
    }
    let owned = |owner: &Arc<str>| claim.metadata.is_controlled_by(owner);
    if used.owner.as_ref().is_some_and(|owner| !owned(owner)) {
        return Err(Reason::ClaimNotOwned(name()));
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

/// Whether a volume that is meant for no claim may be bound to this one.
fn is_free_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let labels = || volume.metadata.labels.clone().unwrap_or_default();
    volume.status.phase == "Available"
        && claim.spec.selector.as_ref().is_none_or(|selector| selector.matches(&labels()))
        && volume.class() == claim.class()
        && claim.spec.access_modes.iter().all(|mode| volume.spec.access_modes.contains(mode))
}

/// Whether the volume's node affinity admits the node.
pub fn is_mountable(volume: &PersistentVolume, node: &NodeInfo) -> bool {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    // Upstream matches a node that has labels and no name.
    required.is_none_or(|required| matches_one_of(required, "", &node.labels))
}

/// Whether volumes of the class can be made for a node with these labels.
fn admits(class: &StorageClass, labels: &Labels) -> bool {
    let listed = |requirement: &Requirement| {
        labels.get(&requirement.key).is_some_and(|value| requirement.values.contains(value))
    };
    let mut terms = class.allowed_topologies.iter().map(|term| &term.match_label_expressions);
    class.allowed_topologies.is_empty() || terms.any(|term| !term.is_empty() && term.iter().all(listed))
}

/// An amount of storage; 0 where it is absent or can't be read.
fn size(quantity: Option<&Quantity>) -> Amount {
    quantity.and_then(|quantity| quantity.amount().ok()).unwrap_or_default()
}
