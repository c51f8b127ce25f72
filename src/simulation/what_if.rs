//! A cluster as it would be with more nodes, without some pods, or with some nodes cordoned.

use std::sync::Arc;

use super::simulated_cluster::ClusterLists;
use crate::{
    object::Metadata,
    scheduling::{
        Event, NodeChange, NodeInfo, NodeName, ObjectChange, PodChange, QuotaChange, world::object::Object,
    },
};

/// What would be different.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClusterChange {
    /// Nodes that are added.
    pub added: Option<AddedNodes>,
    /// Namespace and name of the pods that are left out.
    pub without: Vec<(String, String)>,
    /// The nodes that are cordoned.
    pub cordoned: Vec<String>,
}

/// Nodes that are added.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AddedNodes {
    /// So many.
    pub count: usize,
    /// The node that each is like.
    pub like: String,
}

/// There is nothing of this name to change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UnknownName {
    /// The node.
    Node(String),
    /// The pod, by namespace and name.
    Pod(String, String),
}

impl ClusterLists {
    /// What a scheduler has seen, as [`recount`](crate::scheduling::scheduler::SchedulerView::recount) tells it.
    pub fn seen(events: Vec<Event>) -> Self {
        let mut lists = Self::default();
        for event in events {
            match event {
                Event::Pod(PodChange::Listed(pods)) => {
                    lists.pods = pods.into_pods().map(|pod| *pod).collect();
                }
                Event::Node(NodeChange::Listed(nodes)) => lists.nodes = nodes,
                Event::Quota(QuotaChange::Listed(quotas)) => lists.quotas = quotas,
                Event::Object(ObjectChange::Listed(_, objects)) => lists.objects.extend(objects),
                _ => {}
            }
        }
        lists
    }

    /// The same, changed. Added nodes have no pods, and are like the other before that is cordoned.
    ///
    /// # Errors
    ///
    /// A name that is not there.
    pub fn changed(mut self, change: &ClusterChange) -> Result<Self, UnknownName> {
        for (namespace, name) in &change.without {
            let before = self.pods.len();
            self.pods.retain(|pod| (&*pod.key.namespace, &*pod.key.name) != (&**namespace, &**name));
            if self.pods.len() == before {
                return Err(UnknownName::Pod(namespace.clone(), name.clone()));
            }
        }
        if let Some(AddedNodes { count, like }) = &change.added {
            let node = self.nodes.iter().find(|node| *node.name == **like);
            let node = node.ok_or_else(|| UnknownName::Node(like.clone()))?.clone();
            let is_taken = |name: &str| self.nodes.iter().any(|node| *node.name == *name);
            let names = added_names(like, *count, is_taken);
            let of_node: Vec<_> =
                self.objects.iter().filter(|object| belongs(object, like)).cloned().collect();
            for name in names {
                self.objects.extend(of_node.iter().map(|object| of_added(object, like, &name)));
                self.nodes.push(added(&node, &name));
            }
        }
        for cordoned in &change.cordoned {
            let node = self.nodes.iter_mut().find(|node| *node.name == **cordoned);
            node.ok_or_else(|| UnknownName::Node(cordoned.clone()))?.cordoned = true;
        }
        Ok(self)
    }
}

/// The names of so many nodes that are like this one.
pub fn added_names(like: &str, count: usize, is_taken: impl Fn(&str) -> bool) -> Vec<String> {
    let names = (1_u64..).map(|number| format!("{like}-added-{number}"));
    names.filter(|name| !is_taken(name)).take(count).collect()
}

/// What a text of a node says of another: the other's name where it is the node's, or begins with it and a hyphen; `None`: the same.
pub fn renamed(text: &str, from: &str, to: &str) -> Option<String> {
    let rest = text.strip_prefix(from).filter(|rest| rest.is_empty() || rest.starts_with('-'))?;
    Some(format!("{to}{rest}"))
}

/// The node under another name.
fn added(node: &NodeInfo, name: &str) -> NodeInfo {
    let other = |value: &str| renamed(value, &node.name, name).unwrap_or_else(|| value.to_owned());
    let labels = node.labels.iter().map(|(key, value)| (key, other(value))).collect();
    NodeInfo { name: name.into(), uid: "".into(), labels, ..node.clone() }
}

/// Whether the object says what a node has.
fn belongs(object: &Object, node: &str) -> bool {
    match object {
        Object::CsiNode(of) => of.metadata.name == node,
        Object::Device(of, _) => **of == *node,
        Object::ResourceSlice(slice) => slice.spec.node_name.as_deref() == Some(node),
        _ => false,
    }
}

/// The same of another node.
fn of_added(object: &Object, from: &str, to: &str) -> Object {
    let change = |text: &mut String| {
        if let Some(other) = renamed(text, from, to) {
            *text = other;
        }
    };
    let anew = |metadata: &mut Metadata| {
        change(&mut metadata.name);
        metadata.uid.clear();
    };
    match object {
        Object::CsiNode(of) => {
            let mut of = of.clone();
            anew(&mut Arc::make_mut(&mut of).metadata);
            Object::CsiNode(of)
        }
        Object::Device(_, offer) => Object::Device(NodeName::from(to), offer.clone()),
        Object::ResourceSlice(slice) => {
            let mut slice = slice.clone();
            let changed = Arc::make_mut(&mut slice);
            anew(&mut changed.metadata);
            change(&mut changed.spec.pool.name);
            changed.spec.node_name = Some(to.to_owned());
            Object::ResourceSlice(slice)
        }
        other => other.clone(),
    }
}
