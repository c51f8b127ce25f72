//! Pods whose claims are compared with devices beside the decisions: who waits for which comparison.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use crate::scheduling::model::name::Uid;

/// The namespaces with a comparison under way, and the pods that wait for its end.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Comparisons {
    under_way: BTreeMap<Arc<str>, BTreeSet<Uid>>,
    /// The namespace for which each pod waits.
    waiting: BTreeMap<Uid, Arc<str>>,
}

impl Comparisons {
    /// Whether claims of this namespace are being compared.
    pub(super) fn is_under_way(&self, namespace: &str) -> bool {
        self.under_way.contains_key(namespace)
    }

    /// The pod waits for the end of this namespace's comparison.
    pub(super) fn wait(&mut self, uid: &Uid, namespace: &Arc<str>) {
        self.under_way.entry(namespace.clone()).or_default().insert(uid.clone());
        self.waiting.insert(uid.clone(), namespace.clone());
    }

    /// The pod no longer waits; the comparison goes on.
    pub(super) fn leave(&mut self, uid: &Uid) {
        let namespace = self.waiting.remove(uid);
        if let Some(pods) = namespace.and_then(|namespace| self.under_way.get_mut(&namespace)) {
            pods.remove(uid);
        }
    }

    /// Whether the pod waits.
    pub(super) fn holds(&self, uid: &Uid) -> bool {
        self.waiting.contains_key(uid)
    }

    /// How many pods wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The comparison of this namespace has ended; the pods that waited for it.
    pub(in crate::scheduling::scheduler) fn end(&mut self, namespace: &str) -> BTreeSet<Uid> {
        let pods = self.under_way.remove(namespace).unwrap_or_default();
        for uid in &pods {
            self.waiting.remove(uid);
        }
        pods
    }
}
