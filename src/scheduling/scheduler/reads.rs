//! Pods that are read beside the watches: after a lost race for a lock a decision must rest on pods no older than the node that was
//! lost, and the watch of pods may lag behind.
//!
//! A read shows what was: a pod that was seen to go while it was under way stays gone, and what a list has overtaken is read again.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::Scheduler;
use crate::{
    device::LockOwner,
    scheduling::{
        effect::Effect,
        model::{
            name::{NodeName, Uid},
            pod::{PodInfo, Stage},
        },
    },
};

/// What is read.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Read {
    /// A node, and then its pods.
    Node(NodeName),
    /// The pod that a lock names.
    Holder(LockOwner),
}

/// Every read that is under way.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// With the number of lists of pods that had been seen when it began.
    under_way: BTreeMap<Read, u64>,
    /// Pods that were seen to go meanwhile.
    gone: BTreeSet<Uid>,
    /// How many lists of pods were seen.
    lists: u64,
}

/// Whether what was read may be taken in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Validity {
    /// It may.
    Fresh,
    /// Pods were listed meanwhile, and what was read may be older.
    Overtaken,
}

impl Reads {
    fn begin(&mut self, read: Read) {
        self.under_way.entry(read).or_insert(self.lists);
    }

    /// A pod was seen to go.
    pub(super) fn note_gone(&mut self, uid: &Uid) {
        if !self.under_way.is_empty() {
            self.gone.insert(uid.clone());
        }
    }

    /// All pods were listed.
    pub(super) fn note_list(&mut self) {
        self.lists += 1;
    }

    /// A read was answered: whether what it shows still counts, and those of its pods that were not seen to go.
    fn end(&mut self, read: &Read, mut pods: Vec<PodInfo>) -> (Validity, Vec<PodInfo>) {
        let began = self.under_way.remove(read);
        pods.retain(|pod| !self.gone.contains(&pod.key.uid) && pod.stage != Stage::Ended);
        if self.under_way.is_empty() {
            self.gone.clear();
        }
        if began == Some(self.lists) { (Validity::Fresh, pods) } else { (Validity::Overtaken, Vec::new()) }
    }
}

impl Scheduler {
    /// Has the node read, and the pods on it.
    pub(super) fn read_node(&mut self, node: &NodeName) {
        self.reads.begin(Read::Node(node.clone()));
        self.outbox.effects.push(Effect::ReadNode { node: node.clone() });
    }

    /// Has the pod read that a lock names.
    pub(super) fn read_holder(&mut self, owner: &LockOwner, since: Timestamp) {
        self.reads.begin(Read::Holder(owner.clone()));
        self.outbox.effects.push(Effect::ReadHolder { owner: owner.clone(), since });
    }

    /// Takes in pods that were read, unless what is known of them is newer.
    pub(super) fn take_in_read(&mut self, read: &Read, pods: Vec<PodInfo>, now: Timestamp) -> Validity {
        let (validity, pods) = self.reads.end(read, pods);
        for pod in pods {
            self.see_pod(pod, now);
        }
        validity
    }
}
