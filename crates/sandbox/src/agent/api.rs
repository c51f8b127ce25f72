//! The calls that agents make to the API server, counted.
//!
//! It must not decide anything.

use std::sync::atomic::{AtomicU64, Ordering};

use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use serde_json::{Value, json};

use super::view::{Node, Pod};

/// A client that counts.
pub(super) struct Calls {
    client: Client,
    writes: AtomicU64,
    reads: AtomicU64,
}

impl Calls {
    pub(super) fn new(client: Client) -> Self {
        Self { client, writes: AtomicU64::new(0), reads: AtomicU64::new(0) }
    }

    pub(super) fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub(super) fn all_pods(&self) -> Api<Pod> {
        Api::all(self.client.clone())
    }

    pub(super) async fn pod(&self, namespace: &str, name: &str) -> kube::Result<Pod> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Api::namespaced(self.client.clone(), namespace).get(name).await
    }

    pub(super) async fn pods(&self, which: &ListParams) -> kube::Result<Vec<Pod>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(self.all_pods().list(which).await?.items)
    }

    pub(super) async fn node(&self, name: &str) -> kube::Result<Node> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        Api::all(self.client.clone()).get(name).await
    }

    pub(super) async fn annotate_pod(&self, pod: &Pod, annotations: Value) -> kube::Result<Pod> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        self.pods_beside(pod).patch(pod.name(), &PatchParams::default(), &patch).await
    }

    /// Guarded by the uid, as kubelet guards its status patches.
    pub(super) async fn patch_status(&self, pod: &Pod, status: &Value) -> kube::Result<Pod> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let patch = Patch::Strategic(json!({"metadata": {"uid": pod.uid()}, "status": status}));
        self.pods_beside(pod).patch_status(pod.name(), &PatchParams::default(), &patch).await
    }

    /// Removes the object at once, guarded by the uid.
    pub(super) async fn remove_pod(&self, pod: &Pod) -> kube::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let uid = Preconditions { uid: Some(pod.uid().to_owned()), resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(uid);
        self.pods_beside(pod).delete(pod.name(), &params).await.map(drop)
    }

    pub(super) async fn patch_node(&self, name: &str, patch: Value) -> kube::Result<Node> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        Api::all(self.client.clone()).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    pub(super) async fn patch_node_status(&self, name: &str, status: &Value) -> kube::Result<Node> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let patch = Patch::Merge(json!({"status": status}));
        Api::all(self.client.clone()).patch_status(name, &PatchParams::default(), &patch).await
    }

    pub(super) async fn create_node(&self, object: Value) -> kube::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let node = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.client.clone());
        nodes.create(&PostParams::default(), &node).await.map(drop)
    }

    /// Creates the Device of that name, or brings the one that is there up to date.
    pub(super) async fn put_device(&self, name: &str, object: Value) -> kube::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        let resource = ApiResource {
            group: "scheduling.koordinator.sh".to_owned(),
            version: "v1alpha1".to_owned(),
            api_version: "scheduling.koordinator.sh/v1alpha1".to_owned(),
            kind: "Device".to_owned(),
            plural: "devices".to_owned(),
        };
        let devices: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let device = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        match devices.create(&PostParams::default(), &device).await {
            Err(error) if code(&error) == Some(409) => {
                let patch = Patch::Merge(object);
                devices.patch(name, &PatchParams::default(), &patch).await.map(drop)
            }
            outcome => outcome.map(drop),
        }
    }

    fn pods_beside(&self, pod: &Pod) -> Api<Pod> {
        Api::namespaced(self.client.clone(), pod.namespace())
    }
}

/// The HTTP code of a refusal by the API server.
pub(super) fn code(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
