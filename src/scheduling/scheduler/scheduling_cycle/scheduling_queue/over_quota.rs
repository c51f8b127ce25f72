//! Pods that wait for the quota of their namespace.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::scheduling::{
    decide::fit_error::Awaits,
    model::{name::Uid, pod::PodKey},
};

/// Pods by their namespace.
type ByNamespace = BTreeMap<Arc<str>, BTreeSet<Uid>>;

/// Pods that wait for the quota of their namespace.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct OverQuota {
    /// For nothing else.
    alone: ByNamespace,
    /// Or for a node to change.
    beside: ByNamespace,
}

impl OverQuota {
    /// The pod waits for this, if that is a quota.
    pub(in crate::scheduling::scheduler) fn join(&mut self, pod: &PodKey, awaits: Awaits) {
        let waiting = match awaits {
            Awaits::Quota => &mut self.alone,
            Awaits::NodeOrQuota => &mut self.beside,
            Awaits::Node | Awaits::Comparison => return,
        };
        waiting.entry(pod.namespace.clone()).or_default().insert(pod.uid.clone());
    }

    /// The pod waits for no quota any more.
    pub(in crate::scheduling::scheduler) fn leave(&mut self, pod: &PodKey) {
        for waiting in [&mut self.alone, &mut self.beside] {
            if let Some(pods) = waiting.get_mut(&pod.namespace) {
                pods.remove(&pod.uid);
                if pods.is_empty() {
                    waiting.remove(&pod.namespace);
                }
            }
        }
    }

    /// Whether the pod waits for nothing but the quota.
    pub(in crate::scheduling::scheduler) fn holds(&self, pod: &PodKey) -> bool {
        self.alone.get(&pod.namespace).is_some_and(|pods| pods.contains(&pod.uid))
    }

    /// How many pods wait for nothing but a quota.
    pub(in crate::scheduling::scheduler) fn len(&self) -> usize {
        self.alone.values().map(BTreeSet::len).sum()
    }

    /// The pods of a namespace.
    pub(in crate::scheduling::scheduler) fn of(&self, namespace: &Arc<str>) -> impl Iterator<Item = &Uid> {
        [&self.alone, &self.beside].into_iter().filter_map(|waiting| waiting.get(namespace)).flatten()
    }

    /// The namespaces with pods that wait for a quota.
    pub(in crate::scheduling::scheduler) fn namespaces(&self) -> BTreeSet<Arc<str>> {
        self.alone.keys().chain(self.beside.keys()).cloned().collect()
    }

    /// The pods of a namespace, which wait no more.
    pub(in crate::scheduling::scheduler) fn take(&mut self, namespace: &Arc<str>) -> BTreeSet<Uid> {
        let mut taken = self.alone.remove(namespace).unwrap_or_default();
        taken.extend(self.beside.remove(namespace).unwrap_or_default());
        taken
    }
}
