//! Where pods would go if they came now, or if the cluster were different: as `berth what-if` tells it, from what the replica has seen.
//!
//! The simulation is that of `berth simulate`. Here stand what may be asked, in whose name, and how much of it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::ControlFlow,
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use super::{
    ApiError,
    viewer::{Sees, Viewer},
};
use crate::{
    cluster::Reader,
    excerpt::{FIELD, excerpt},
    object::{
        self, Metadata, Pod,
        pod::SYSTEM_CLASSES,
        workload::{Count, Workloads},
    },
    scheduling::{
        Claim, Details, Event,
        model::{extended_resources::ExtendedResources, message::Message},
        plugin::score::weights::ScoreWeights,
        scheduler::{Pace, Settings},
        world::object::Object,
    },
    simulation::{
        AddedNodes, ClusterChange, ClusterLists, Entered, Explain, SimulatedPod, Simulation, SimulationError,
        SimulationStage, UnknownName, Wants, simulate,
    },
};

/// A question may be so long, in bytes.
pub const LONGEST_QUESTION: usize = 256 << 10;

/// So many pods can be asked about at most.
pub const MOST_PODS: usize = 64;

/// So many nodes can be added at most.
pub const MOST_NODES: usize = 1_000;

/// So many pods can be left out at most, and so many nodes cordoned.
pub const MOST_NAMES: usize = 256;

/// How long the pods are decided.
const PATIENCE: Duration = Duration::from_secs(2);

/// Leads a pod of this namespace through the rules of admission; classes of devices may stand for extended resources. The error names the field that
/// can't be read.
pub type AdmitPod =
    Arc<dyn Fn(&Value, &str, &ExtendedResources) -> Result<Entered, object::UnreadableField> + Send + Sync>;

/// Where pods would go.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WhatIfQuestion {
    /// The pods, and workloads that make some, as manifests.
    pub pods: Vec<Value>,
    /// Nodes that are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add_nodes: Option<MoreNodes>,
    /// The pods that are left out, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The nodes that are cordoned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cordon: Vec<String>,
    /// The priority that the pods are given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
}

/// Nodes that are added.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MoreNodes {
    /// So many.
    pub count: usize,
    /// The node that each is like.
    pub like: String,
}

/// A pod that is asked about.
#[derive(Clone, Debug)]
struct PodInQuestion {
    /// How errors name it.
    place: String,
    namespace: String,
    name: String,
    object: Value,
}

/// A question whose form is right.
#[derive(Clone, Debug)]
pub(super) struct CheckedQuestion {
    pods: Vec<PodInQuestion>,
    change: ClusterChange,
}

/// What a question is answered from.
pub(super) struct WhatIfWorld<'a> {
    /// What reads pods.
    pub(super) reader: &'a Reader,
    /// The rules of admission.
    pub(super) admit: &'a AdmitPod,
    /// The settings of the scheduler.
    pub(super) settings: &'a Settings,
    /// How nodes are compared.
    pub(super) weights: ScoreWeights,
    /// How much owners are told of other objects.
    pub(super) details: Details,
    /// The present.
    pub(super) now: Timestamp,
}

impl WhatIfQuestion {
    /// The question of a body.
    ///
    /// # Errors
    ///
    /// A field that can't be read, is not known, or asks for too much.
    pub(super) fn read(body: &[u8], workloads: &Workloads) -> Result<CheckedQuestion, ApiError> {
        let text = std::str::from_utf8(body).map_err(|_| bad("the body is no UTF-8"))?;
        let question: Self = object::parse(text).map_err(|error| match error.field.as_str() {
            "." => bad(format!("the body: {}", error.reason)),
            _ => bad(error.to_string()),
        })?;
        question.checked(workloads)
    }

    fn checked(self, workloads: &Workloads) -> Result<CheckedQuestion, ApiError> {
        let Self { pods, add_nodes, without, cordon, priority } = self;
        if pods.is_empty() {
            return Err(bad("pods: there is none"));
        }
        for (field, count, most) in [
            ("pods", pods.len(), MOST_PODS),
            ("without", without.len(), MOST_NAMES),
            ("cordon", cordon.len(), MOST_NAMES),
            ("addNodes.count", add_nodes.as_ref().map_or(0, |added| added.count), MOST_NODES),
        ] {
            if count > most {
                return Err(bad(format!("{field}: {count} is more than {most}")));
            }
        }
        let mut asked: Vec<PodInQuestion> = Vec::new();
        for (at, object) in pods.into_iter().enumerate() {
            for (place, pod) in pods_of(format!("pods[{at}]"), object, workloads, MOST_PODS - asked.len())? {
                asked.push(PodInQuestion::of(place, asked.len(), pod, priority)?);
            }
        }
        if asked.is_empty() {
            return Err(bad("pods: the workloads make no pod"));
        }
        let name = |pod: &String| {
            let parts =
                pod.split_once('/').filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty());
            let (namespace, name) = parts
                .ok_or_else(|| bad(format!("without: {pod:?} does not name a pod as NAMESPACE/NAME")))?;
            Ok((namespace.to_owned(), name.to_owned()))
        };
        let without: BTreeSet<_> = without.iter().map(name).collect::<Result<_, ApiError>>()?;
        let cordoned: BTreeSet<_> = cordon.into_iter().collect();
        Ok(CheckedQuestion {
            pods: asked,
            change: ClusterChange {
                added: add_nodes.map(|MoreNodes { count, like }| AddedNodes { count, like }),
                without: without.into_iter().collect(),
                cordoned: cordoned.into_iter().collect(),
            },
        })
    }
}

