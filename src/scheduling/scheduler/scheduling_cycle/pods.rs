//! Every pod that was seen.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
};

use foldhash::fast;
use hashbrown::{HashTable, hash_table};
use jiff::Timestamp;

use super::{
    claiming_pods::{ClaimingPods, Recounted},
    directed::Untaken,
};
use crate::scheduling::{
    model::{
        footprint::Footprint,
        name::Uid,
        pod::{Claim, PodInfo, PodKey, Stage},
        pod_shape::PodShape,
    },
    packing::census::{Census, Weighed},
    world::{World, pod_lister::PodLister},
};

/// One pod.
#[derive(Debug)]
pub(in crate::scheduling::scheduler) struct Entry {
    /// The pod as it was last seen, in the memory in which it came: what another thread has allocated is not soon of use for this one, and a table
    /// has more places than pods and is copied when it grows.
    pub(in crate::scheduling::scheduler) info: Box<PodInfo>,
    /// Its place among all pods ever seen.
    pub(in crate::scheduling::scheduler) seen: u64,
    /// When it was first seen.
    pub(in crate::scheduling::scheduler) since: Timestamp,
    /// Why the node that kube-scheduler chose last could not be taken.
    pub(in crate::scheduling::scheduler) refused: Option<Box<Untaken>>,
}

/// Each pod by the uid that stands in its entry.
#[derive(Debug, Default)]
struct Entries {
    table: HashTable<Entry>,
    hasher: fast::RandomState,
}

/// Every pod, by uid and by name.
#[derive(Debug, Default)]
pub(in crate::scheduling::scheduler) struct Pods {
    entries: Entries,
    by_name: ByName,
    seen: u64,
    /// How many there are of each shape.
    census: Census,
    /// Those that count by what their claims ask for.
    claiming: ClaimingPods,
    /// What counts otherwise among the pods that may come since this was last asked.
    weighed: Vec<Weighed>,
}

/// Which pod has a name. The names themselves stand in the entries; they are users' own, so their hashes are not to be guessed.
#[derive(Debug, Default)]
struct ByName {
    uids: HashTable<Uid>,
    hasher: RandomState,
}

impl Entries {
    fn get(&self, uid: &str) -> Option<&Entry> {
        self.table.find(self.hasher.hash_one(uid), |entry| *entry.info.key.uid == *uid)
    }

    fn get_mut(&mut self, uid: &str) -> Option<&mut Entry> {
        self.table.find_mut(self.hasher.hash_one(uid), |entry| *entry.info.key.uid == *uid)
    }

    /// Takes in a pod whose uid is not known.
    fn insert(&mut self, entry: Entry) {
        let Self { table, hasher } = self;
        let hash = hasher.hash_one(&*entry.info.key.uid);
        table.insert_unique(hash, entry, |entry| hasher.hash_one(&*entry.info.key.uid));
    }

    fn remove(&mut self, uid: &str) -> Option<Entry> {
        let entry = self.table.find_entry(self.hasher.hash_one(uid), |entry| *entry.info.key.uid == *uid);
        entry.ok().map(|entry| entry.remove().0)
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> + Clone {
        self.table.iter()
    }

    /// Makes room for so many in all.
    fn reserve(&mut self, pods: usize) {
        let Self { table, hasher } = self;
        let more = pods.saturating_sub(table.len());
        table.reserve(more, |entry| hasher.hash_one(&*entry.info.key.uid));
    }
}

impl ByName {
    fn get(&self, namespace: &str, name: &str, entries: &Entries) -> Option<&Uid> {
        let is_named = |uid: &Uid| entries.get(uid).is_some_and(|entry| entry.is_named(namespace, name));
        self.uids.find(self.hasher.hash_one((namespace, name)), is_named)
    }

    /// The name is from now on that of this pod, which is among the entries.
    fn set(&mut self, PodKey { uid, namespace, name }: &PodKey, entries: &Entries) {
        let Self { uids, hasher } = self;
        let is_named = |uid: &Uid| entries.get(uid).is_some_and(|entry| entry.is_named(namespace, name));
        let hash = hasher.hash_one((&**namespace, &**name));
        match uids.entry(hash, is_named, |uid| hash_of(uid, hasher, entries)) {
            hash_table::Entry::Occupied(mut known) => known.get_mut().clone_from(uid),
            hash_table::Entry::Vacant(place) => drop(place.insert(uid.clone())),
        }
    }

