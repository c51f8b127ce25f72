//! A cluster with its fleet, and assignments that are written by hand.

use std::time::Duration;

use berth_sandbox::agent::{Fleet, card::Card, node::Node, wire::Release};
use k8s_openapi::api::core::v1 as core;
use kube::{
    api::{Api, DynamicObject, Patch, PatchParams, PostParams},
    core::Status,
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::support::{
    devices,
    floor::{Cluster, Floor},
};

/// After this time something that should have happened has not.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// A cluster with its fleet.
pub(crate) struct Case {
    cluster: Cluster,
    pub(crate) fleet: Fleet,
}

impl Case {
    pub(crate) async fn start(nodes: Vec<Node>) -> Option<Self> {
        let cluster = Cluster::start(Floor::Real).await?;
        let fleet = Fleet::start(cluster.client.clone(), nodes).await.unwrap();
        Some(Self { cluster, fleet })
    }

    /// On an API server that serves Koordinator's Devices.
    pub(crate) async fn with_devices(nodes: Vec<Node>) -> Option<Self> {
        let cluster = Cluster::start(Floor::Real).await?;
        devices::serve(&cluster.client, Floor::Real).await;
        let fleet = Fleet::start(cluster.client.clone(), nodes).await.unwrap();
        Some(Self { cluster, fleet })
    }

    pub(crate) fn devices(&self) -> Api<DynamicObject> {
        devices::devices(&self.cluster.client)
    }

    pub(crate) fn pods(&self) -> Api<core::Pod> {
        Api::default_namespaced(self.cluster.client.clone())
    }

    pub(crate) fn nodes(&self) -> Api<core::Node> {
        Api::all(self.cluster.client.clone())
    }

    pub(crate) async fn create(&self, name: &str, spec: Value) -> core::Pod {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
    }

    pub(crate) async fn bind(&self, name: &str, node: &str, annotations: Value) {
        let binding = json!({
            "metadata": {"name": name, "annotations": annotations},
            "target": {"kind": "Node", "name": node},
        });
        let binding: core::Binding = serde_json::from_value(binding).unwrap();
        let params = PostParams::default();
        self.pods().create_subresource::<_, Status>("binding", name, &params, &binding).await.unwrap();
    }

    pub(crate) async fn bind_hami(&self, name: &str, node: &str, devices: &str) {
        let annotations = json!({
            "hami.io/vgpu-node": node, "hami.io/vgpu-time": "1", "hami.io/bind-time": "1",
            "hami.io/bind-phase": "allocating",
            "hami.io/vgpu-devices-to-allocate": devices, "hami.io/vgpu-devices-allocated": devices,
        });
        self.bind(name, node, annotations).await;
    }

    pub(crate) async fn bind_volcano(&self, name: &str, node: &str, devices: &str) {
        let annotations = json!({
            "volcano.sh/vgpu-node": node, "volcano.sh/vgpu-time": "1", "volcano.sh/bind-time": "1",
            "volcano.sh/bind-phase": "allocating",
            "volcano.sh/devices-to-allocate": devices, "volcano.sh/vgpu-ids-new": devices,
        });
        self.bind(name, node, annotations).await;
    }

    pub(crate) async fn lock(&self, node: &str, key: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        self.nodes().patch(node, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn lock_hami(&self, node: &str, pod: &str) {
        let value = format!("2026-08-21T10:00:00Z,default,{pod}");
        self.lock(node, "hami.io/mutex.lock", &value).await;
    }

    pub(crate) async fn node_annotation(&self, node: &str, key: &str) -> Option<String> {
        self.nodes().get(node).await.unwrap().metadata.annotations.unwrap_or_default().remove(key)
    }

    /// The pod once it is in this phase.
    pub(crate) async fn in_phase(&self, name: &str, phase: &'static str) -> core::Pod {
        let is = move |pod: Option<&core::Pod>| {
            pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref()).is_some_and(|now| now == phase)
        };
        let wait = tokio::time::timeout(LIMIT, await_condition(self.pods(), name, is)).await;
        wait.unwrap_or_else(|_| panic!("{name} is not {phase}; {:?}", self.fleet.troubles()))
            .unwrap()
            .unwrap()
    }

    pub(crate) async fn answered(&self, pods: u64) {
        tokio::time::timeout(LIMIT, self.fleet.answered(pods)).await.unwrap();
    }

    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.fleet.violations(), []);
        assert_eq!(self.fleet.troubles(), Vec::<String>::new());
    }
}

pub(crate) fn annotation<'a>(pod: &'a core::Pod, key: &str) -> &'a str {
    &pod.metadata.annotations.as_ref().unwrap()[key]
}

pub(crate) fn reason(pod: &core::Pod) -> &str {
    pod.status.as_ref().unwrap().reason.as_deref().unwrap()
}

pub(crate) fn two_cards(name: &str) -> Node {
    Node::new(name).card(Card::new("GPU-a", 0, 16384)).card(Card::new("GPU-b", 1, 16384))
}

pub(crate) fn hami_node(name: &str) -> Node {
    two_cards(name).hami(Release::V2_10)
}

pub(crate) fn container(name: &str, limits: &Value) -> Value {
    json!({"name": name, "image": "none", "resources": {"limits": limits}})
}

pub(crate) fn hami_pod(count: u32, memory: u32) -> Value {
    let limits = json!({"nvidia.com/gpu": count, "nvidia.com/gpumem": memory});
    json!({"containers": [container("main", &limits)]})
}

pub(crate) fn volcano_container(name: &str, memory: u32) -> Value {
    container(name, &json!({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": memory}))
}
