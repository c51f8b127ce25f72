//! The pods that the workloads of a simulation would make: as many as the workload asks for, unless the input holds them already.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::{
    cli::documents::{Document, DocumentError},
    object::{
        Node, Pod,
        workload::{Count, KeptPod, Places, Workloads},
    },
    scheduling::{model::node_affinity::NodeAffinityTerms, plugin::taint_toleration::tolerates_all},
};

/// A pod of a workload, as a document, and where its fields stand in the workload.
pub(super) type Expanded = (Document, Places);

/// What is known of the documents before their workloads are expanded.
pub(super) struct Expansion<'a> {
    workloads: Workloads,
    /// Objects of the input.
    present: BTreeSet<Key>,
    /// Objects that own pods of the input, themselves or through others.
    with_pods: BTreeSet<Key>,
    nodes: Vec<&'a Document>,
}

/// An object by namespace, API group, kind and name.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Key {
    namespace: String,
    group: String,
    kind: String,
    name: String,
}

impl Key {
    fn new(namespace: &str, api_version: &str, kind: &str, name: &str) -> Self {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let [namespace, group, kind, name] = [namespace, group, kind, name].map(str::to_owned);
        Self { namespace, group, kind, name }
    }

    fn of(document: &Document) -> Self {
        let name = document.name().unwrap_or_default();
        Self::new(document.namespace_or_default(), document.api_version(), document.kind(), name)
    }
}

/// Workloads of which `berth dump` leaves the template out: their pods are dumped themselves.
const DUMPED: [&str; 4] = ["ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"];

/// Whether the object is one of those, as a cluster has it: no file that is to be applied has a uid and no template.
fn is_dumped(document: &Document) -> bool {
    DUMPED.contains(&document.kind())
        && document.value.pointer("/spec/template").is_none()
        && document.value.pointer("/metadata/uid").is_some()
}

/// The owners that an object names.
fn owners(document: &Document) -> Vec<Key> {
    let references = document.value.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owner = |reference: &Value| {
        let text = |key: &str| reference.get(key).and_then(Value::as_str).unwrap_or_default();
        Key::new(document.namespace_or_default(), text("apiVersion"), text("kind"), text("name"))
    };
    references.into_iter().flatten().map(owner).collect()
}

/// The Deployment whose ReplicaSet owns this pod, where the ReplicaSet is named after it
/// (Kubernetes `pkg/controller/deployment/sync.go`: the Deployment's name and the pod's `pod-template-hash`).
fn deployment(pod: &Document) -> Option<Key> {
    let hash = pod.value.pointer("/metadata/labels/pod-template-hash").and_then(Value::as_str)?;
    let set = owners(pod).into_iter().find(|owner| owner.kind == "ReplicaSet")?;
    let name = set.name.strip_suffix(hash)?.strip_suffix('-')?.to_owned();
    Some(Key { kind: "Deployment".to_owned(), name, ..set })
}

impl<'a> Expansion<'a> {
    pub(super) fn new(documents: &'a [Document], workloads: Workloads) -> Self {
        let mut by_key: BTreeMap<Key, Vec<&Document>> = BTreeMap::new();
        for document in documents {
            by_key.entry(Key::of(document)).or_default().push(document);
        }
        let mut waiting: Vec<Key> = Vec::new();
        for pod in documents.iter().filter(|document| document.kind() == "Pod") {
            waiting.extend(owners(pod).into_iter().chain(deployment(pod)));
        }
        let mut with_pods = BTreeSet::new();
        while let Some(owner) = waiting.pop() {
            if with_pods.insert(owner.clone()) {
                let found = by_key.get(&owner).into_iter().flatten().copied();
                waiting.extend(found.flat_map(owners));
            }
        }
        let nodes = documents.iter().filter(|document| document.kind() == "Node").collect();
        Self { workloads, present: by_key.into_keys().collect(), with_pods, nodes }
    }

    /// Whether a document makes pods of which each is for a node.
    pub(super) fn is_for_each_node(&self, document: &Document) -> bool {
        let kept = document.kept_pods(&self.workloads).unwrap_or_default();
        kept.iter().any(|pod| pod.count == Count::EachNode)
    }