/// The pods that an object of the question is or makes, so many at most, each with the place of its fields.
fn pods_of(
    place: String,
    object: Value,
    workloads: &Workloads,
    most: usize,
) -> Result<Vec<(String, Value)>, ApiError> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let too_many = || bad(format!("pods: with {place} there are more than {MOST_PODS} pods"));
    if text("kind") == "Pod" {
        return if most > 0 { Ok(vec![(place, object)]) } else { Err(too_many()) };
    }
    let Some(kind) = workloads.of_object(text("apiVersion"), text("kind")) else {
        let kind = excerpt(text("kind"), FIELD);
        return Err(bad(format!("{place}.kind: {kind:?} is neither Pod nor a workload that Berth knows")));
    };
    let kept = kind.pods(&object).map_err(|error| bad(format!("{place}.{error}")))?;
    let mut pods = Vec::new();
    for pod in kept {
        let Count::Endings(endings) = &pod.count else {
            return Err(bad(format!(
                "{place}.kind: a {} makes a pod for each node; ask about one of them, a Pod with the node's name in its affinity",
                kind.kind
            )));
        };
        let room = most.saturating_sub(pods.len());
        if endings.len() > u64::try_from(room).unwrap_or(u64::MAX) {
            return Err(too_many());
        }
        let at = format!("{place}.{}", pod.path);
        pods.extend(endings.iter().map(|ending| (at.clone(), pod.made(&object, pod.pod.clone(), &ending))));
    }
    Ok(pods)
}

impl PodInQuestion {
    /// The pod as it would be created: what a cluster has made of it does not count. One without a name is called by its place among all.
    fn of(place: String, at: usize, mut object: Value, priority: Option<i32>) -> Result<Self, ApiError> {
        let wrong = |field: &str, why: &str| bad(format!("{place}.{field}: {why}"));
        let pod: Pod = object::read(&object).map_err(|error| bad(format!("{place}.{error}")))?;
        if pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty()) {
            return Err(wrong("spec.nodeName", "a pod that has a node wants no place"));
        }
        let Metadata { mut namespace, mut name, generate_name, .. } = pod.metadata;
        if namespace.is_empty() {
            "default".clone_into(&mut namespace);
        }
        if name.is_empty() {
            name = format!("{}{at}", generate_name.as_deref().unwrap_or("pod-"));
        }
        if let Value::Object(fields) = &mut object {
            fields.remove("status");
            let metadata = fields.entry("metadata").or_insert(Value::Null);
            if metadata.is_null() {
                *metadata = Value::Object(serde_json::Map::new());
            }
            if let Value::Object(metadata) = metadata {
                metadata.remove("uid");
                metadata.remove("resourceVersion");
                metadata.insert("namespace".to_owned(), namespace.as_str().into());
                metadata.insert("name".to_owned(), name.as_str().into());
            }
            if let (Some(priority), Some(Value::Object(spec))) = (priority, fields.get_mut("spec")) {
                spec.remove("priorityClassName");
                spec.insert("priority".to_owned(), priority.into());
            }
        }
        Ok(Self { place, namespace, name, object })
    }
}

impl CheckedQuestion {
    /// The namespaces that it names.
    pub(super) fn namespaces(&self) -> BTreeSet<Arc<str>> {
        let asked = self.pods.iter().map(|pod| pod.namespace.as_str());
        let left_out = self.change.without.iter().map(|(namespace, _)| namespace.as_str());
        asked.chain(left_out).map(Arc::from).collect()
    }

    /// An error unless the viewer may see the pods that it names: of one that is left out she may not even know whether it is there.
    pub(super) fn check(&self, viewer: &Viewer) -> Result<(), ApiError> {
        for pod in &self.pods {
            viewer.check(&pod.namespace)?;
        }
        match self.change.without.iter().find(|(namespace, _)| !viewer.sees(namespace)) {
            Some((namespace, name)) => Err(unknown(UnknownName::Pod(namespace.clone(), name.clone()))),
            None => Ok(()),
        }
    }