    /// The name is no longer that of this pod; another may have it by now.
    fn clear(&mut self, PodKey { uid, namespace, name }: &PodKey) {
        let hash = self.hasher.hash_one((&**namespace, &**name));
        if let Ok(known) = self.uids.find_entry(hash, |known| known == uid) {
            known.remove();
        }
    }

    /// Makes room for so many more.
    fn reserve(&mut self, more: usize, entries: &Entries) {
        let Self { uids, hasher } = self;
        uids.reserve(more, |uid| hash_of(uid, hasher, entries));
    }
}

/// The hash of a pod's name; a uid that is in the table is among the entries.
fn hash_of(uid: &Uid, hasher: &RandomState, entries: &Entries) -> u64 {
    entries.get(uid).map_or(0, |entry| {
        let PodKey { namespace, name, .. } = &entry.info.key;
        hasher.hash_one((&**namespace, &**name))
    })
}

impl Entry {
    fn is_named(&self, namespace: &str, name: &str) -> bool {
        let key = &self.info.key;
        (&*key.namespace, &*key.name) == (namespace, name)
    }
}

impl Pods {
    /// Takes in a pod as it was seen; whether anything changed that could change its place. Its name is its own from now on, whichever
    /// pod had it before.
    pub(in crate::scheduling::scheduler) fn see(&mut self, pod: Box<PodInfo>, now: Timestamp) -> bool {
        let (key, uid) = (pod.key.clone(), pod.key.uid.clone());
        let before = self.entries.get(&uid).and_then(|entry| counted(&entry.info));
        self.recount(before, counted(&pod));
        self.claim(&uid, claiming(&pod));
        if let Some(entry) = self.entries.get_mut(&uid) {
            let known = &entry.info;
            let changed = (&known.claim, &known.footprint, known.importance.priority, known.groups.gang())
                != (&pod.claim, &pod.footprint, pod.importance.priority, pod.groups.gang());
            entry.info = pod;
            self.by_name.set(&key, &self.entries);
            return changed;
        }
        self.seen += 1;
        let entry = Entry { info: pod, seen: self.seen, since: now, refused: None };
        self.entries.insert(entry);
        self.by_name.set(&key, &self.entries);
        true
    }

    /// Takes a pod out, and its name unless a newer pod has it.
    pub(in crate::scheduling::scheduler) fn remove(&mut self, uid: &Uid) {
        let Some(entry) = self.entries.remove(uid) else { return };
        self.recount(counted(&entry.info), None);
        self.claim(uid, None);
        self.by_name.clear(&entry.info.key);
    }

    /// The pod's status says that no node would have it, and why.
    pub(in crate::scheduling::scheduler) fn tell(&mut self, uid: &Uid, message: &str) {
        let Some(entry) = self.entries.get_mut(uid) else { return };
        let before = counted(&entry.info);
        Arc::make_mut(&mut entry.info.status).told = Some(message.to_owned());
        let after = counted(&entry.info);
        let claiming = claiming(&entry.info);
        self.recount(before, after);
        self.claim(uid, claiming);
    }

    fn claim(&mut self, uid: &Uid, claiming: Option<(Arc<Footprint>, Timestamp)>) {
        let gone = self.claiming.see(uid, claiming);
        self.recount(gone, None);
    }

    /// A claim of this full name is another one than before, or gone.
    pub(in crate::scheduling::scheduler) fn note_claim(&mut self, name: &str) {
        self.claiming.note_claim(name);
    }

    /// Whether [`Self::count_claims`] has something to do.
    pub(in crate::scheduling::scheduler) fn has_claims_to_count(&self, world: &World) -> bool {
        self.claiming.is_outdated(world)
    }

    /// Counts one of the pods anew of whose claims something has changed; returns how many steps that has taken. `None`: there is none.
    pub(in crate::scheduling::scheduler) fn count_claims(&mut self, world: &World) -> Option<u64> {
        let Recounted { before, after, steps } = self.claiming.recount_next(world)?;
        self.recount(before, after);
        Some(steps)
    }

    fn recount(&mut self, before: Option<PodShape>, after: Option<PodShape>) {
        if before != after {
            self.weighed.extend(after.into_iter().flat_map(|shape| self.census.add(shape)));
            self.weighed.extend(before.into_iter().flat_map(|shape| self.census.remove(shape)));
        }
    }

