//! What gangs need of the world.

use super::Play;
use crate::scheduling::{
    Event, NodeChange, ObjectChange,
    model::{kind::Kind, node::Signature},
};

impl Play {
    /// A scheduler to which PodGroups are still to be listed.
    pub(in super::super) fn before_lists() -> Self {
        let mut play = Self::unlisted(Signature::Time);
        for kind in Kind::ALL.iter().filter(|kind| !Kind::POD_GROUPS.contains(kind)) {
            play.happens(Event::Object(ObjectChange::Listed(*kind, Vec::new())));
        }
        play
    }

    /// The node is seen in this rack.
    pub(in super::super) fn racked(&mut self, rack: &str) {
        let mut node = self.node();
        node.labels = [("rack", rack)].into();
        self.happens(Event::Node(NodeChange::Seen(Box::new(node))));
    }

    /// Another node like it is seen, in this rack.
    pub(in super::super) fn beside(&mut self, name: &str, rack: &str) {
        let mut node = self.node();
        (node.name, node.uid) = (name.into(), name.into());
        node.labels = [("rack", rack)].into();
        self.happens(Event::Node(NodeChange::Seen(Box::new(node))));
    }
}
