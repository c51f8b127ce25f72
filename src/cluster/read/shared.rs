//! Parts that many pods and nodes have in common, each kept once: names of namespaces, nodes and cards, workloads, labels with their keys and values and
//! sets of them, what is requested of resources, cards, ports and disks, terms about other pods, and what the status of a waiting pod says.
//!
//! What is read stays equal to what was read; only its memory is shared.

use std::{
    collections::HashSet,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    device::{Card, CardId},
    scheduling::{
        Holding, PodInfo,
        model::{
            footprint::{NeighbourTerms, PortsAndDisks, SpreadConstraints},
            label_set::{Label, LabelSet},
            node::NodeInfo,
            pod::WaitingPodStatus,
            pod_shape::CardShape,
            resources::ResourceAmounts,
            tenure::Tenure,
            workload::Workload,
        },
    },
};

/// The parts of the pods and nodes that were read.
#[derive(Debug, Default)]
pub struct SharedParts(Mutex<KnownParts>);

#[derive(Debug, Default)]
struct KnownParts {
    names: Interned<str>,
    labels: Interned<Label>,
    label_sets: Interned<[Arc<Label>]>,
    workloads: Interned<Workload>,
    resources: Interned<ResourceAmounts>,
    exclusive: Interned<PortsAndDisks>,
    cards: Interned<CardShape>,
    neighbours: Interned<NeighbourTerms>,
    spread: Interned<SpreadConstraints>,
    status: Interned<WaitingPodStatus>,
}

/// The parts of one kind.
#[derive(Debug)]
struct Interned<T: ?Sized> {
    all: HashSet<Arc<T>>,
    /// Once there are so many, those that no pod has any more are forgotten.
    limit: usize,
}

/// So many of a kind are kept whether a pod has them or not.
const FEW: usize = 1024;

impl SharedParts {
    /// The pod, with the parts that others have too.
    pub fn share(&self, mut pod: PodInfo) -> PodInfo {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.names.share(&mut pod.key.namespace);
        parts.status.share(&mut pod.status);
        if let Some(footprint) = Arc::get_mut(&mut pod.footprint) {
            parts.names.share(&mut footprint.namespace);
            parts.share_label_set(&mut footprint.labels);
            parts.resources.share(&mut footprint.resources);
            parts.exclusive.share(&mut footprint.exclusive);
            parts.neighbours.share(&mut footprint.neighbours);
            parts.spread.share(&mut footprint.spread);
            if let Some(cards) = &mut footprint.cards {
                parts.cards.share(cards);
            }
        }
        if let Some(holding) = &mut pod.holding {
            parts.share_held(holding);
        }
        pod
    }

    /// The node, with the parts that others and pods have too.
    pub fn share_node(&self, mut node: NodeInfo) -> NodeInfo {
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.names.share(&mut node.name);
        let KnownParts { names, labels, .. } = &mut *parts;
        if let Some(own) = Arc::get_mut(node.labels.labels_mut()) {
            share_labels(own, labels, names);
        }
        for offer in &mut node.devices.offers {
            offer.map_cards(|card| Card { id: parts.card(&card.id), ..card });
        }
        node
    }
}

impl KnownParts {
    /// Labels are looked up only for a set that is new: most events are of pods that are known.
    fn share_label_set(&mut self, labels: &mut LabelSet) {
        let Self { names, labels: known, label_sets, .. } = self;
        label_sets.share_with(labels.labels_mut(), |labels| share_labels(labels, known, names));
    }

    /// The card of this uuid, whose text is shared.
    fn card(&mut self, id: &CardId) -> CardId {
        let mut name = id.name().clone();
        self.names.share(&mut name);
        CardId::called(name)
    }

