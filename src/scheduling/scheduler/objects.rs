//! Taking in the objects that plugins read beside pods, nodes and quotas.

use std::{collections::BTreeSet, sync::Arc};

use super::Scheduler;
use crate::scheduling::{
    event::Event,
    object::{Kind, Object},
};

impl Scheduler {
    /// Takes in a list of a kind: what is not in it is gone.
    pub(super) fn resync_objects(&mut self, kind: Kind, objects: Vec<Object>) {
        let live: BTreeSet<Arc<str>> = objects.iter().map(Object::name).collect();
        let known = self.snapshot.objects().of_kind(kind).map(Object::name);
        let gone: Vec<Arc<str>> = known.filter(|name| !live.contains(name)).collect();
        for name in gone {
            self.snapshot.remove_object(kind, &name);
        }
        for object in objects {
            self.snapshot.set_object(object);
        }
        self.wake_gangs_of(kind);
        let first = !self.snapshot.objects().are_listed(&[kind]);
        self.snapshot.note_listed(kind);
        if first && kind == Kind::PodDisruptionBudget {
            self.end_wait_for_budgets();
        }
        self.end_wait_for_lists();
    }

    /// Takes in an object, new or changed.
    pub(super) fn see_object(&mut self, object: Object) {
        let (kind, name) = (object.kind(), object.name());
        self.snapshot.set_object(object);
        self.wake_gang_of(kind, &name);
    }

    /// Takes in that an object is gone.
    pub(super) fn lose_object(&mut self, kind: Kind, name: &Arc<str>) {
        self.snapshot.remove_object(kind, name);
        self.wake_gang_of(kind, name);
    }

    /// Takes in that the API server does not serve this kind.
    pub(super) fn miss_kind(&mut self, kind: Kind) {
        self.resync_objects(kind, Vec::new());
        self.snapshot.note_unserved(kind);
        self.wake_gangs_of(kind);
    }

    /// Everything that was seen of these kinds, as the lists that would let another see the same.
    pub(super) fn objects(&self) -> Vec<Event> {
        let objects = self.snapshot.objects();
        let listed = Kind::ALL.iter().filter(|kind| objects.are_listed(&[**kind]));
        let as_listed = |kind: &Kind| {
            if objects.is_unserved(*kind) {
                Event::Unserved(*kind)
            } else {
                Event::Listed(*kind, objects.of_kind(*kind).cloned().collect())
            }
        };
        listed.map(as_listed).collect()
    }
}