    /// What counts otherwise among the pods that may come since this was last asked.
    pub(in crate::scheduling::scheduler) fn take_weighed(&mut self) -> Vec<Weighed> {
        std::mem::take(&mut self.weighed)
    }

    /// A pod.
    pub(in crate::scheduling::scheduler) fn get(&self, uid: &str) -> Option<&Entry> {
        self.entries.get(uid)
    }

    /// A pod, to change what is known of it, but for what [`counted`] looks at.
    pub(in crate::scheduling::scheduler) fn get_mut(&mut self, uid: &str) -> Option<&mut Entry> {
        self.entries.get_mut(uid)
    }

    /// Whether the pod is known.
    pub(in crate::scheduling::scheduler) fn contains(&self, uid: &str) -> bool {
        self.entries.get(uid).is_some()
    }

    /// Every uid, in no order.
    pub(in crate::scheduling::scheduler) fn uids(&self) -> impl ExactSizeIterator<Item = &Uid> {
        self.entries.iter().map(|entry| &entry.info.key.uid)
    }

    /// Every pod, in no order.
    pub(in crate::scheduling::scheduler) fn all(&self) -> impl ExactSizeIterator<Item = &Entry> + Clone {
        self.entries.iter()
    }

    /// Makes room for so many pods in all.
    pub(in crate::scheduling::scheduler) fn reserve(&mut self, pods: usize) {
        self.entries.reserve(pods);
        self.by_name.reserve(pods.saturating_sub(self.by_name.uids.len()), &self.entries);
    }
}

impl PodLister for Pods {
    fn pod(&self, uid: &str) -> Option<&PodInfo> {
        Some(&self.entries.get(uid)?.info)
    }

    fn named(&self, namespace: &str, name: &str) -> Option<&PodInfo> {
        self.pod(self.by_name.get(namespace, name, &self.entries)?)
    }
}

/// The shape of a pod that holds cards, or waits for some and says so: a pod that comes is not counted before it is decided, so that a dry run says
/// where it goes.
fn counted(pod: &PodInfo) -> Option<PodShape> {
    if counts(pod) { pod.footprint.shape() } else { None }
}

fn counts(pod: &PodInfo) -> bool {
    let waits = matches!(pod.claim, Claim::Place(_)) && pod.status.told.is_some();
    (pod.holding.is_some() || waits) && pod.stage != Stage::Ended
}

/// What decides as what the pod counts, where that is what its claims ask for.
fn claiming(pod: &PodInfo) -> Option<(Arc<Footprint>, Timestamp)> {
    let claims = counts(pod) && pod.footprint.cards.is_none() && !pod.footprint.resource_claims.is_empty();
    claims.then(|| (pod.footprint.clone(), pod.lifetime.created))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{
        fixtures,
        model::{pod::WaitingPodStatus, pod_shape::CardShape},
    };

    #[test]
    fn a_pod_counts_once_from_when_it_is_told_to_wait_until_it_is_gone() {
        let now = Timestamp::UNIX_EPOCH;
        let mut pods = Pods::default();
        let ask = fixtures::ask(1, 4_000, 0);
        let cards = CardShape::of(&ask.devices).map(Arc::new);
        let mut pod = fixtures::pod("pod", Claim::Place(Arc::new(ask)));
        pod.footprint = Arc::new(Footprint { cards, ..Footprint::clone(&pod.footprint) });
        let uid = pod.key.uid.clone();
        let shape = Arc::new(pod.footprint.shape().unwrap());
        pods.see(Box::new(pod.clone()), now);
        assert_eq!(pods.take_weighed(), []);
        pods.tell(&uid, "0/1 nodes are available");
        assert_eq!(pods.take_weighed(), [(shape.clone(), 1)]);
        // The watch shows what was written.
        let status = WaitingPodStatus {
            told: Some("0/1 nodes are available".to_owned()),
            ..WaitingPodStatus::default()
        };
        pods.see(Box::new(PodInfo { status: Arc::new(status), ..pod.clone() }), now);
        pods.tell(&uid, "0/2 nodes are available");
        assert_eq!(pods.take_weighed(), []);
        pods.remove(&uid);
        assert_eq!(pods.take_weighed(), [(shape, 0)]);
    }
}
