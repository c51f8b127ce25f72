//! Pods that are read beside the watches: after a lost race for a lock a decision must rest on pods no older than the node that was
//! lost, and the watch of pods may lag behind.
//!
//! A read shows what was: a pod that was seen to go while it was under way stays gone, and what a list has overtaken is read again. So is
//! the holder of a lock of which something was seen meanwhile. One holder is read once at a time, since answers may come in any order.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{
    device::LockOwner,
    scheduling::model::{
        name::Uid,
        pod::{PodInfo, Stage},
    },
};

/// Whether what was read may be taken in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::scheduling) enum Validity {
    /// It may.
    Fresh,
    /// Something newer was seen meanwhile, and what was read may be older.
    Overtaken,
}

/// A number of lists of pods that had been seen when a read began.
pub(super) type ListCount = u64;

/// Every read that is under way; which nodes are read stands in their flows.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// How many nodes are read.
    nodes: usize,
    /// The holders of locks that are read, by since when they hold theirs; `None`: something was seen of it since the read began.
    holders: BTreeMap<(LockOwner, Timestamp), Option<ListCount>>,
    /// Pods that were seen to go meanwhile.
    gone: BTreeSet<Uid>,
    /// How many lists of pods were seen.
    lists: ListCount,
}

impl Reads {
    /// A node is read from now on, unless that is under way.
    pub(super) fn begin_node(&mut self, reading: &mut Option<ListCount>) {
        if reading.is_none() {
            self.nodes += 1;
            *reading = Some(self.lists);
        }
    }

    /// Whether a holder is to be read from now on: that is not under way yet.
    pub(super) fn begin_holder(&mut self, owner: &LockOwner, since: Timestamp) -> bool {
        let key = (owner.clone(), since);
        let begins = !self.holders.contains_key(&key);
        self.holders.entry(key).or_insert(Some(self.lists));
        begins
    }

    /// Something was seen of a pod that a lock may name.
    pub(super) fn note_holder(&mut self, owner: &LockOwner) {
        let first = (owner.clone(), Timestamp::MIN);
        for (_, began) in self.holders.range_mut(first..).take_while(|((read, _), _)| read == owner) {
            *began = None;
        }
    }

    /// A pod was seen to go.
    pub(super) fn note_gone(&mut self, uid: &Uid) {
        if self.are_under_way() {
            self.gone.insert(uid.clone());
        }
    }

    /// All pods were listed.
    pub(super) fn note_list(&mut self) {
        self.lists += 1;
    }

    /// A node was read, and these pods.
    pub(super) fn end_node(
        &mut self,
        began: Option<ListCount>,
        pods: Vec<PodInfo>,
    ) -> (Validity, Vec<PodInfo>) {
        self.nodes -= usize::from(began.is_some());
        self.end(began, pods)
    }

    /// A holder was read.
    pub(super) fn end_holder(
        &mut self,
        owner: &LockOwner,
        since: Timestamp,
        pods: Vec<PodInfo>,
    ) -> (Validity, Vec<PodInfo>) {
        let began = self.holders.remove(&(owner.clone(), since)).flatten();
        self.end(began, pods)
    }

    fn are_under_way(&self) -> bool {
        self.nodes > 0 || !self.holders.is_empty()
    }

    /// Whether what was read still counts, and those of its pods that were not seen to go.
    fn end(&mut self, began: Option<ListCount>, mut pods: Vec<PodInfo>) -> (Validity, Vec<PodInfo>) {
        pods.retain(|pod| !self.gone.contains(&pod.key.uid) && pod.stage != Stage::Ended);
        if !self.are_under_way() {
            self.gone.clear();
        }
        if began == Some(self.lists) { (Validity::Fresh, pods) } else { (Validity::Overtaken, Vec::new()) }
    }
}