    /// Shares what a pod holds; lists take as much memory as they have items.
    fn share_held(&mut self, holding: &mut Holding) {
        self.names.share(&mut holding.node);
        if let Some(Tenure { workload, .. }) = holding.tenure.as_mut().and_then(Arc::get_mut) {
            let Self { names, workloads, .. } = self;
            workloads.share_with(workload, |Workload { kind, name }| {
                names.share(kind);
                names.share(name);
            });
        }
        let allocations = Arc::get_mut(&mut holding.allocations).into_iter().flatten();
        for assignment in allocations.filter_map(|one| Arc::get_mut(&mut one.assignment)) {
            assignment.containers.shrink_to_fit();
            for container in &mut assignment.containers {
                container.shares.shrink_to_fit();
                for share in &mut container.shares {
                    share.card = self.card(&share.card);
                }
            }
        }
    }
}

fn share_labels(labels: &mut [Arc<Label>], known: &mut Interned<Label>, names: &mut Interned<str>) {
    for label in labels {
        known.share_with(label, |Label { key, value }| {
            names.share(key);
            names.share(value);
        });
    }
}

impl<T: Eq + Hash + ?Sized> Default for Interned<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), limit: FEW }
    }
}

impl<T: Eq + Hash + ?Sized> Interned<T> {
    /// Puts the part that is kept in the place of an equal one; a part that is new is kept.
    fn share(&mut self, part: &mut Arc<T>) {
        self.share_with(part, |_| ());
    }

    /// The same; of a part that is new, its own parts are shared first.
    fn share_with(&mut self, part: &mut Arc<T>, share_parts: impl FnOnce(&mut T)) {
        if let Some(known) = self.all.get(&**part) {
            part.clone_from(known);
            return;
        }
        if let Some(part) = Arc::get_mut(part) {
            share_parts(part);
        }
        if self.all.len() >= self.limit {
            self.all.retain(|known| Arc::strong_count(known) > 1);
            self.limit = FEW.max(2 * self.all.len());
        }
        self.all.insert(part.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        device::Answer,
        scheduling::{Claim, fixtures},
    };

    /// A pod of this name that holds a share of a card.
    fn pod(name: &str, card: &str) -> PodInfo {
        let held = fixtures::allocation(fixtures::PROFILE, fixtures::share(card, 1, 1), Answer::Succeeded);
        let holding = Some(fixtures::holding("n", vec![held]));
        PodInfo { holding, ..fixtures::pod(name, Claim::None) }
    }

    fn labels(pod: &mut PodInfo) -> &Arc<[Arc<Label>]> {
        Arc::get_mut(&mut pod.footprint).unwrap().labels.labels_mut()
    }

    fn card(pod: &PodInfo) -> &CardId {
        &pod.holding.as_ref().unwrap().allocations[0].assignment.containers[0].shares[0].card
    }

    #[test]
    fn pods_share_what_they_have_in_common_and_stay_what_they_were() {
        let parts = SharedParts::default();
        let [mut one, mut other] = ["a", "b"].map(|name| {
            let shared = parts.share(pod(name, "GPU-0"));
            assert_eq!(shared, pod(name, "GPU-0"));
            shared
        });
        assert!(Arc::ptr_eq(&one.key.namespace, &other.key.namespace));
        assert!(Arc::ptr_eq(&one.footprint.namespace, &other.key.namespace));
        assert!(Arc::ptr_eq(labels(&mut one), labels(&mut other)));
        assert!(Arc::ptr_eq(card(&one).name(), card(&other).name()));
        assert!(!Arc::ptr_eq(&one.key.name, &other.key.name));
    }

    #[test]
    fn what_no_pod_has_any_more_is_forgotten() {
        let parts = SharedParts::default();
        let kept: Vec<_> =
            (0..10).map(|at| parts.share(pod(&format!("p{at}"), &format!("GPU-{at}")))).collect();
        for at in 0..20 * FEW {
            parts.share(pod("gone", &format!("GPU-gone-{at}")));
        }
        let names = &parts.0.lock().unwrap().names;
        assert!(names.all.len() <= FEW, "{}", names.all.len());
        assert!(kept.iter().all(|pod| names.all.contains(card(pod).name())));
    }
}
