//! Pods that are decided alike: what was found for one holds for the others until something changes.

use std::{collections::HashMap, sync::Arc};

use super::Scheduler;
use crate::{
    object::Labels,
    scheduling::{
        decide::{Decision, fit_error::FitError},
        model::{
            name::Uid,
            pod::{Ask, Claim, PodInfo, PreemptionPolicy},
        },
    },
};

/// What is equal of pods that are decided alike.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) struct Alike {
    ask: Arc<Ask>,
    namespace: Arc<str>,
    labels: Arc<Labels>,
    priority: i32,
    preemption_policy: PreemptionPolicy,
}

impl Alike {
    /// `None`: the pod wants no place, or what is found for it holds for no other, since it looks around or a node is kept for it.
    pub(super) fn of(pod: &PodInfo) -> Option<Self> {
        let Claim::Place(ask) = &pod.claim else { return None };
        let footprint = &pod.footprint;
        if footprint.is_cross_node() || pod.status.nominated.is_some() {
            return None;
        }
        Some(Self {
            ask: ask.clone(),
            namespace: footprint.namespace.clone(),
            labels: footprint.labels.clone(),
            priority: pod.importance.priority,
            preemption_policy: pod.importance.preemption_policy,
        })
    }
}

/// The versions of nodes, quotas and other objects.
pub(super) type Versions = (u64, u64, u64);

/// Why pods were rejected, as long as nothing has changed since.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    versions: Versions,
    pub(super) errors: HashMap<Alike, FitError>,
}

impl Scheduler {
    /// The best node and its cards, or why there is none, as [`Scheduler::decide`] finds them; a pod like one that was rejected since
    /// the last change is rejected for the same.
    pub(super) fn decide_as_alike(&mut self, uid: &Uid) -> Result<Decision, FitError> {
        let Some(alike) = self.alike(uid) else { return self.decide(uid) };
        let versions = self.versions();
        if self.waiting.rejections.versions != versions {
            self.waiting.rejections = Rejections { versions, errors: HashMap::new() };
        }
        // A class that was forgotten would not take the pod in among those that wait.
        let known = self.waiting.rejections.errors.get(&alike).filter(|_| self.classes.knows(&alike.ask));
        if let Some(error) = known {
            return Err(error.clone());
        }
        self.decide(uid)
    }

    /// The versions of nodes, quotas and other objects.
    pub(super) fn versions(&self) -> Versions {
        let snapshot = &self.snapshot;
        (snapshot.generation(), snapshot.quotas().version(), snapshot.objects().version())
    }

    /// What has been tried since these versions was undone: what was found then still holds.
    pub(super) fn keep_rejections(&mut self, since: Versions) {
        if self.waiting.rejections.versions == since {
            self.waiting.rejections.versions = self.versions();
        }
    }

    /// What was found for the pod holds for those like it, until something changes.
    pub(super) fn note_rejection(&mut self, uid: &Uid, error: &FitError) {
        if let Some(alike) = self.alike(uid) {
            self.waiting.rejections.errors.insert(alike, error.clone());
        }
    }

    /// `None`: what is found for the pod holds for no other; a node may be kept for it, or nothing preempted for it for a while.
    pub(super) fn alike(&self, uid: &Uid) -> Option<Alike> {
        let alike = self.pods.get(uid).and_then(|entry| Alike::of(&entry.info));
        let demand = || self.pods.get(uid).and_then(|entry| entry.info.demand());
        let is_for_it = || demand().is_some_and(|demand| self.snapshot.has_reservation_for(&demand));
        let by_claim = || demand().is_some_and(|demand| self.snapshot.may_serve_by_claim(&demand));
        let is_paused = || self.preempts_not_before(uid).is_some();
        alike.filter(|_| {
            !self.snapshot.nominations().holds(uid) && !is_for_it() && !by_claim() && !is_paused()
        })
    }
}
