//! The objects of a live cluster that decide where pods go.

mod redact;

use std::convert::identity;

use anyhow::Result;
use http::Uri;
use kube::Client;

use super::{
    connection::{ConnectionArgs, not_reached},
    documents::{
        Document,
        live::{self, LiveList, Need},
    },
    output,
};
use redact::redacted;

const fn list(path: &'static str, version: &'static str, kind: &'static str) -> LiveList {
    LiveList { path, version, kind, need: Need::Optional }
}

/// What decides where pods go: everything that `berth simulate` reads. Only nodes and pods must be there.
const LISTS: [LiveList; 32] = [
    LiveList { path: "/api/v1/nodes", version: "v1", kind: "Node", need: Need::Needed },
    LiveList { path: "/api/v1/pods", version: "v1", kind: "Pod", need: Need::Needed },
    list("/api/v1/namespaces", "v1", "Namespace"),
    list("/api/v1/resourcequotas", "v1", "ResourceQuota"),
    list("/apis/scheduling.k8s.io/v1/priorityclasses", "scheduling.k8s.io/v1", "PriorityClass"),
    list("/apis/resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1", "ResourceSlice"),
    list("/apis/resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1", "DeviceClass"),
    list("/apis/resource.k8s.io/v1/devicetaintrules", "resource.k8s.io/v1", "DeviceTaintRule"),
    list("/apis/resource.k8s.io/v1beta2/devicetaintrules", "resource.k8s.io/v1beta2", "DeviceTaintRule"),
    list("/apis/resource.k8s.io/v1/resourceclaims", "resource.k8s.io/v1", "ResourceClaim"),
    list("/api/v1/persistentvolumes", "v1", "PersistentVolume"),
    list("/api/v1/persistentvolumeclaims", "v1", "PersistentVolumeClaim"),
    list("/apis/storage.k8s.io/v1/storageclasses", "storage.k8s.io/v1", "StorageClass"),
    list("/apis/storage.k8s.io/v1/csinodes", "storage.k8s.io/v1", "CSINode"),
    list("/apis/storage.k8s.io/v1/csidrivers", "storage.k8s.io/v1", "CSIDriver"),
    list("/apis/storage.k8s.io/v1/csistoragecapacities", "storage.k8s.io/v1", "CSIStorageCapacity"),
    list("/apis/storage.k8s.io/v1/volumeattachments", "storage.k8s.io/v1", "VolumeAttachment"),
    list("/apis/policy/v1/poddisruptionbudgets", "policy/v1", "PodDisruptionBudget"),
    list("/api/v1/services", "v1", "Service"),
    list("/api/v1/replicationcontrollers", "v1", "ReplicationController"),
    list("/apis/apps/v1/replicasets", "apps/v1", "ReplicaSet"),
    list("/apis/apps/v1/statefulsets", "apps/v1", "StatefulSet"),
    list("/apis/apps/v1/daemonsets", "apps/v1", "DaemonSet"),
    list("/apis/scheduling.volcano.sh/v1beta1/podgroups", "scheduling.volcano.sh/v1beta1", "PodGroup"),
    list("/apis/scheduling.x-k8s.io/v1alpha1/podgroups", "scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    list("/apis/scheduling.k8s.io/v1beta1/podgroups", "scheduling.k8s.io/v1beta1", "PodGroup"),
    list("/apis/scheduling.k8s.io/v1alpha3/podgroups", "scheduling.k8s.io/v1alpha3", "PodGroup"),
    list("/apis/scheduling.k8s.io/v1alpha2/podgroups", "scheduling.k8s.io/v1alpha2", "PodGroup"),
    list(
        "/apis/scheduling.k8s.io/v1alpha3/compositepodgroups",
        "scheduling.k8s.io/v1alpha3",
        "CompositePodGroup",
    ),
    list("/apis/scheduling.koordinator.sh/v1alpha1/devices", "scheduling.koordinator.sh/v1alpha1", "Device"),
    list(
        "/apis/scheduling.koordinator.sh/v1alpha1/reservations",
        "scheduling.koordinator.sh/v1alpha1",
        "Reservation",
    ),
    list("/api/v1/namespaces/koordinator-system/configmaps", "v1", "ConfigMap"),
];

/// The objects of the live cluster; an error where one of the lists is not given.
pub(super) async fn all(client: &Client) -> Result<Vec<Document>> {
    let needed = |list: LiveList| match list.need {
        Need::Optional => LiveList { need: Need::IfServed, ..list },
        Need::Needed | Need::IfServed => list,
    };
    Ok(live::documents(client, &LISTS.map(needed), identity).await?.0)
}

/// Which objects of a live cluster are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LiveScope {
    /// All that decide where pods go.
    Placement,
    /// Those alone that say what there is of cards and who holds it.
    Cards,
}

/// The kinds of [`LiveScope::Cards`].
const OF_CARDS: [&str; 11] = [
    "Node",
    "Pod",
    "Namespace",
    "ResourceQuota",
    "PriorityClass",
    "ResourceSlice",
    "DeviceClass",
    "ResourceClaim",
    "Device",
    "Reservation",
    "ConfigMap",
];

impl LiveScope {
    fn lists(self) -> Vec<LiveList> {
        let is_read = |list: &LiveList| self == Self::Placement || OF_CARDS.contains(&list.kind);
        LISTS.into_iter().filter(is_read).collect()
    }
}

/// The objects of the live cluster, without what no scheduler reads of them. Lists that the caller may not read are left out, with a warning.
pub(super) async fn read(connection: &ConnectionArgs) -> Result<Vec<Document>> {
    let (client, cluster) = connection.client().await?;
    read_at(&client, &cluster).await
}

/// The same of a cluster at this address.
pub(super) async fn read_at(client: &Client, cluster: &Uri) -> Result<Vec<Document>> {
    let (documents, left_out) = read_by(client, cluster, LiveScope::Placement).await?;
    for remark in left_out {
        output::remark(&format!("warning: {remark}"));
    }
    Ok(documents)
}

/// The same of these lists, and what was left out.
pub(super) async fn read_by(
    client: &Client,
    cluster: &Uri,
    scope: LiveScope,
) -> Result<(Vec<Document>, Vec<String>)> {
    let read = live::documents(client, &scope.lists(), redacted).await;
    read.map_err(|error| not_reached(error, cluster))
}
