//! Reads a live cluster for a plan of moves: lists alone.

use kube::Client;

use crate::cli::{
    documents::Document,
    migrate::gather::{Listed, listed},
};

/// What decides where pods fit: path, version and kind of the items.
const LISTS: [Listed; 26] = [
    ("/api/v1/nodes", "v1", "Node"),
    ("/api/v1/pods", "v1", "Pod"),
    ("/api/v1/namespaces", "v1", "Namespace"),
    ("/api/v1/resourcequotas", "v1", "ResourceQuota"),
    ("/api/v1/persistentvolumes", "v1", "PersistentVolume"),
    ("/api/v1/persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
    ("/api/v1/services", "v1", "Service"),
    ("/api/v1/replicationcontrollers", "v1", "ReplicationController"),
    ("/apis/apps/v1/replicasets", "apps/v1", "ReplicaSet"),
    ("/apis/apps/v1/statefulsets", "apps/v1", "StatefulSet"),
    ("/apis/policy/v1/poddisruptionbudgets", "policy/v1", "PodDisruptionBudget"),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass"),
    ("/apis/storage.k8s.io/v1/storageclasses", "storage.k8s.io/v1", "StorageClass"),
    ("/apis/storage.k8s.io/v1/csinodes", "storage.k8s.io/v1", "CSINode"),
    ("/apis/storage.k8s.io/v1/csidrivers", "storage.k8s.io/v1", "CSIDriver"),
    ("/apis/storage.k8s.io/v1/csistoragecapacities", "storage.k8s.io/v1", "CSIStorageCapacity"),
    ("/apis/storage.k8s.io/v1/volumeattachments", "storage.k8s.io/v1", "VolumeAttachment"),
    ("/apis/resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1", "ResourceSlice"),
    ("/apis/resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1", "DeviceClass"),
    ("/apis/resource.k8s.io/v1/resourceclaims", "resource.k8s.io/v1", "ResourceClaim"),
    ("/apis/scheduling.volcano.sh/v1beta1/podgroups", "scheduling.volcano.sh/v1beta1", "PodGroup"),
    ("/apis/scheduling.x-k8s.io/v1alpha1/podgroups", "scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("/apis/scheduling.k8s.io/v1alpha2/podgroups", "scheduling.k8s.io/v1alpha2", "PodGroup"),
    ("/apis/scheduling.k8s.io/v1beta1/podgroups", "scheduling.k8s.io/v1beta1", "PodGroup"),
    ("/apis/scheduling.koordinator.sh/v1alpha1/devices", "scheduling.koordinator.sh/v1alpha1", "Device"),
    (
        "/apis/scheduling.koordinator.sh/v1alpha1/reservations",
        "scheduling.koordinator.sh/v1alpha1",
        "Reservation",
    ),
];

/// The objects of the cluster that decide where pods fit. Kinds of Dynamic Resource Allocation, of gangs and of Koordinator need not be served.
pub(super) async fn documents(client: &Client) -> anyhow::Result<Vec<Document>> {
    let may_lack = |path: &str| {
        path.starts_with("/apis/resource.k8s.io/")
            || path.starts_with("/apis/scheduling.koordinator.sh/")
            || path.ends_with("/podgroups")
    };
    listed(client, &LISTS, may_lack).await
}
