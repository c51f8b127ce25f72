//! What the documents of a simulation are: nodes, pods that are state, pods that are to be placed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    claims::ClaimObjects,
    expand::{self, Expansion},
    stateful_set::{self, ClaimTemplates},
};
use crate::{
    admission::Facts,
    cli::{
        documents::{Document, DocumentError},
        review,
    },
    cluster::{
        informer::watch::read_namespace,
        read::{group, reservation::reservation, share_templates},
    },
    config::Config,
    dialect::{
        Dialects,
        koordinator::{self, templates},
    },
    object::{
        ConfigMap, Device, Metadata, Node, Pod, PodDisruptionBudget, PodGroup, Reservation, ResourceQuota,
        pod::SYSTEM_CLASSES,
        selecting::{DaemonSet, ReplicaSet, ReplicationController, Service, StatefulSet},
        storage::PersistentVolumeClaim,
        workload::Places,
    },
    scheduling::world::object::Object,
};

/// What a simulation starts from.
#[derive(Debug)]
pub(super) struct SimulationInput {
    /// The cluster's nodes, and where each stood.
    pub(super) nodes: Vec<(Node, String)>,
    /// The devices of nodes by Koordinator's node side, by the node's name, and where each stood.
    pub(super) devices: BTreeMap<String, (Device, String)>,
    /// The templates of shares of Ascend's cards.
    pub(super) templates: Option<Object>,
    /// Pods that hold something, and where each stood.
    pub(super) state: Vec<(Pod, String)>,
    /// Quotas of namespaces, and where each stood.
    pub(super) quotas: Vec<(ResourceQuota, String)>,
    /// Objects that plugins read: namespaces, storage, Reservations, Services and controllers of pods.
    pub(super) objects: Vec<Object>,
    /// Claims of devices, and what decides on them.
    pub(super) claims: ClaimObjects,
    /// Pods that want a place, in the order of the input.
    pub(super) pods: Vec<Incoming>,
    /// What the rules may know.
    pub(super) facts: Facts,
    /// Priorities of classes.
    pub(super) priorities: Priorities,
    /// Documents that are not read.
    pub(super) unread: Vec<Document>,
    /// What was odd about the input.
    pub(super) warnings: Vec<String>,
}

/// A pod that wants a place.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Its document, with the uid that it has or is given.
    pub(super) document: Document,
    /// Where its fields stand in the document of the input: somewhere in a workload, or as they are.
    pub(super) places: Places,
    /// Its place in the input.
    pub(super) position: u64,
}

/// What priority classes are worth.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    by_name: BTreeMap<String, i32>,
    default: i32,
}

/// `scheduling.k8s.io/v1` PriorityClass.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PriorityClass {
    metadata: Metadata,
    value: i32,
    #[serde(default)]
    global_default: bool,
}

impl Priorities {
    /// The classes that every cluster has.
    fn system() -> Self {
        Self { by_name: SYSTEM_CLASSES.map(|(name, value)| (name.to_owned(), value)).into(), default: 0 }
    }

    fn learn(&mut self, class: PriorityClass) {
        if class.global_default {
            self.default = class.value;
        }
        self.by_name.insert(class.metadata.name, class.value);
    }

    /// The pod's priority as the API server would resolve it; the error is the name of an unknown class.
    pub(super) fn of(&self, pod: &Pod) -> Result<i32, String> {
        let name = pod.spec.priority_class_name.as_deref().filter(|name| !name.is_empty());
        match (pod.spec.priority, name) {
            (Some(priority), _) => Ok(priority),
            (None, Some(name)) => self.by_name.get(name).copied().ok_or_else(|| name.to_owned()),
            (None, None) => Ok(self.default),
        }
    }
}

