//! Which objects of a kind can't be read completely: each is logged with its fields, and all are counted.

use std::collections::BTreeSet;

use crate::{
    cluster::informer::unread::{Unread, UnreadObjects},
    excerpt::{FIELD, shortened},
    object::Metadata,
    scheduling::model::name::full_name,
};

/// The objects of one watch.
pub(super) struct WatchTally {
    kind: &'static str,
    names: BTreeSet<String>,
    objects: UnreadObjects,
}

impl WatchTally {
    pub(super) fn new(kind: &'static str, objects: UnreadObjects) -> Self {
        Self { kind, names: BTreeSet::new(), objects }
    }

    /// For a further list, not counted before it replaces the one before.
    pub(super) fn anew(&self) -> Listing {
        Listing { kind: self.kind, names: BTreeSet::new() }
    }

    /// Takes over what a list has found.
    pub(super) fn replace(&mut self, Listing { names, .. }: Listing) {
        self.objects.add(self.kind, count(names.len()) - count(self.names.len()));
        self.names = names;
    }

    /// Takes in an object, new or changed.
    pub(super) fn take_in(&mut self, metadata: &Metadata, unread: &[Unread]) {
        if unread.is_empty() {
            self.take_out(metadata);
        } else {
            log(self.kind, metadata, unread);
            let new = self.names.insert(name(metadata));
            self.objects.add(self.kind, i64::from(new));
        }
    }

    /// Takes in that an object is gone.
    pub(super) fn take_out(&mut self, metadata: &Metadata) {
        if !self.names.is_empty() && self.names.remove(&name(metadata)) {
            self.objects.add(self.kind, -1);
        }
    }
}

impl Drop for WatchTally {
    fn drop(&mut self) {
        self.objects.add(self.kind, -count(self.names.len()));
    }
}

/// The objects of a list that is still arriving.
pub(super) struct Listing {
    kind: &'static str,
    names: BTreeSet<String>,
}

impl Listing {
    /// Takes in an object.
    pub(super) fn take_in(&mut self, metadata: &Metadata, unread: &[Unread]) {
        if !unread.is_empty() {
            log(self.kind, metadata, unread);
            self.names.insert(name(metadata));
        }
    }
}

fn log(kind: &str, metadata: &Metadata, unread: &[Unread]) {
    let object = shortened(&*full_name(&metadata.namespace, &metadata.name), FIELD);
    for Unread { field, reason } in unread {
        tracing::warn!(kind, object, field, "can't be read: {reason}");
    }
}

fn name(metadata: &Metadata) -> String {
    full_name(&metadata.namespace, &metadata.name).to_string()
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
