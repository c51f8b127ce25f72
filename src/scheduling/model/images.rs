//! Images of containers: which of them each node has, and on how many nodes each one is.
//!
//! What an image is worth for a pod is `plugin/image_locality`'s to say.

use std::{
    borrow::Cow,
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

/// The images on one node: every name of each, in order, with its size in bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NodeImages(Arc<[(Arc<str>, i64)]>);

impl NodeImages {
    /// The images of these names and sizes. Of two with one name the first counts.
    pub fn new<'a>(images: impl IntoIterator<Item = (&'a str, i64)>) -> Self {
        let mut by_name: BTreeMap<&str, i64> = BTreeMap::new();
        for (name, size) in images {
            by_name.entry(name).or_insert(size);
        }
        Self(by_name.into_iter().map(|(name, size)| (name.into(), size)).collect())
    }

    /// The size in bytes of the image with this name; `None`: the node does not have it.
    pub fn size(&self, name: &str) -> Option<i64> {
        let at = self.0.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        Some(self.0[at].1)
    }
}

/// On how many nodes each image is, by name. It holds each name once; the images of nodes share it.
#[derive(Clone, Debug, Default)]
pub struct Images {
    nodes: BTreeMap<Arc<str>, usize>,
    version: u64,
}

impl Images {
    /// On how many nodes the image with this name is.
    pub fn nodes(&self, name: &str) -> usize {
        self.nodes.get(name).copied().unwrap_or_default()
    }

    /// Greater after every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Takes in that a node has other images than before; returns these with the names that are held here.
    #[must_use]
    pub(in crate::scheduling) fn replace(&mut self, before: &NodeImages, after: &NodeImages) -> NodeImages {
        let shared = after.0.iter().map(|(name, size)| (self.count(name), *size)).collect();
        self.remove(before);
        NodeImages(shared)
    }

    /// Takes in that a node has these images no longer.
    pub(in crate::scheduling) fn remove(&mut self, images: &NodeImages) {
        for (name, _) in images.0.iter() {
            self.discount(name);
        }
        self.version += 1;
    }

    fn count(&mut self, name: &Arc<str>) -> Arc<str> {
        match self.nodes.entry(name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(1);
                name.clone()
            }
            Entry::Occupied(mut entry) => {
                *entry.get_mut() += 1;
                entry.key().clone()
            }
        }
    }

    fn discount(&mut self, name: &Arc<str>) {
        if let Entry::Occupied(mut entry) = self.nodes.entry(name.clone()) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }
}

/// The name of an image as nodes report it: with the tag `latest` where it has neither tag nor digest.
pub(in crate::scheduling) fn normalized(name: &str) -> Cow<'_, str> {
    let last = name.rsplit('/').next().unwrap_or_default();
    if last.contains(':') { name.into() } else { format!("{name}:latest").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_on_as_many_nodes_as_have_it() {
        let mut images = Images::default();
        let none = NodeImages::default();
        let one = images.replace(&none, &NodeImages::new([("a", 1), ("b", 2), ("a", 3)]));
        let other = images.replace(&none, &NodeImages::new([("b", 2)]));
        assert_eq!((images.nodes("a"), images.nodes("b"), images.nodes("c")), (1, 2, 0));
        assert_eq!((one.size("a"), one.size("b"), one.size("c")), (Some(1), Some(2), None));
        assert!(Arc::ptr_eq(&one.0[1].0, &other.0[0].0), "a name is held once");
        images.remove(&one);
        assert_eq!((images.nodes("a"), images.nodes("b")), (0, 1));
        assert_eq!(images.nodes.len(), 1, "a name that no node has is forgotten");
    }

    #[test]
    fn an_image_without_a_tag_is_the_latest() {
        for (name, expected) in [
            ("root", "root:latest"),
            ("root:tag", "root:tag"),
            ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
            ("gcr.io:5000/root:tag", "gcr.io:5000/root:tag"),
            ("root@sha256:12", "root@sha256:12"),
            ("", ":latest"),
        ] {
            assert_eq!(normalized(name), expected);
        }
    }
}
