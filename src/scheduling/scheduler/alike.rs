//! Pods that are decided alike: what was found for one holds for the others until something changes.

use std::{collections::HashMap, sync::Arc};

use super::Scheduler;
use crate::{
    object::Labels,
    scheduling::{
        decide::Decision,
        fit_error::FitError,
        pod::{Ask, Claim, PodInfo, PreemptionPolicy, Uid},
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
    /// `None`: the pod wants no place, or what is found for it holds for no other, since it looks around.
    pub(super) fn of(pod: &PodInfo) -> Option<Self> {
        let Claim::Place(ask) = &pod.claim else { return None };
        let footprint = &pod.footprint;
        if footprint.looks_around() {
            return None;
        }
        Some(Self {
            ask: ask.clone(),
            namespace: footprint.namespace.clone(),
            labels: footprint.labels.clone(),
            priority: pod.importance.priority,
            preemption_policy: pod.preemption_policy,
        })
    }
}

/// Why pods were rejected, as long as nothing has changed since.
#[derive(Debug, Default)]
pub(super) struct Rejections {
    /// The versions of nodes, quotas and other objects.
    versions: (u64, u64, u64),
    pub(super) errors: HashMap<Alike, FitError>,
}

impl Scheduler {
    /// The best node and its cards, or why there is none, as [`Scheduler::decide`] finds them; a pod like one that was rejected since
    /// the last change is rejected for the same.
    pub(super) fn decide_as_alike(&mut self, uid: &Uid) -> Result<Decision, FitError> {
        let alike = self.pods.get(uid).and_then(|entry| Alike::of(&entry.info));
        let Some(alike) = alike.filter(|_| !self.snapshot.nominations().holds(uid)) else {
            return self.decide(uid);
        };
        let snapshot = &self.snapshot;
        let versions = (snapshot.generation(), snapshot.quotas().version(), snapshot.objects().version());
        if self.waiting.rejections.versions != versions {
            self.waiting.rejections = Rejections { versions, errors: HashMap::new() };
        }
        // A class that was forgotten would not take the pod in among those that wait.
        let known = self.waiting.rejections.errors.get(&alike).filter(|_| self.classes.knows(&alike.ask));
        if let Some(error) = known {
            return Err(error.clone());
        }
        let found = self.decide(uid);
        if let Err(error) = &found {
            self.waiting.rejections.errors.insert(alike, error.clone());
        }
        found
    }
}
