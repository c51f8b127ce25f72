//! Every pod that was seen.

use std::{
    collections::{HashMap, hash_map},
    sync::Arc,
};

use jiff::Timestamp;

use super::direct::Untaken;
use crate::scheduling::{
    model::{
        name::Uid,
        pod::{PodInfo, PodKey},
    },
    world::pod_lister::PodLister,
};

/// One pod.
#[derive(Debug)]
pub(in crate::scheduling::scheduler) struct Entry {
    /// The pod as it was last seen.
    pub(in crate::scheduling::scheduler) info: PodInfo,
    /// Its place among all pods ever seen.
    pub(in crate::scheduling::scheduler) seen: u64,
    /// When it was first seen.
    pub(in crate::scheduling::scheduler) since: Timestamp,
    /// Why the node that kube-scheduler chose last could not be taken.
    pub(in crate::scheduling::scheduler) refused: Option<Untaken>,
}

/// Every pod, by uid and by name.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Pods {
    entries: HashMap<Uid, Entry>,
    by_name: HashMap<(Arc<str>, Arc<str>), Uid>,
    seen: u64,
}

impl Pods {
    /// Takes in a pod as it was seen; whether anything changed that could change its place. Its name is its own from now on, whichever
    /// pod had it before.
    pub(in crate::scheduling::scheduler) fn see(&mut self, pod: PodInfo, now: Timestamp) -> bool {
        let uid = pod.key.uid.clone();
        self.by_name.insert(name_of(&pod.key), uid.clone());
        if let Some(entry) = self.entries.get_mut(&uid) {
            let known = &entry.info;
            let changed = (&known.claim, &known.footprint, known.importance.priority, &known.groups.gang)
                != (&pod.claim, &pod.footprint, pod.importance.priority, &pod.groups.gang);
            entry.info = pod;
            return changed;
        }
        self.seen += 1;
        let entry = Entry { info: pod, seen: self.seen, since: now, refused: None };
        self.entries.insert(uid, entry);
        true
    }

    /// Takes a pod out, and its name unless a newer pod has it.
    pub(in crate::scheduling::scheduler) fn remove(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.remove(uid) else { return };
        let name = name_of(&entry.info.key);
        if self.by_name.get(&name) == Some(uid) {
            self.by_name.remove(&name);
        }
    }

    /// A pod.
    pub(in crate::scheduling::scheduler) fn get(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid)
    }

    /// A pod, to change what is known of it.
    pub(in crate::scheduling::scheduler) fn get_mut(&mut self, uid: &str) -> Option<&mut Entry> {
        self.entries.get_mut(uid)
    }

    /// Whether the pod is known.
    pub(in crate::scheduling::scheduler) fn contains(&self, uid: &str) -> bool {
        self.entries.contains_key(uid)
    }

    /// Every uid, in no order.
    pub(in crate::scheduling::scheduler) fn uids(&self) -> hash_map::Keys<'_, Uid, Entry> {
        self.entries.keys()
    }

    /// Every pod, in no order.
    pub(in crate::scheduling::scheduler) fn all(&self) -> hash_map::Values<'_, Uid, Entry> {
        self.entries.values()
    }

    /// Makes room for so many pods in all.
    pub(in crate::scheduling::scheduler) fn reserve(&mut self, pods: usize) {
        self.entries.reserve(pods.saturating_sub(self.entries.len()));
    }
}

impl PodLister for Pods {
    fn pod(&self, uid: &str) -> Option<&PodInfo> {
        Some(&self.entries.get(uid)?.info)
    }

    fn named(&self, namespace: &str, name: &str) -> Option<&PodInfo> {
        let uid = self.by_name.get(&(namespace.into(), name.into()))?;
        self.pod(uid)
    }
}

fn name_of(key: &PodKey) -> (Arc<str>, Arc<str>) {
    (key.namespace.clone(), key.name.clone())
}
