//! What happens to the node's lock.

use super::{NODE, Play, key, lock_name};
use crate::{
    device::{Lock, LockOwner},
    scheduling::{
        Claim, Event, NodeChange, PodChange, PodInfo, ReadAnswer,
        event::{LockOutcome, ReleaseOutcome},
        model::pod::Placer,
    },
};

impl Play {
    /// The node is seen without a lock.
    pub(in super::super) fn unlocked(&mut self) {
        self.sees_node(Lock::Free);
    }

    /// The node is seen with the lock of somebody of another scheduler, who is there.
    pub(in super::super) fn locked_by(&mut self, owner: &str) {
        let (namespace, name) = owner.split_once('/').unwrap();
        let owner = LockOwner { namespace: namespace.to_owned(), name: name.to_owned() };
        let mut holder = self.pod(name);
        holder.key.namespace = namespace.into();
        holder.claim = Claim::None;
        holder.placer = Placer::Another;
        self.happens(Event::Pod(PodChange::Seen(Box::new(holder))));
        self.sees_node(Lock::Held { owner: Some(owner), since: self.now });
    }

    /// The node is seen with the lock of a pod of which nothing was seen.
    pub(in super::super) fn locked_for_nobody(&mut self, name: &str) {
        let lock = self.own_lock(name);
        self.sees_node(lock);
    }

    /// There is no pod of the name that the lock gives.
    pub(in super::super) fn holder_absent(&mut self) {
        self.holder_read(None);
    }

    /// There is no pod of this name, whose lock does not give it.
    pub(in super::super) fn holder_of_bare_lock_absent(&mut self, name: &str) {
        let Lock::Held { owner: Some(owner), since } = self.own_lock(name) else { return };
        self.happens(Event::Read(ReadAnswer::Holder { owner, since, found: None }));
    }

    /// The pod of the name that the lock gives is read.
    pub(in super::super) fn holder_read(&mut self, found: Option<PodInfo>) {
        let Lock::Held { owner: Some(owner), since } = self.lock.clone() else { return };
        self.happens(Event::Read(ReadAnswer::Holder { owner, since, found: found.map(Box::new) }));
    }

    /// The last request to give the lock back is answered with a yes.
    pub(in super::super) fn released(&mut self) {
        let resource_version = self.release.clone().expect("the lock was to be given back");
        let (node, locks, outcome) = (NODE.into(), vec![lock_name()], ReleaseOutcome::Done);
        self.happens(Event::LockReleased { node, resource_version, locks, outcome });
    }

    pub(in super::super) fn lock_answered(&mut self, name: &str, outcome: LockOutcome) {
        let pod = key(name);
        self.happens(Event::LockAnswered { pod, node: NODE.into(), locks: vec![lock_name()], outcome });
    }

    pub(super) fn own_lock(&self, name: &str) -> Lock {
        let owner = LockOwner { namespace: "default".to_owned(), name: name.to_owned() };
        Lock::Held { owner: Some(owner), since: self.now }
    }

    /// The lock is the pod's, and the node is seen to say so.
    pub(in super::super) fn lock_taken(&mut self, name: &str) {
        self.lock_taken_unseen(name);
        let lock = self.own_lock(name);
        self.lock = lock.clone();
        let node = self.node_of(self.version.to_string(), lock);
        self.happens(Event::Node(NodeChange::Seen(Box::new(node))));
    }

    /// The lock is the pod's, by the answer alone.
    pub(in super::super) fn lock_taken_unseen(&mut self, name: &str) {
        let resource_version = self.next_version();
        self.lock_answered(name, LockOutcome::Taken { resource_version });
    }

    /// The lock is the pod's and does not say so; the node is seen with it before the answer comes.
    pub(in super::super) fn bare_lock_seen_and_taken(&mut self, name: &str) {
        self.sees_node(Lock::Held { owner: None, since: self.now });
        let resource_version = self.version.to_string();
        self.lock_answered(name, LockOutcome::Taken { resource_version });
    }

    /// The node is read with a lock that says that it is held since now, and nothing else.
    pub(in super::super) fn node_read_locked_by_somebody(&mut self) {
        self.lock = Lock::Held { owner: None, since: self.now };
        self.node_read();
    }

    /// The node is seen with a lock that says since when it is held, and nothing else.
    pub(in super::super) fn locked_by_somebody(&mut self) {
        self.sees_node(Lock::Held { owner: None, since: self.now });
    }

    /// The lock was the pod's, and the node is seen to be free again before the answer comes.
    pub(in super::super) fn lock_taken_and_lost(&mut self, name: &str) {
        let resource_version = self.next_version();
        self.unlocked();
        self.lock_answered(name, LockOutcome::Taken { resource_version });
    }
}
