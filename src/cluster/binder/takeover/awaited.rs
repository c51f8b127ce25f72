//! The pods, nodes and claims of devices that the watches must have delivered before a term begins: those that the API server has now.
//! What the last leader has given to a claim stands nowhere else until the claim's pod is bound.
//!
//! A kind was seen when its watch, which tells in the order of versions, has passed the version that the whole kind has now, or when
//! each of its objects was seen as it is now. Versions are compared within a kind only: each may have a store of its own
//! (kube-apiserver `--etcd-servers-overrides`). It must not ask.

use std::{collections::BTreeSet, sync::Arc};

use super::inquiry::{InquiryAnswer, ObjectVersion};
use crate::scheduling::{
    Event, NodeChange, ObjectChange, PodChange, Scheduler, model::kind, model::name::full_name,
};

/// The objects that must still be delivered, as far as they are known.
#[derive(Debug, Default)]
pub struct AwaitedObjects {
    pods: AwaitedKind,
    nodes: AwaitedKind,
    claims: AwaitedKind,
    /// Objects that were deleted since: pods by uid, nodes by name, claims by namespace and name.
    gone: BTreeSet<Arc<str>>,
}

#[derive(Debug, Default)]
struct AwaitedKind {
    /// The version of the whole kind.
    version: Option<u64>,
    /// The newest resource version that its watch has delivered since.
    told: Option<u64>,
    /// Its objects without those that were seen.
    unseen: Option<Vec<ObjectVersion>>,
}

impl AwaitedObjects {
    /// Takes over an answer of the API server.
    pub fn learn(&mut self, answer: InquiryAnswer) {
        match answer {
            InquiryAnswer::Pods(version) => self.pods.version = version.parse().ok(),
            InquiryAnswer::EachPod(pods) => self.pods.unseen = Some(pods),
            InquiryAnswer::EachNode(version, nodes) => {
                (self.nodes.version, self.nodes.unseen) = (version.parse().ok(), Some(nodes));
            }
            InquiryAnswer::EachClaim(claims) => self.claims.unseen = Some(claims),
        }
    }

    /// Takes over events of the watches.
    pub fn note(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::Pod(PodChange::Seen(pod)) => self.pods.note(&pod.resource_version),
                Event::Node(NodeChange::Seen(node)) => self.nodes.note(&node.resource_version),
                Event::Pod(PodChange::Gone(uid) | PodChange::Ended(uid)) => {
                    self.gone.insert(uid.clone());
                }
                Event::Node(NodeChange::Gone(name))
                | Event::Object(ObjectChange::Gone(kind::Kind::ResourceClaim, name)) => {
                    self.gone.insert(name.clone());
                }
                _ => {}
            }
        }
    }

    /// Whether everything was delivered.
    pub fn is_seen(&mut self, scheduler: &Scheduler) -> bool {
        let gone = &self.gone;
        let nodes = self.nodes.is_seen(|ObjectVersion { name, number, .. }| {
            gone.contains(&**name) || scheduler.view().has_seen_node(name, number)
        });
        let claims = self.claims.is_seen(|ObjectVersion { namespace, name, number, .. }| {
            gone.contains(&full_name(namespace, name))
                || scheduler.view().has_seen_claim(namespace, name, number)
        });
        nodes && claims && self.pods_are_seen(scheduler)
    }

    /// Whether every pod was delivered.
    pub fn pods_are_seen(&mut self, scheduler: &Scheduler) -> bool {
        let gone = &self.gone;
        self.pods.is_seen(|ObjectVersion { uid, number, .. }| {
            gone.contains(&**uid) || scheduler.view().has_seen_pod(uid, number)
        })
    }

    /// How many of the known pods, nodes and claims were not delivered.
    pub fn unseen(&self) -> [usize; 3] {
        let unseen = |kind: &AwaitedKind| kind.unseen.as_ref().map_or(0, Vec::len);
        [&self.pods, &self.nodes, &self.claims].map(unseen)
    }
}

impl AwaitedKind {
    fn note(&mut self, version: &str) {
        self.told = self.told.max(version.parse().ok());
    }

    /// Removes the delivered objects, and returns whether none is left.
    fn is_seen(&mut self, seen: impl Fn(&ObjectVersion) -> bool) -> bool {
        if self.version.is_some_and(|version| self.told >= Some(version)) {
            return true;
        }
        let Some(unseen) = &mut self.unseen else { return false };
        unseen.retain(|version| !seen(version));
        unseen.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(version: &str, told: &[&str]) -> AwaitedKind {
        let mut kind = AwaitedKind { version: version.parse().ok(), ..AwaitedKind::default() };
        for version in told {
            kind.note(version);
        }
        kind
    }

    #[test]
    fn a_kind_was_seen_once_its_watch_has_passed_the_version_that_it_has() {
        let cases: [(&str, &[&str], bool); 7] = [
            ("100", &[], false),
            ("100", &["99"], false),
            ("100", &["99", "100"], true),
            ("100", &["101", "99"], true),
            ("99", &["100"], true),
            ("opaque", &["100"], false),
            ("100", &["opaque"], false),
        ];
        for (version, told, seen) in cases {
            assert_eq!(kind(version, told).is_seen(|_| false), seen, "{version} {told:?}");
        }
    }

    #[test]
    fn a_kind_whose_watch_is_quiet_was_seen_once_each_object_was() {
        let mut kind = kind("100", &["99"]);
        let object = |name: &str| ObjectVersion {
            uid: name.to_owned(),
            namespace: String::new(),
            name: name.to_owned(),
            number: "98".to_owned(),
        };
        kind.unseen = Some(vec![object("a"), object("b")]);
        assert!(!kind.is_seen(|version| version.name == "a"));
        assert_eq!(kind.unseen.as_ref().map(Vec::len), Some(1));
        assert!(kind.is_seen(|version| version.name == "b"));
    }
}