impl SimulationInput {
    /// Takes in a document of Koordinator's; whether it is one.
    fn take_of_koordinator(&mut self, document: &Document, called: &str) -> Result<bool, DocumentError> {
        let ours = koordinator::is_of_group(document.api_version());
        match document.kind() {
            "Device" if ours => {
                let device: Device = document.read()?;
                self.devices.insert(device.metadata.name.clone(), (device, called.to_owned()));
            }
            "Reservation" if ours => self.take_reservation(document.read()?, called),
            "ConfigMap" => {
                let config_map: ConfigMap = document.read()?;
                if !templates::are_in(&config_map.metadata) {
                    return Ok(false);
                }
                self.take_templates(&config_map, called);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes in the templates of shares.
    fn take_templates(&mut self, config_map: &ConfigMap, called: &str) {
        let (object, troubles) = share_templates(config_map);
        self.warnings.extend(troubles.iter().map(|trouble| format!("{called}: {trouble}")));
        self.templates = Some(object);
    }

    /// Takes in a Reservation. One that was written by hand may have no uid.
    fn take_reservation(&mut self, mut read: Reservation, called: &str) {
        if read.metadata.uid.is_empty() {
            read.metadata.uid.clone_from(&read.metadata.name);
        }
        let (object, troubles) = reservation(&read);
        self.warnings.extend(troubles.iter().map(|trouble| format!("{called}: {trouble}")));
        self.objects.push(object);
    }

    /// Takes in a pod that wants a place, behind those that are there.
    fn arrive(&mut self, document: Document, places: Places) {
        let position = u64::try_from(self.pods.len()).unwrap_or(u64::MAX);
        self.pods.push(Incoming { document, places, position });
    }
}

/// Sorts the documents, and expands workloads to their pods.
pub(super) fn read(documents: &[Document], config: &Config) -> Result<SimulationInput, DocumentError> {
    let mut input = SimulationInput {
        nodes: Vec::new(),
        devices: BTreeMap::new(),
        templates: None,
        state: Vec::new(),
        quotas: Vec::new(),
        objects: Vec::new(),
        claims: ClaimObjects::default(),
        pods: Vec::new(),
        facts: review::facts(documents, config)?,
        priorities: Priorities::system(),
        unread: Vec::new(),
        warnings: Vec::new(),
    };
    let mut uids = BTreeSet::new();
    let mut made = Vec::new();
    let expansion = Expansion::new(documents, config.workloads());
    for (number, document) in (1_u64..).zip(documents) {
        let called = called(document);
        let expanded = expansion.pods(document)?;
        match document.kind() {
            "Node" => input.nodes.push((document.read()?, called)),
            "PriorityClass" => input.priorities.learn(document.read()?),
            "ResourceQuota" => {
                let read = namespaced(document, |one: &mut ResourceQuota| &mut one.metadata)?;
                input.quotas.push((Arc::unwrap_or_clone(read), called));
            }
            "Pod" => {
                let document = identified((document, &Places::default()), number, &mut uids)?;
                let pod: Pod = document.read()?;
                if is_state(&pod, &input.facts.dialects, &config.scheduler_name) {
                    input.state.push((pod, called));
                } else {
                    input.arrive(document, Places::default());
                }
            }
            _ if input.claims.read(document, &called)? || input.take_of_koordinator(document, &called)? => {}
            _ => match object(document)? {
                Some(object) => input.objects.push(object),
                None if expanded.is_some() => {
                    let set = expand::replica_set(document).as_ref().map(object).transpose()?;
                    input.objects.extend(set.flatten());
                }
                None => input.unread.push(document.clone()),
            },
        }
        let templates = ClaimTemplates::of(document)?;
        for (mut pod, places) in expanded.into_iter().flatten() {
            made.extend(templates.mount(&mut pod));
            let pod = identified((&pod, &places), number, &mut uids)?;
            input.arrive(pod, places);
        }
    }
    let made = stateful_set::unless_given(made, &input.objects);
    input.objects.extend(made);
    input.claims.note_groups(&input.objects);
    twins(&mut input);
    Ok(input)
}

/// An object that plugins read; `None`: it is of another kind.
fn object(document: &Document) -> Result<Option<Object>, DocumentError> {
    let object = match document.kind() {
        "Namespace" => read_namespace(Arc::new(document.read()?)),
        "PersistentVolume" => Object::PersistentVolume(document.read()?),
        "PersistentVolumeClaim" => {
            let claim = namespaced(document, |claim: &mut PersistentVolumeClaim| &mut claim.metadata)?;
            Object::PersistentVolumeClaim(claim)
        }
        "StorageClass" => Object::StorageClass(document.read()?),
        "CSINode" => Object::CsiNode(document.read()?),
        "CSIDriver" => Object::CsiDriver(document.read()?),
        "CSIStorageCapacity" => Object::CsiStorageCapacity(document.read()?),
        "VolumeAttachment" => Object::VolumeAttachment(document.read()?),
        "PodGroup" | "CompositePodGroup" => {
            let mut group = namespaced(document, |one: &mut PodGroup| &mut one.metadata)?;
            let metadata = &mut Arc::make_mut(&mut group).metadata;
            if metadata.uid.is_empty() {
                // One that was written by hand may have none.
                metadata.uid = format!("group-{}-{}", metadata.namespace, metadata.name);
            }
            let kind = group::kind(document.api_version(), document.kind());
            return Ok(kind.map(|kind| group::pod_group(kind, &group)));
        }
        "PodDisruptionBudget" => {
            let budget = namespaced(document, |one: &mut PodDisruptionBudget| &mut one.metadata)?;
            Object::PodDisruptionBudget(budget)
        }
        "Service" => Object::service(namespaced(document, |one: &mut Service| &mut one.metadata)?),
        "ReplicationController" => {
            let controller = namespaced(document, |one: &mut ReplicationController| &mut one.metadata)?;
            Object::replication_controller(controller)
        }
        "ReplicaSet" => Object::replica_set(namespaced(document, |one: &mut ReplicaSet| &mut one.metadata)?),
        "StatefulSet" => {
            Object::stateful_set(namespaced(document, |one: &mut StatefulSet| &mut one.metadata)?)
        }
        "DaemonSet" => Object::daemon_set(namespaced(document, |one: &mut DaemonSet| &mut one.metadata)?),
        _ => return Ok(None),
    };
    Ok(Some(object))
}

/// How warnings name a document.
pub(super) fn called(document: &Document) -> String {
    let name = document.name().unwrap_or_default();
    let namespace = document.namespace().map_or_else(String::new, |namespace| format!("{namespace}/"));
    format!("{} ({} {namespace}{name})", document.place, document.kind())
}

/// An object of a kind that lives in namespaces: in `default` where it names none.
fn namespaced<T: DeserializeOwned>(
    document: &Document,
    metadata: fn(&mut T) -> &mut Metadata,
) -> Result<Arc<T>, DocumentError> {
    let mut object: T = document.read()?;
    let metadata = metadata(&mut object);
    if metadata.namespace.is_empty() {
        "default".clone_into(&mut metadata.namespace);
    }
    Ok(Arc::new(object))
}

/// The pod with a namespace and with a uid that no other pod of the input has.
fn identified(
    (document, places): (&Document, &Places),
    number: u64,
    uids: &mut BTreeSet<String>,
) -> Result<Document, DocumentError> {
    let mut document = document.clone();
    if document.value.get("metadata").is_none_or(Value::is_null) {
        return Err(document.error(&places.of("metadata"), "is missing"));
    }
    let pod: Pod = document.read_part(&document.value, places)?;
    let Some(Value::Object(metadata)) = document.value.get_mut("metadata") else {
        return Err(document.error(&places.of("metadata"), "must be a mapping"));
    };
    if pod.metadata.namespace.is_empty() {
        metadata.insert("namespace".to_owned(), "default".into());
    }
    if pod.metadata.name.is_empty() {
        let name = format!("{}{number}", pod.metadata.generate_name.as_deref().unwrap_or("pod-"));
        metadata.insert("name".to_owned(), name.into());
    }
    let mut uid = pod.metadata.uid;
    if uid.is_empty() || uids.contains(&uid) {
        let further = (uids.len()..).map(|further| format!("document-{number}-{further}"));
        let mut free = std::iter::once(format!("document-{number}")).chain(further);
        uid = free.find(|uid| !uids.contains(uid)).expect("there are more numbers than pods");
        metadata.insert("uid".to_owned(), uid.as_str().into());
    }
    uids.insert(uid);
    Ok(document)
}

/// On a node, or decided by another scheduler and not yet bound.
fn is_state(pod: &Pod, dialects: &Dialects, ours: &str) -> bool {
    let named = |name: &Option<String>| name.as_deref().is_some_and(|name| !name.is_empty());
    let foreign = named(&pod.spec.scheduler_name) && pod.spec.scheduler_name.as_deref() != Some(ours);
    // What Koordinator's scheduler writes names no node, so that it holds nothing before the pod is bound.
    let naming = || dialects.iter().filter(|dialect| dialect.name().as_str() != koordinator::NAME);
    let carries = || naming().any(|dialect| !matches!(dialect.assignment(pod), Ok(None)));
    named(&pod.spec.node_name) || foreign && carries()
}

/// Of a node that is in the input twice, the last document counts, as it would after both were applied.
fn twins(input: &mut SimulationInput) {
    let mut seen: BTreeMap<Arc<str>, String> = BTreeMap::new();
    for (node, called) in &input.nodes {
        if let Some(before) = seen.insert(node.metadata.name.as_str().into(), called.clone()) {
            input.warnings.push(format!("{called}: replaces {before}"));
        }
    }
}