    /// The pods that a document makes; `None`: it is no workload whose pods can be known from it.
    pub(super) fn pods(&self, document: &Document) -> Result<Option<Vec<Expanded>>, DocumentError> {
        if is_dumped(document) {
            return Ok(None);
        }
        let kept = document.kept_pods(&self.workloads)?;
        if kept.is_empty() {
            return Ok(None);
        }
        let is_made_by_another = owners(document).iter().any(|owner| self.present.contains(owner));
        if is_made_by_another || self.with_pods.contains(&Key::of(document)) {
            return Ok(Some(Vec::new()));
        }
        let mut pods = Vec::new();
        for pod in kept {
            pods.extend(self.of_template(document, &pod)?);
        }
        Ok(Some(pods))
    }

    fn of_template(&self, document: &Document, kept: &KeptPod) -> Result<Vec<Expanded>, DocumentError> {
        let named = |pod: Value, ending: &str| {
            let value = kept.made(&document.value, pod, ending);
            (Document { value, place: document.place.clone() }, kept.places.clone())
        };
        match &kept.count {
            Count::Endings(endings) => {
                Ok(endings.iter().map(|ending| named(kept.pod.clone(), &ending)).collect())
            }
            Count::EachNode => {
                let mut pods = Vec::new();
                for (node, pod) in self.on_each_node(document, kept)? {
                    pods.push(named(pod, &format!("-{node}")));
                }
                Ok(pods)
            }
        }
    }

    /// The pod of a DaemonSet for each node that would have one, bound to it by affinity, with the tolerations that all of its pods
    /// have (Kubernetes `pkg/controller/daemon/daemon_controller.go`, `NodeShouldRunDaemonPod`, and `util/daemonset_util.go`).
    fn on_each_node(&self, of: &Document, kept: &KeptPod) -> Result<Vec<(String, Value)>, DocumentError> {
        let mut daemon = kept.pod.clone();
        if let Some(Value::Object(spec)) = daemon.get_mut("spec") {
            tolerate(spec);
        }
        let pod: Pod = of.read_part(&daemon, &kept.places)?;
        let affinity = NodeAffinityTerms {
            selector: pod.spec.node_selector.unwrap_or_default(),
            required: pod.spec.affinity.node_affinity.and_then(|affinity| affinity.required),
            preferred: Vec::new(),
        };
        let mut pods = Vec::new();
        for node in &self.nodes {
            let Node { metadata, spec, .. } = node.read()?;
            let labels = metadata.labels.unwrap_or_default();
            if affinity.admits(&metadata.name, &labels) && tolerates_all(&pod.spec.tolerations, &spec.taints)
            {
                let mut bound = daemon.clone();
                bind(&mut bound, &metadata.name);
                pods.push((metadata.name, bound));
            }
        }
        Ok(pods)
    }
}

/// The taints that each pod of a DaemonSet tolerates.
const DAEMON_TOLERATIONS: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];

fn tolerate(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert(Value::Null);
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    if let Value::Array(tolerations) = tolerations {
        let more = DAEMON_TOLERATIONS
            .map(|(key, effect)| json!({"key": key, "operator": "Exists", "effect": effect}));
        tolerations.extend(more);
    }
}

/// Binds a pod to a node by required affinity, whatever it required of nodes before: the node was found to have that.
fn bind(pod: &mut Value, node: &str) {
    let field = json!({"key": "metadata.name", "operator": "In", "values": [node]});
    let Some(Value::Object(spec)) = pod.get_mut("spec") else { return };
    let affinity = spec.entry("affinity").or_insert(Value::Null);
    if affinity.is_null() {
        *affinity = json!({});
    }
    affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        json!({"nodeSelectorTerms": [{"matchFields": [field]}]});
}

/// The ReplicaSet through which a Deployment of the input would own its pods.
pub(super) fn replica_set(document: &Document) -> Option<Document> {
    let is_deployment = (document.kind(), document.api_version()) == ("Deployment", "apps/v1");
    let selector = document.value.pointer("/spec/selector").filter(|_| is_deployment)?;
    let value = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"namespace": document.namespace_or_default(), "name": document.name()?},
        "spec": {"selector": selector},
    });
    Some(Document { value, place: document.place.clone() })
}
