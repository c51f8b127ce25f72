//! Claims, volumes and their classes: how a case describes them, and how it waits for what becomes of them.
//!
//! It must not start anything.

use std::time::Duration;

use berth_sandbox::storage::PROVISIONER;
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

use crate::world::{World, pod};

/// After this time something that should have happened has not.
const LIMIT: Duration = Duration::from_mins(1);

const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The class whose volumes the provisioner makes.
pub(crate) const MADE: &str = "made";
/// The class whose volumes a person makes.
pub(crate) const BY_HAND: &str = "by-hand";

/// A pod with a small share that uses this claim.
pub(crate) fn share(name: &str, claim: &str) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

/// What a claim of this class asks for.
pub(crate) fn claim_spec(class: &str, mode: &str) -> Value {
    json!({"storageClassName": class, "accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}})
}

/// A claim of this class that one node may mount.
pub(crate) fn claim(name: &str, class: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": claim_spec(class, "ReadWriteOnce")})
}

/// A volume of the class [`BY_HAND`] on this node.
pub(crate) fn volume(name: &str, node: &str) -> Value {
    let on_node =
        json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]});
    json!({
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "2Gi"},
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [on_node]}},
            "storageClassName": BY_HAND,
        },
    })
}

/// The node that the claim's volume is made for.
pub(crate) fn selected(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.metadata.annotations.as_ref()?.get(SELECTED_NODE).map(String::as_str)
}

/// The name of the volume that the claim is bound to, once both sides say so.
pub(crate) fn bound(claim: &PersistentVolumeClaim) -> Option<&str> {
    let phase = claim.status.as_ref()?.phase.as_deref()?;
    claim.spec.as_ref()?.volume_name.as_deref().filter(|_| phase == "Bound")
}

/// The claim's uid in the volume.
pub(crate) fn claim_uid(volume: &PersistentVolume) -> Option<&str> {
    volume.spec.as_ref()?.claim_ref.as_ref()?.uid.as_deref()
}

/// The node that the volume can be mounted on.
pub(crate) fn node_of_volume(volume: &PersistentVolume) -> &str {
    let required = volume.spec.as_ref().unwrap().node_affinity.as_ref().unwrap().required.as_ref().unwrap();
    let expression = &required.node_selector_terms[0].match_expressions.as_ref().unwrap()[0];
    &expression.values.as_ref().unwrap()[0]
}

impl World {
    pub(crate) fn claims(&self) -> Api<PersistentVolumeClaim> {
        Api::default_namespaced(self.cluster.client.clone())
    }

    pub(crate) fn volumes(&self) -> Api<PersistentVolume> {
        Api::all(self.cluster.client.clone())
    }

    /// Creates both classes; their claims wait for their first pod.
    pub(crate) async fn create_classes(&self) {
        let classes: Api<StorageClass> = Api::all(self.cluster.client.clone());
        for (name, provisioner) in [(MADE, PROVISIONER), (BY_HAND, "kubernetes.io/no-provisioner")] {
            let class = json!({"metadata": {"name": name}, "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer"});
            classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
        }
    }

    pub(crate) async fn create_claim(&self, claim: Value) {
        let claim = serde_json::from_value(claim).unwrap();
        self.claims().create(&PostParams::default(), &claim).await.unwrap();
    }

    pub(crate) async fn create_volume(&self, volume: Value) {
        let volume = serde_json::from_value(volume).unwrap();
        self.volumes().create(&PostParams::default(), &volume).await.unwrap();
    }

    /// Says of a volume that it can be taken, where no volume controller does.
    pub(crate) async fn make_available(&self, volume: &str) {
        let available = Patch::Merge(json!({"status": {"phase": "Available"}}));
        self.volumes().patch_status(volume, &PatchParams::default(), &available).await.unwrap();
    }

    /// The claim, once it is as wanted.
    pub(crate) async fn claim_when(
        &self,
        name: &str,
        wanted: impl Fn(&PersistentVolumeClaim) -> bool,
    ) -> PersistentVolumeClaim {
        let condition = |claim: Option<&PersistentVolumeClaim>| claim.is_some_and(&wanted);
        let found = Box::pin(await_condition(self.claims(), name, condition));
        match tokio::time::timeout(LIMIT, found).await {
            Ok(found) => found.unwrap().expect("the condition asks for a claim"),
            Err(elapsed) => panic!("{elapsed}: {:#?}", self.claims().get_opt(name).await),
        }
    }

    /// The volume, once it is as wanted.
    pub(crate) async fn volume_when(
        &self,
        name: &str,
        wanted: impl Fn(&PersistentVolume) -> bool,
    ) -> PersistentVolume {
        let condition = |volume: Option<&PersistentVolume>| volume.is_some_and(&wanted);
        let found = Box::pin(await_condition(self.volumes(), name, condition));
        match tokio::time::timeout(LIMIT, found).await {
            Ok(found) => found.unwrap().expect("the condition asks for a volume"),
            Err(elapsed) => panic!("{elapsed}: {:#?}", self.volumes().get_opt(name).await),
        }
    }

    /// The node that the claim is selected for, once it is.
    pub(crate) async fn selected(&self, claim: &str) -> String {
        let claim = self.claim_when(claim, |claim| selected(claim).is_some()).await;
        selected(&claim).expect("the condition asks for it").to_owned()
    }

    /// The claim's volume, once they are bound to each other.
    pub(crate) async fn volume_of(&self, claim: &str) -> PersistentVolume {
        let claim = self.claim_when(claim, |claim| bound(claim).is_some()).await;
        let volume = self.volumes().get(bound(&claim).expect("the condition asks for it")).await.unwrap();
        assert_eq!(claim_uid(&volume), claim.metadata.uid.as_deref());
        volume
    }
}
