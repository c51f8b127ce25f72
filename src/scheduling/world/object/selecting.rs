//! Services and the controllers that make pods, as far as they say which pods are spread by default: names and selectors. Lists of
//! ReplicaSets are long, so nothing else of them is kept. Of DaemonSets, only which there are.

use std::sync::Arc;

use super::{Object, Objects};
use crate::object::{
    LabelSelector, Labels, Metadata, Requirement,
    metadata::Controller,
    selecting::{BySelector, DaemonSet, ReplicaSet, ReplicationController, Service, StatefulSet},
};
use crate::scheduling::model::{
    kind::{Kind, SelectingKind},
    name::full_name,
    tdm::job::DaemonSetName,
};

/// Which pods a controller says are its own.
#[derive(Clone, Copy, Debug)]
pub enum SelectedPods<'a> {
    /// Those with these labels.
    Labels(&'a Labels),
    /// Those that meet all of these requirements.
    Requirements(&'a [Requirement]),
}

/// What is kept of an object that selects pods: the labels that its pods have, or the requirements that they meet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SelectingObject {
    /// Of a Service.
    Service(Arc<Labels>),
    /// Of a ReplicationController.
    ReplicationController(Arc<Labels>),
    /// Of a ReplicaSet.
    ReplicaSet(Arc<Vec<Requirement>>),
    /// Of a StatefulSet.
    StatefulSet(Arc<Vec<Requirement>>),
}

impl SelectingObject {
    /// The object's kind.
    pub fn kind(&self) -> SelectingKind {
        match self {
            Self::Service(_) => SelectingKind::Service,
            Self::ReplicationController(_) => SelectingKind::ReplicationController,
            Self::ReplicaSet(_) => SelectingKind::ReplicaSet,
            Self::StatefulSet(_) => SelectingKind::StatefulSet,
        }
    }

    /// Which pods it selects.
    pub fn selected(&self) -> SelectedPods<'_> {
        match self {
            Self::Service(labels) | Self::ReplicationController(labels) => SelectedPods::Labels(labels),
            Self::ReplicaSet(requirements) | Self::StatefulSet(requirements) => {
                SelectedPods::Requirements(requirements)
            }
        }
    }
}

impl Object {
    /// What is kept of a Service.
    pub fn service(service: Arc<Service>) -> Self {
        let Service { metadata, spec } = Arc::unwrap_or_clone(service);
        Self::Selecting(name_of(&metadata), SelectingObject::Service(Arc::new(spec.selector)))
    }

    /// What is kept of a ReplicationController.
    pub fn replication_controller(controller: Arc<ReplicationController>) -> Self {
        let ReplicationController { metadata, spec } = Arc::unwrap_or_clone(controller);
        Self::Selecting(name_of(&metadata), SelectingObject::ReplicationController(Arc::new(spec.selector)))
    }

    /// What is kept of a ReplicaSet.
    pub fn replica_set(set: Arc<ReplicaSet>) -> Self {
        let ReplicaSet { metadata, spec } = Arc::unwrap_or_clone(set);
        Self::Selecting(name_of(&metadata), SelectingObject::ReplicaSet(requirements(spec)))
    }

    /// What is kept of a StatefulSet.
    pub fn stateful_set(set: Arc<StatefulSet>) -> Self {
        let StatefulSet { metadata, spec } = Arc::unwrap_or_clone(set);
        Self::Selecting(name_of(&metadata), SelectingObject::StatefulSet(requirements(spec)))
    }

    /// What is kept of a DaemonSet.
    pub fn daemon_set(set: Arc<DaemonSet>) -> Self {
        let DaemonSet { metadata } = Arc::unwrap_or_clone(set);
        Self::DaemonSet(name_of(&metadata), metadata.uid.into())
    }
}

fn name_of(metadata: &Metadata) -> Arc<str> {
    full_name(&metadata.namespace, &metadata.name)
}

/// None for a selector that is absent: it selects no pod, and upstream adds nothing for it.
fn requirements(spec: BySelector) -> Arc<Vec<Requirement>> {
    Arc::new(spec.selector.map(LabelSelector::into_requirements).unwrap_or_default())
}

impl Objects {
    /// The labels by which each Service of a namespace selects its pods.
    pub fn services(&self, namespace: &str) -> impl Iterator<Item = &Labels> {
        let prefix = format!("{namespace}/");
        let first: Arc<str> = prefix.as_str().into();
        let known = self
            .by_kind
            .get(&Kind::Selecting(SelectingKind::Service))
            .into_iter()
            .flat_map(move |known| known.range(first.clone()..));
        known.take_while(move |(name, _)| name.starts_with(&prefix)).filter_map(|(_, object)| match object {
            Object::Selecting(_, SelectingObject::Service(labels)) => Some(&**labels),
            _ => None,
        })
    }

    /// Whether this DaemonSet exists, as far as is known: until all are listed, each may.
    pub fn may_have_daemon_set(&self, set: &DaemonSetName) -> bool {
        let known = self.get(Kind::DaemonSet, &set.name);
        let exists = known.is_some_and(|known| matches!(known, Object::DaemonSet(_, uid) if *uid == set.uid));
        exists || !self.are_listed(&[Kind::DaemonSet])
    }

    /// The pods of the controller of a pod in this namespace; `None`: it is not known, or of a kind that does not count.
    pub fn selected_by(&self, controller: &Controller, namespace: &str) -> Option<SelectedPods<'_>> {
        let kind = match (controller.api_version(), controller.kind()) {
            ("v1", "ReplicationController") => SelectingKind::ReplicationController,
            ("apps/v1", "ReplicaSet") => SelectingKind::ReplicaSet,
            ("apps/v1", "StatefulSet") => SelectingKind::StatefulSet,
            _ => return None,
        };
        match self.get(Kind::Selecting(kind), &full_name(namespace, controller.name()))? {
            Object::Selecting(_, object) => Some(object.selected()),
            _ => None,
        }
    }
}
