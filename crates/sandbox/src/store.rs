//! What is stored: objects, the one counter of revisions, and a bounded history for watches; it knows no rule of any kind.

use super::{
    object,
    resource::Resource,
    status::{Result, StatusError},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};
use tokio::sync::Notify;

/// Namespace (empty for cluster scope) and name, in the order of lists.
pub(super) type Key = (String, String);

/// Objects of one resource at one revision.
pub(super) type Snapshot = BTreeMap<Key, Arc<Value>>;

/// What a write left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Stored,
    Removed,
}

/// One write: what was there and what came of it.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) revision: u64,
    pub(super) before: Option<Arc<Value>>,
    /// The new state, or the last one with the revision of its removal.
    pub(super) after: Arc<Value>,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
struct Table {
    objects: Snapshot,
    history: VecDeque<Change>,
    /// Nobody may start to read below this revision.
    compacted: u64,
    /// The newest change that was forgotten; who has seen it misses nothing.
    forgotten: u64,
    /// Wakes watches in the order in which they wait: tokio's `watch` would wake them in an order of chance.
    moved: Arc<Notify>,
}

/// All objects of the cluster.
#[derive(Debug)]
pub(super) struct Store {
    revision: u64,
    history: usize,
    tables: BTreeMap<(&'static str, &'static str), Table>,
}

/// The key under which an object is stored.
pub(super) fn key_of(object: &Value) -> Key {
    (object::namespace(object).to_owned(), object::name(object).to_owned())
}

fn too_old(revision: u64, compacted: u64) -> StatusError {
    StatusError::expired(format!("too old resource version: {revision} ({compacted})"))
}

impl Store {
    /// An empty store that keeps so many changes for each resource.
    pub(super) fn new(history: usize) -> Self {
        Self { revision: 1, history, tables: BTreeMap::new() }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    fn table(&mut self, resource: &'static Resource) -> &mut Table {
        let key = (resource.stored().group, resource.stored().plural);
        self.tables.entry(key).or_insert_with(|| Table {
            objects: Snapshot::new(),
            history: VecDeque::new(),
            compacted: 0,
            forgotten: 0,
            moved: Arc::default(),
        })
    }

    pub(super) fn get(&mut self, resource: &'static Resource, key: &Key) -> Option<Arc<Value>> {
        self.table(resource).objects.get(key).cloned()
    }

    pub(super) fn objects(&mut self, resource: &'static Resource) -> &Snapshot {
        &self.table(resource).objects
    }

    /// Stores an object under a new revision.
    pub(super) fn put(&mut self, resource: &'static Resource, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        object::set_meta(&mut object, "resourceVersion", Some(json!(self.revision.to_string())));
        let after = Arc::new(object);
        let before = self.table(resource).objects.insert(key_of(&after), after.clone());
        self.record(resource, before, after.clone(), Outcome::Stored);
        after
    }

    /// Removes an object; its last state is answered with the revision of the deletion.
    pub(super) fn remove(&mut self, resource: &'static Resource, key: &Key) -> Option<Arc<Value>> {
        let before = self.table(resource).objects.remove(key)?;
        self.revision += 1;
        let mut last = (*before).clone();
        object::set_meta(&mut last, "resourceVersion", Some(json!(self.revision.to_string())));
        let last = Arc::new(last);
        self.record(resource, Some(before), last.clone(), Outcome::Removed);
        Some(last)
    }

    fn record(
        &mut self,
        resource: &'static Resource,
        before: Option<Arc<Value>>,
        after: Arc<Value>,
        outcome: Outcome,
    ) {
        let (revision, limit) = (self.revision, self.history);
        let table = self.table(resource);
        table.history.push_back(Change { revision, before, after, outcome });
        while table.history.len() > limit {
            table.forgotten = table.history.pop_front().map_or(table.forgotten, |change| change.revision);
            table.compacted = table.compacted.max(table.forgotten);
        }
        table.moved.notify_waiters();
    }

    /// Forgets the whole history: older revisions answer 410 from now on.
    pub(super) fn compact(&mut self) {
        for table in self.tables.values_mut() {
            table.forgotten = table.history.back().map_or(table.forgotten, |change| change.revision);
            table.history.clear();
            table.compacted = self.revision;
        }
    }

    /// A signal that moves with each write to the resource.
    pub(super) fn subscribe(&mut self, resource: &'static Resource) -> Arc<Notify> {
        self.table(resource).moved.clone()
    }

    /// Refuses a reader who starts from a revision before the last compaction.
    pub(super) fn check_start(&mut self, resource: &'static Resource, revision: u64) -> Result<()> {
        let compacted = self.table(resource).compacted;
        if revision < compacted { Err(too_old(revision, compacted)) } else { Ok(()) }
    }

    /// The changes after a revision, oldest first; an error when they are no longer all known.
    pub(super) fn changes_after(
        &mut self,
        resource: &'static Resource,
        revision: u64,
    ) -> Result<Vec<Change>> {
        let table = self.table(resource);
        if revision < table.forgotten {
            return Err(too_old(revision, table.compacted));
        }
        let newer = table.history.iter().rev().take_while(|change| change.revision > revision);
        let mut changes: Vec<Change> = newer.cloned().collect();
        changes.reverse();
        Ok(changes)
    }

    /// The objects as they stood at a revision, by undoing what came later.
    pub(super) fn snapshot_at(&mut self, resource: &'static Resource, revision: u64) -> Result<Snapshot> {
        self.check_start(resource, revision)?;
        let later = self.changes_after(resource, revision)?;
        let mut objects = self.objects(resource).clone();
        for change in later.into_iter().rev() {
            let key = key_of(&change.after);
            match change.before {
                Some(before) => _ = objects.insert(key, before),
                None => _ = objects.remove(&key),
            }
        }
        Ok(objects)
    }
}
