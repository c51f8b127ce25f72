//! Who holds nodes' locks, as far as it is known here; what follows from it is not decided here.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::{
    device::{Lock, LockOwner, ProfileName},
    scheduling::model::{
        name::NodeName,
        node::{NodeInfo, NodeLock, Signature},
        pod::PodKey,
    },
};

/// What is known of a lock's holder that is not among the pods that were seen.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stranger {
    /// It is being read.
    Asked,
    /// There is no such pod, or it has ended.
    Absent,
    /// It is there.
    Alive,
}

/// Giving back a node's lock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Releasing {
    /// It is under way.
    UnderWay,
    /// It may have failed; it is looked at again then.
    Pausing(Timestamp),
}

/// The locks of a node that were taken for a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Held {
    /// For which pod.
    pub(super) pod: PodKey,
    /// In which dialects the pod was decided; not each needs a lock.
    pub(super) profiles: Vec<ProfileName>,
    /// The node's version since then.
    pub(super) version: String,
    /// Since when.
    pub(super) since: Timestamp,
    /// Since when by the locks themselves, where that is written.
    pub(super) written: Option<Timestamp>,
}

impl Held {
    /// Whether the node still bears each lock that was taken.
    pub(super) fn is_kept(&self, info: &NodeInfo) -> bool {
        let mut locks = info.locks_of(&self.profiles).peekable();
        locks.peek().is_some() && locks.all(|lock| self.is(lock))
    }

    /// Whether this is a lock that was taken: it names the pod, or says since when and nothing else.
    pub(super) fn is(&self, lock: &NodeLock) -> bool {
        is_held_by(&lock.state, &self.pod) || is_since(lock, self.written)
    }
}

/// Who holds nodes' locks.
#[derive(Debug, Default)]
pub(super) struct Locks {
    /// Whom nodes' locks name, and where.
    holders: BTreeMap<LockOwner, BTreeSet<NodeName>>,
    /// Holders that are not among the pods that were seen.
    strangers: BTreeMap<(LockOwner, Timestamp), Stranger>,
    releasing: BTreeMap<NodeName, Releasing>,
    /// Locks that were taken and are not known to have been lost.
    held: BTreeMap<NodeName, Held>,
    /// Nodes on which another scheduler has had a lock since their pods were last read.
    foreign: BTreeSet<NodeName>,
}

impl Locks {
    /// Another scheduler has a lock of the node.
    pub(super) fn note_foreign(&mut self, node: &NodeName) {
        self.foreign.insert(node.clone());
    }

    /// The pods of the node are read, or the node is gone: whether another scheduler has had a lock there since the last time.
    pub(super) fn take_foreign(&mut self, node: &str) -> bool {
        self.foreign.remove(node)
    }

    /// The lock of a node that was taken and is not known to have been lost.
    pub(super) fn held(&self, node: &str) -> Option<&Held> {
        self.held.get(node)
    }

    /// Takes in that a node's lock was taken.
    pub(super) fn hold(&mut self, node: &NodeName, held: Held) {
        self.drop_held(node);
        self.holders.entry(owner_of(&held.pod)).or_default().insert(node.clone());
        self.held.insert(node.clone(), held);
    }

    /// Forgets a lock that was taken: it is gone, or its node is.
    pub(super) fn drop_held(&mut self, node: &NodeName) {
        if let Some(held) = self.held.remove(node) {
            self.drop_holder(&owner_of(&held.pod), node);
        }
    }

    fn drop_holder(&mut self, owner: &LockOwner, node: &NodeName) {
        if let Some(nodes) = self.holders.get_mut(owner) {
            nodes.remove(node);
            if nodes.is_empty() {
                self.holders.remove(owner);
            }
        }
    }

    /// Whose lock it is: it names the pod, or was taken here.
    pub(super) fn owner(&self, node: &str, lock: &NodeLock) -> Option<LockOwner> {
        let Lock::Held { owner, .. } = &lock.state else { return None };
        let ours = || self.held.get(node).filter(|held| held.is(lock)).map(|held| owner_of(&held.pod));
        owner.clone().or_else(ours)
    }

    /// The nodes whose locks name this owner.
    pub(super) fn of(&self, owner: &LockOwner) -> impl Iterator<Item = &NodeName> {
        self.holders.get(owner).into_iter().flatten()
    }

    /// Takes in whom a node's locks name now, and named before.
    pub(super) fn note_owners(&mut self, node: &NodeName, before: Option<&NodeInfo>, now: Option<&NodeInfo>) {
        for (owner, _) in before.into_iter().flat_map(owners) {
            self.drop_holder(owner, node);
        }
        for (owner, _) in now.into_iter().flat_map(owners) {
            self.holders.entry(owner.clone()).or_default().insert(node.clone());
        }
        let holders = &self.holders;
        self.strangers.retain(|(owner, _), _| holders.contains_key(owner));
    }

    /// Takes in that there is news of this owner; whether a lock names it.
    pub(super) fn note_news(&mut self, owner: &LockOwner) -> bool {
        let named = self.holders.contains_key(owner);
        if named {
            self.strangers.retain(|(stranger, _), _| stranger != owner);
        }
        named
    }

    /// What is known of an owner that was never seen.
    pub(super) fn stranger(&self, owner: &LockOwner, since: Timestamp) -> Option<Stranger> {
        self.strangers.get(&(owner.clone(), since)).copied()
    }

    /// Takes in what is known of an owner that was never seen.
    pub(super) fn set_stranger(&mut self, owner: &LockOwner, since: Timestamp, stranger: Stranger) {
        self.strangers.insert((owner.clone(), since), stranger);
    }

    /// Whether and how far a lock of the node is being given back.
    pub(super) fn releasing(&self, node: &str) -> Option<Releasing> {
        self.releasing.get(node).copied()
    }

    /// Takes in how far the giving back of a node's lock is; `None`: nothing is being given back.
    pub(super) fn set_releasing(&mut self, node: &NodeName, releasing: Option<Releasing>) {
        match releasing {
            Some(releasing) => drop(self.releasing.insert(node.clone(), releasing)),
            None => drop(self.releasing.remove(node)),
        }
    }
}

/// Whether this pod holds the lock.
pub(super) fn is_held_by(lock: &Lock, pod: &PodKey) -> bool {
    match lock {
        Lock::Held { owner: Some(owner), .. } => {
            *owner.namespace == *pod.namespace && *owner.name == *pod.name
        }
        _ => false,
    }
}

/// Whether the lock names nobody and is held since then, where one that is taken here would say no more.
pub(super) fn is_since(lock: &NodeLock, written: Option<Timestamp>) -> bool {
    let then = matches!(lock.state, Lock::Held { owner: None, since } if Some(since) == written);
    then && lock.signature == Signature::Time
}

/// The pod as a lock names it.
pub(super) fn owner_of(pod: &PodKey) -> LockOwner {
    LockOwner { namespace: pod.namespace.to_string(), name: pod.name.to_string() }
}

/// Whom a node's locks name.
fn owners(info: &NodeInfo) -> impl Iterator<Item = (&LockOwner, Timestamp)> {
    info.locks.iter().filter_map(|lock| match &lock.state {
        Lock::Held { owner: Some(owner), since } => Some((owner, *since)),
        _ => None,
    })
}
