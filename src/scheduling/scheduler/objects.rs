//! Taking in the objects that plugins read beside pods, nodes and quotas.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::Scheduler;
use crate::scheduling::{
    event::{Event, ObjectChange},
    model::{kind::Kind, name::NodeName, node::NodeInfo},
    prebind::PrebindInput,
    world::object::Object,
};

impl Scheduler {
    /// Takes in a list of a kind: what is not in it is gone.
    pub(super) fn resync_objects(&mut self, kind: Kind, objects: Vec<Object>, now: Timestamp) {
        let live: BTreeSet<Arc<str>> = objects.iter().map(Object::name).collect();
        let known = self.snapshot.objects().of_kind(kind).map(Object::name);
        let gone: Vec<Arc<str>> = known.filter(|name| !live.contains(name)).collect();
        for name in gone {
            self.take_object(kind, &name, now);
        }
        for object in objects {
            self.put_object(object, now);
        }
        self.wake_gangs(kind, None);
        let first = !self.snapshot.objects().are_listed(&[kind]);
        self.snapshot.note_listed(kind);
        if first && kind == Kind::PodDisruptionBudget {
            self.end_wait_for_budgets();
        }
        self.end_wait_for_lists();
    }

    /// Takes in an object, new or changed.
    pub(super) fn see_object(&mut self, object: Object, now: Timestamp) {
        let (kind, name) = (object.kind(), object.name());
        self.put_object(object, now);
        self.wake_gangs(kind, Some(&name));
    }

    /// Takes in that an object is gone.
    pub(super) fn lose_object(&mut self, kind: Kind, name: &Arc<str>, now: Timestamp) {
        self.take_object(kind, name, now);
        self.wake_gangs(kind, Some(name));
    }

    /// Takes in that the API server does not serve this kind.
    pub(super) fn miss_kind(&mut self, kind: Kind, now: Timestamp) {
        self.resync_objects(kind, Vec::new(), now);
        self.snapshot.note_unserved(kind);
        self.wake_gangs(kind, None);
    }

    fn put_object(&mut self, object: Object, now: Timestamp) {
        if matches!(object, Object::Unread(..)) {
            return;
        }
        let nodes = match &object {
            Object::Device(node, offer) => {
                self.reports.changed_devices.insert(offer.profile.clone());
                vec![node.clone()]
            }
            Object::ShareTemplates(..) => self.nodes_with_devices(),
            _ => Vec::new(),
        };
        if let Object::Reservation(_, reservation) = &object {
            self.reports.changed_devices.insert(reservation.allocation.profile.clone());
        }
        let claim = match &object {
            Object::ResourceClaim(claim) => Some(claim.clone()),
            _ => None,
        };
        for node in self.snapshot.set_object(object) {
            self.wake(&node);
            self.flows.touch(&node);
        }
        if let Some(claim) = claim {
            self.advance_prebind(PrebindInput::ClaimSeen(&claim));
        }
        self.join_anew(&nodes, now);
    }

    /// The nodes that have a Device.
    fn nodes_with_devices(&self) -> Vec<NodeName> {
        self.snapshot.objects().of_kind(Kind::Device).map(Object::name).collect()
    }

    /// Joins to these nodes what objects say of them now.
    fn join_anew(&mut self, nodes: &[NodeName], now: Timestamp) {
        for node in nodes {
            if let Some(node) = self.snapshot.node(node).map(|known| NodeInfo::clone(&known.info)) {
                self.take_in_node(node, now);
            }
        }
    }

    fn take_object(&mut self, kind: Kind, name: &Arc<str>, now: Timestamp) {
        let offered =
            (kind == Kind::Device).then(|| self.snapshot.objects().devices(name).cloned()).flatten();
        for node in self.snapshot.remove_object(kind, name) {
            self.wake(&node);
            self.flows.touch(&node);
        }
        if kind == Kind::ShareTemplates {
            self.join_anew(&self.nodes_with_devices(), now);
        }
        let Some(offered) = offered else { return };
        self.reports.changed_devices.insert(offered.profile.clone());
        if let Some(mut node) = self.snapshot.node(name).map(|known| NodeInfo::clone(&known.info)) {
            node.drop_devices(&offered.profile);
            self.take_in_node(node, now);
        }
    }

    /// Everything that was seen of these kinds, as the lists that would let another see the same.
    pub(super) fn objects(&self) -> Vec<Event> {
        let objects = self.snapshot.objects();
        let listed = Kind::ALL.iter().filter(|kind| objects.are_listed(&[**kind]));
        let as_listed = |kind: &Kind| {
            if objects.is_unserved(*kind) {
                Event::Object(ObjectChange::Unserved(*kind))
            } else {
                Event::Object(ObjectChange::Listed(*kind, objects.of_kind(*kind).cloned().collect()))
            }
        };
        listed.map(as_listed).collect()
    }
}