    /// The answer from what a replica has seen, as far as the viewer may see it.
    ///
    /// # Errors
    ///
    /// A pod or node that is not there, a pod that can't be read, or it took too long.
    pub(super) fn answer(
        self,
        seen: Vec<Event>,
        world: &WhatIfWorld<'_>,
        viewer: &Viewer,
    ) -> Result<Simulation, ApiError> {
        let until = Instant::now() + PATIENCE;
        let mut go_on =
            || if Instant::now() < until { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let stage = self.stage(seen, world)?;
        let all = viewer.sees == Sees::All;
        let details = if all { Details::Full } else { world.details };
        let told = |message: Message| message.told(details).0;
        let simulation = simulate(stage, world.reader, (Explain::Nothing, &told), world.now, &mut go_on);
        let mut simulation = simulation.map_err(|error| match error {
            SimulationError::Halted => ApiError::Unavailable("deciding the pods took too long"),
            SimulationError::Endless(turns) => {
                tracing::error!(turns, "a simulation does not come to an end");
                ApiError::Unavailable("the pods can't be decided")
            }
        })?;
        if details == Details::Own {
            simulation.pods.iter_mut().for_each(|pod| pod.nearest = None);
        }
        Ok(simulation.shown(|namespace| viewer.sees(namespace)))
    }

    /// The cluster as it would be, and the pods in it.
    fn stage(self, seen: Vec<Event>, world: &WhatIfWorld<'_>) -> Result<SimulationStage, ApiError> {
        let mut lists = ClusterLists::seen(seen).changed(&self.change).map_err(unknown)?;
        let extended = extended(&lists);
        let is_free = |uid: &String| lists.pods.iter().all(|pod| *pod.key.uid != **uid);
        let uids = (0_u64..).map(|number| format!("what-if-{number}")).filter(is_free);
        let uids: Vec<_> = uids.take(self.pods.len()).collect();
        let (mut rows, mut positions) = (BTreeMap::new(), HashMap::new());
        for ((position, asked), uid) in (0..).zip(self.pods).zip(uids) {
            let mut row = SimulatedPod::new(&asked.namespace, &asked.name);
            let entered = (world.admit)(&asked.object, &asked.namespace, &extended);
            let mut pod = match entered.map_err(|error| bad(format!("{}.{error}", asked.place)))? {
                Entered::Ours(pod, warnings) => {
                    row.warnings = warnings;
                    pod
                }
                Entered::Ignored(warnings) => {
                    row.warnings = warnings;
                    rows.insert(position, row);
                    continue;
                }
                Entered::Denied(violations, warnings) => {
                    rows.insert(position, row.denied(violations, warnings));
                    continue;
                }
            };
            pod.metadata.uid = uid;
            row.warnings.extend(complete(&mut pod, world.now));
            let (info, troubles) = world.reader.pod(&pod);
            row.warnings.extend(troubles.iter().map(ToString::to_string));
            let gated = info.claim == Claim::None && !pod.spec.scheduling_gates.is_empty();
            let (row, wants) = row.entering(&info.claim, gated);
            if wants == Wants::Place {
                positions.insert(info.key.uid.clone(), position);
            }
            rows.insert(position, row);
            lists.pods.push(info);
        }
        let settings = Settings {
            device_resources: world.reader.device_resources(),
            weights: world.weights,
            pace: Pace::OneByOne,
            ..world.settings.clone()
        };
        Ok(SimulationStage { settings, lists, rows, positions, allocated: BTreeMap::new() })
    }
}

/// What the API server and its controllers would add, as far as Berth knows it; and what it does not.
fn complete(pod: &mut Pod, now: Timestamp) -> Vec<String> {
    let mut warnings = Vec::new();
    if pod.spec.priority.is_none() {
        let class = pod.spec.priority_class_name.as_deref().filter(|class| !class.is_empty());
        let known = class.and_then(|class| SYSTEM_CLASSES.iter().find(|(name, _)| *name == class));
        pod.spec.priority = Some(known.map_or(0, |(_, priority)| *priority));
        if let (Some(class), None) = (class, known) {
            warnings.push(format!(
                "spec.priorityClassName: the API does not know the priority of {class}; taken as 0: ask with `priority`"
            ));
        }
    }
    pod.metadata.creation_timestamp.get_or_insert(now);
    for (at, entry) in pod.spec.resource_claims.iter().enumerate() {
        if entry.resource_claim_template_name.is_some() {
            warnings.push(format!(
                "spec.resourceClaims[{at}].resourceClaimTemplateName: the API does not know what the template says; the pod waits for its claim"
            ));
        }
    }
    warnings
}

/// For which extended resources classes of devices stand.
fn extended(lists: &ClusterLists) -> ExtendedResources {
    let mut extended = ExtendedResources::default();
    for object in &lists.objects {
        if let Object::DeviceClass(class) = object {
            extended.set(class);
        }
    }
    extended
}

fn unknown(name: UnknownName) -> ApiError {
    match name {
        UnknownName::Node(name) => ApiError::NotFound { kind: "nodes", name },
        UnknownName::Pod(namespace, name) => {
            ApiError::NotFound { kind: "pods", name: format!("{namespace}/{name}") }
        }
    }
}

fn bad(why: impl Into<String>) -> ApiError {
    ApiError::BadRequest(why.into())
}
