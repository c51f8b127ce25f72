//! Claims of volumes: a volume is bound to a claim, or a claim is given the node that a volume is to be made for; then the volume
//! controller and the provisioner do their part.

use std::sync::Arc;

use super::{PrebindProgress, Scheduler, State};
use crate::{
    object::storage::{PersistentVolume, PersistentVolumeClaim},
    scheduling::{
        effect::PrebindWrite,
        model::{
            message::Message,
            name::NodeName,
            pod::{PodKey, is_older},
            prebind_step::{PrebindStep, VolumeChoice},
        },
        plugin::volume_binding,
        world::node_state::NodeState,
    },
};

impl Scheduler {
    /// What is to be done for one claim, as claim and volume are known now.
    pub(super) fn volume_progress(
        &self,
        pod: &PodKey,
        node: &NodeState,
        (choice, state): (&VolumeChoice, &State),
    ) -> PrebindProgress {
        let name = choice.claim();
        let Some(claim) = self.snapshot.objects().claim(&pod.namespace, name) else {
            return PrebindProgress::failed(format!("persistentvolumeclaim {name:?} not found"));
        };
        if claim.is_bound() {
            return self.mountable(node, claim);
        }
        if matches!(state, State::Sent | State::Due(_)) {
            return PrebindProgress::Awaited;
        }
        match choice {
            VolumeChoice::Provision { .. } => provision(&node.info.name, claim, state),
            VolumeChoice::Bind { volume, .. } => match self.snapshot.objects().volume(volume) {
                Some(volume) => bind(volume, claim, state),
                None => PrebindProgress::failed(format!("persistentvolume {volume:?} not found")),
            },
        }
    }

    /// A claim that is bound must be bound to a volume that can be mounted on the node.
    fn mountable(&self, node: &NodeState, claim: &PersistentVolumeClaim) -> PrebindProgress {
        let name = &claim.spec.volume_name;
        let Some(volume) = self.snapshot.objects().volume(name) else { return PrebindProgress::Awaited };
        if volume_binding::is_mountable(volume, &node.info) {
            return PrebindProgress::Bound;
        }
        let full = format!("pv {name:?} node affinity doesn't match node {:?}", node.info.name);
        PrebindProgress::Failed(Message::with_own(
            full,
            format!("pv {name:?} node affinity doesn't match the node"),
        ))
    }

    /// The write that takes it back; `None`: the claim is bound or gone, or another pod makes use of what was written.
    pub(super) fn volume_taken_back(
        &self,
        pod: &PodKey,
        node: &NodeName,
        choice: &VolumeChoice,
    ) -> Option<PrebindWrite> {
        let claim = self.snapshot.objects().claim(&pod.namespace, choice.claim())?;
        let in_use = self.prebinding.pods.iter().any(|(uid, prebind)| {
            let namespace = self.pods.get(uid).map(|entry| &entry.info.key.namespace);
            let mut steps = prebind.steps.iter().filter_map(|step| PrebindStep::volume(&step.choice));
            namespace == Some(&pod.namespace) && steps.any(|step| step == choice)
        });
        if claim.is_bound() || in_use {
            return None;
        }
        match choice {
            VolumeChoice::Provision { .. } => {
                let selected = volume_binding::selected_node(claim)?;
                let write = PrebindWrite::SelectNode { claim: claim.clone(), node: None };
                (selected == &**node).then_some(write)
            }
            VolumeChoice::Bind { volume, .. } => {
                let volume = self.snapshot.objects().volume(volume)?;
                let ours = volume_binding::is_bound_to(volume, claim);
                ours.then(|| PrebindWrite::BindVolume { volume: volume.clone(), claim: None })
            }
        }
    }
}

/// A claim for which a volume is to be made on the node.
fn provision(node: &str, claim: &Arc<PersistentVolumeClaim>, state: &State) -> PrebindProgress {
    let known = &claim.metadata.resource_version;
    let selected = volume_binding::selected_node(claim);
    match state {
        // What is known may be older than what was written.
        State::Written(version) if is_older(known, version) => PrebindProgress::Awaited,
        State::Written(_) if selected == Some(node) => PrebindProgress::Awaited,
        _ if selected == Some(node) => PrebindProgress::Adopted(known.clone()),
        State::Written(_) => {
            // The provisioner takes the node away where it can't make the volume.
            let name = &claim.metadata.name;
            let failed = format!("provisioning failed for PVC {name:?}");
            PrebindProgress::Failed(Message::with_own(format!("{failed} on node {node:?}"), failed))
        }
        _ => {
            PrebindProgress::Write(PrebindWrite::SelectNode { claim: claim.clone(), node: Some(node.into()) })
        }
    }
}

/// A volume that is to be bound to the claim.
fn bind(
    volume: &Arc<PersistentVolume>,
    claim: &Arc<PersistentVolumeClaim>,
    state: &State,
) -> PrebindProgress {
    let known = &volume.metadata.resource_version;
    let bound = volume_binding::is_bound_to(volume, claim);
    match state {
        State::Written(version) if is_older(known, version) => PrebindProgress::Awaited,
        State::Written(_) if bound => PrebindProgress::Awaited,
        _ if bound => PrebindProgress::Adopted(known.clone()),
        State::Written(_) => {
            let full = format!("ClaimRef got reset for pv {:?}", volume.metadata.name);
            PrebindProgress::Failed(Message::with_own(full, "ClaimRef got reset for a pv"))
        }
        _ if volume.spec.claim_ref.is_some() && !volume_binding::is_meant_for(volume, claim) => {
            let full = format!("pv {:?} is bound to another claim", volume.metadata.name);
            PrebindProgress::Failed(Message::with_own(full, "a pv is bound to another claim"))
        }
        _ => PrebindProgress::Write(PrebindWrite::BindVolume {
            volume: volume.clone(),
            claim: Some(claim.clone()),
        }),
    }
}
