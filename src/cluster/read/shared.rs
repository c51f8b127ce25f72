//! Parts that many pods have in common, each kept once: names of namespaces, nodes, cards and workloads, sets of labels with their keys and values, what
//! is requested of resources, cards, ports and disks, terms about other pods, and what the status of a waiting pod says.
//!
//! What is read stays equal to what was read; only its memory is shared.

use std::{
    collections::HashSet,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    device::CardId,
    scheduling::{
        Holding, PodInfo,
        model::{
            footprint::{NeighbourTerms, PortsAndDisks, SpreadConstraints},
            pod::WaitingPodStatus,
            pod_labels::PodLabels,
            pod_shape::CardShape,
            resources::ResourceAmounts,
            tenure::Tenure,
        },
    },
};

/// The parts of the pods that were read.
#[derive(Debug, Default)]
pub struct SharedParts(Mutex<KnownParts>);

#[derive(Debug, Default)]
struct KnownParts {
    names: Interned<str>,
    labels: Interned<PodLabels>,
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
            parts.share_labels(&mut footprint.labels);
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
}

impl KnownParts {
    /// Keys and values are looked up only for a set that is new: most events are of pods that are known.
    fn share_labels(&mut self, labels: &mut Arc<PodLabels>) {
        if self.labels.replace_with_known(labels) {
            return;
        }
        if let Some(labels) = Arc::get_mut(labels) {
            labels.texts_mut().for_each(|text| self.names.share(text));
        }
        self.labels.share(labels);
    }

    /// Shares what a pod holds; lists take as much memory as they have items.
    fn share_held(&mut self, holding: &mut Holding) {
        self.names.share(&mut holding.node);
        if let Some(Tenure { workload, .. }) = holding.tenure.as_mut().and_then(Arc::get_mut) {
            self.names.share(&mut workload.kind);
            self.names.share(&mut workload.name);
        }
        let allocations = Arc::get_mut(&mut holding.allocations).into_iter().flatten();
        for assignment in allocations.filter_map(|one| Arc::get_mut(&mut one.assignment)) {
            assignment.containers.shrink_to_fit();
            for container in &mut assignment.containers {
                container.shares.shrink_to_fit();
                for share in &mut container.shares {
                    let mut name = share.card.name().clone();
                    self.names.share(&mut name);
                    share.card = CardId::called(name);
                }
            }
        }
    }
}

impl<T: Eq + Hash + ?Sized> Default for Interned<T> {
    fn default() -> Self {
        Self { all: HashSet::new(), limit: FEW }
    }
}

impl<T: Eq + Hash + ?Sized> Interned<T> {
    /// Puts the part that is kept in the place of an equal one; whether there is one.
    fn replace_with_known(&self, part: &mut Arc<T>) -> bool {
        let known = self.all.get(&**part).cloned();
        known.map(|known| *part = known).is_some()
    }

    /// Puts the part that is kept in the place of an equal one; a part that is new is kept.
    fn share(&mut self, part: &mut Arc<T>) {
        if self.replace_with_known(part) {
            return;
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

    fn card(pod: &PodInfo) -> &CardId {
        &pod.holding.as_ref().unwrap().allocations[0].assignment.containers[0].shares[0].card
    }

    #[test]
    fn pods_share_what_they_have_in_common_and_stay_what_they_were() {
        let parts = SharedParts::default();
        let [one, other] = ["a", "b"].map(|name| {
            let shared = parts.share(pod(name, "GPU-0"));
            assert_eq!(shared, pod(name, "GPU-0"));
            shared
        });
        assert!(Arc::ptr_eq(&one.key.namespace, &other.key.namespace));
        assert!(Arc::ptr_eq(&one.footprint.namespace, &other.key.namespace));
        assert!(Arc::ptr_eq(&one.footprint.labels, &other.footprint.labels));
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
