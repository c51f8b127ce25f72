//! One cluster with nodes, agents and Berth at work on it.

use std::{sync::Arc, time::Duration};

use berth::{
    cluster::{self, Clock, Metrics, Reader, event_loop::Binder},
    device::{CardPolicy, MiB, NodePolicy, Percent},
    dialect::{Dialects, LockForm, LockSpec, hami, volcano},
    sandbox::agent::{
        Fleet,
        hami::Release,
        node::{Card, Node},
    },
    scheduling::scheduler,
};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1 as core;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::support::floor::{Cluster, Floor};

/// After this time something that should have happened has not.
const LIMIT: Duration = Duration::from_mins(1);

/// A cluster with nodes, agents and Berth.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) fleet: Fleet,
    berth: JoinSet<()>,
}

/// A node with HAMi's plugin and cards of 16 GiB.
pub(crate) fn hami_node(name: &str, cards: u32) -> Node {
    let node = sized(Node::new(name), name, cards);
    node.hami(Release::V2_10)
}

/// A node with Volcano's vGPU plugin and cards of 16 GiB.
pub(crate) fn volcano_node(name: &str, cards: u32) -> Node {
    sized(Node::new(name), name, cards).volcano()
}

fn sized(node: Node, name: &str, cards: u32) -> Node {
    let node = node.allocatable("cpu", "32").allocatable("memory", "128Gi").allocatable("pods", "110");
    (0..cards).fold(node, |node, index| {
        node.card(
            Card::new(&format!("GPU-{name}-{index}"), index, 16_384).slots(10).product("NVIDIA A100-SXM4"),
        )
    })
}

/// A pod of one container with these limits, for Berth to place.
pub(crate) fn pod(name: &str, limits: Value) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "berth",
            "containers": [{"name": "main", "image": "train", "resources": {"limits": limits}}],
        },
    })
}

/// What Berth is told in these cases.
pub(crate) fn dialects() -> Dialects {
    let lock = LockSpec {
        key: hami::names::LOCK.to_owned(),
        form: LockForm::Comma,
        expiry: SignedDuration::from_mins(5),
    };
    let hami = hami::Settings {
        count: hami::names::COUNT.to_owned(),
        memory: hami::names::MEMORY.to_owned(),
        memory_percentage: hami::names::MEMORY_PERCENTAGE.to_owned(),
        cores: hami::names::CORES.to_owned(),
        priority: hami::names::PRIORITY.to_owned(),
        default_memory: MiB::default(),
        default_cores: Percent::NONE,
        default_count: 1,
        memory_factor: 1,
        node_policy: NodePolicy::Binpack,
        card_policy: CardPolicy::Spread,
        lock,
    };
    let volcano = volcano::Settings {
        memory_factor: 1,
        card_policy: CardPolicy::Binpack,
        node_policy: NodePolicy::Binpack,
        geometries: vec![],
        exclusive_rules: vec![],
        lock: None,
    };
    Dialects::new(vec![Arc::new(hami::Hami::new(hami)), Arc::new(volcano::Volcano::new(volcano))])
}

impl World {
    /// A cluster of these nodes with Berth at work; `None`, said aloud, where the floor is not to be had.
    pub(crate) async fn start(floor: Floor, nodes: Vec<Node>) -> Option<Self> {
        let mut world = Self::without_berth(floor, nodes).await?;
        world.start_berth();
        Some(world)
    }

    /// A cluster of these nodes; Berth is yet to start.
    pub(crate) async fn without_berth(floor: Floor, nodes: Vec<Node>) -> Option<Self> {
        let cluster = Cluster::start(floor).await?;
        let fleet = Fleet::start(cluster.client.clone(), nodes).await.unwrap();
        Some(Self { cluster, fleet, berth: JoinSet::new() })
    }

    pub(crate) fn start_berth(&mut self) {
        let reader = Arc::new(Reader::new(dialects(), "berth".to_owned()));
        let binder = Binder {
            client: self.cluster.client.clone(),
            settings: scheduler::Settings {
                device_resources: reader.device_resources(),
                lock_expiry: SignedDuration::from_mins(5),
            },
            reader,
            clock: Clock::System,
            metrics: Metrics::default(),
            writes_at_once: 64,
        };
        self.berth.spawn(async move { cluster::run(binder, std::future::pending()).await.unwrap() });
    }

    /// Ends Berth as `kill -9` does.
    pub(crate) async fn kill_berth(&mut self) {
        self.berth.shutdown().await;
    }

    pub(crate) fn pods(&self) -> Api<core::Pod> {
        Api::default_namespaced(self.cluster.client.clone())
    }

    pub(crate) fn nodes(&self) -> Api<core::Node> {
        Api::all(self.cluster.client.clone())
    }

    pub(crate) async fn create(&self, pod: Value) -> core::Pod {
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.pods().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn patch_node(&self, name: &str, patch: Value) -> core::Node {
        self.nodes().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap()
    }

    /// The pod, once it is as wanted; a pod that is not in time is printed.
    pub(crate) async fn pod_when(&self, name: &str, wanted: impl Fn(&core::Pod) -> bool) -> core::Pod {
        let condition = |pod: Option<&core::Pod>| pod.is_some_and(&wanted);
        match tokio::time::timeout(LIMIT, await_condition(self.pods(), name, condition)).await {
            Ok(found) => found.unwrap().expect("the condition asks for a pod"),
            Err(_) => panic!("not in time: {:#?}", self.pods().get_opt(name).await),
        }
    }

    /// The pod, once it runs.
    pub(crate) async fn running(&self, name: &str) -> core::Pod {
        self.pod_when(name, |pod| phase(pod) == "Running").await
    }

    /// The message of the pod's condition, once it says why the pod waits.
    pub(crate) async fn unschedulable(&self, name: &str) -> String {
        let pod = self.pod_when(name, |pod| waits_because(pod).is_some()).await;
        waits_because(&pod).expect("the condition was just seen")
    }

    /// Every Event of that reason about the pod.
    pub(crate) async fn events(&self, pod: &str, reason: &str) -> Vec<core::Event> {
        let events: Api<core::Event> = Api::default_namespaced(self.cluster.client.clone());
        let events = events.list(&ListParams::default()).await.unwrap().items.into_iter();
        let about = |event: &core::Event| event.involved_object.name.as_deref() == Some(pod);
        events.filter(about).filter(|event| event.reason.as_deref() == Some(reason)).collect()
    }

    /// The agents saw nothing that a scheduler must not do.
    pub(crate) fn agents_are_content(&self) {
        assert_eq!(self.fleet.violations(), []);
        assert!(self.fleet.troubles().is_empty(), "{:?}", self.fleet.troubles());
    }
}

pub(crate) fn phase(pod: &core::Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn node_of(pod: &core::Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

pub(crate) fn annotation<'a>(pod: &'a core::Pod, key: &str) -> &'a str {
    pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(key)).map_or("", String::as_str)
}

fn waits_because(pod: &core::Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    let waits = scheduled.status == "False" && scheduled.reason.as_deref() == Some("Unschedulable");
    waits.then(|| scheduled.message.clone().unwrap_or_default())
}
