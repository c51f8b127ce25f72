//! Storage objects that decide where a pod may go: volumes, claims, classes, and what CSI drivers say of nodes.

use serde::Deserialize;

use super::{
    affinity::NodeSelector,
    container::{ResourceMap, Resources},
    metadata::Metadata,
    nullable,
    quantity::{Amount, Quantity},
    requirement::Requirement,
    selector::LabelSelector,
};

/// `v1` PersistentVolume.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct PersistentVolume {
    /// Name, labels and annotations.
    pub metadata: Metadata,
    /// What it offers.
    #[serde(deserialize_with = "nullable")]
    pub spec: PersistentVolumeSpec,
    /// How it stands.
    #[serde(deserialize_with = "nullable")]
    pub status: Phase,
}

/// `spec` of a volume.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeSpec {
    /// How large it is, under `storage`.
    #[serde(deserialize_with = "nullable")]
    pub capacity: ResourceMap,
    /// In which ways it can be mounted.
    #[serde(deserialize_with = "nullable")]
    pub access_modes: Vec<String>,
    /// The claim that it is bound to or meant for.
    pub claim_ref: Option<ClaimRef>,
    /// Its storage class.
    #[serde(deserialize_with = "nullable")]
    pub storage_class_name: String,
    /// `Filesystem` (also where absent) or `Block`.
    pub volume_mode: Option<String>,
    /// Its attributes class.
    pub volume_attributes_class_name: Option<String>,
    /// Nodes that can mount it.
    pub node_affinity: Option<VolumeNodeAffinity>,
    /// The CSI driver that serves it.
    pub csi: Option<CsiSource>,
}

/// Nodes that can mount a volume.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct VolumeNodeAffinity {
    /// Terms of which one must match; absent: every node.
    pub required: Option<NodeSelector>,
}

/// The claim that a volume is bound to or meant for.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ClaimRef {
    /// The claim's namespace.
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
    /// The claim's name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// The claim's uid; empty where a person has reserved the volume.
    #[serde(deserialize_with = "nullable")]
    pub uid: String,
}

/// The CSI driver that serves a volume.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiSource {
    /// The driver's name.
    #[serde(deserialize_with = "nullable")]
    pub driver: String,
    /// What the driver calls the volume.
    #[serde(deserialize_with = "nullable")]
    pub volume_handle: String,
}

/// `status` of a volume or of a claim.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct Phase {
    /// `Available`, `Bound`, `Pending`, `Lost` and the like.
    #[serde(deserialize_with = "nullable")]
    pub phase: String,
}

/// `v1` PersistentVolumeClaim.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Names and annotations.
    pub metadata: Metadata,
    /// What is asked for.
    #[serde(deserialize_with = "nullable")]
    pub spec: PersistentVolumeClaimSpec,
    /// How it stands.
    #[serde(deserialize_with = "nullable")]
    pub status: Phase,
}

/// `spec` of a claim.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct PersistentVolumeClaimSpec {
    /// In which ways it must be mountable.
    #[serde(deserialize_with = "nullable")]
    pub access_modes: Vec<String>,
    /// How large it must be, under `requests.storage`.
    #[serde(deserialize_with = "nullable")]
    pub resources: Resources,
    /// Which volumes will do, by their labels.
    pub selector: Option<LabelSelector>,
    /// Its storage class; an empty name means none.
    pub storage_class_name: Option<String>,
    /// `Filesystem` (also where absent) or `Block`.
    pub volume_mode: Option<String>,
    /// Its attributes class.
    pub volume_attributes_class_name: Option<String>,
    /// The volume that it is bound to or asks for.
    #[serde(deserialize_with = "nullable")]
    pub volume_name: String,
}

/// `storage.k8s.io/v1` StorageClass.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct StorageClass {
    /// The class's name.
    pub metadata: Metadata,
    /// Who makes volumes of it.
    #[serde(deserialize_with = "nullable")]
    pub provisioner: String,
    /// `Immediate` (also where absent, as the API server defaults it) or `WaitForFirstConsumer`.
    pub volume_binding_mode: Option<String>,
    /// Nodes for which volumes can be made; none: every node.
    #[serde(deserialize_with = "nullable")]
    pub allowed_topologies: Vec<TopologySelectorTerm>,
}

/// Requirements on a node's labels that must all hold; a term without any matches no node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct TopologySelectorTerm {
    /// Labels of which the value must be one of a list.
    #[serde(deserialize_with = "nullable")]
    pub match_label_expressions: Vec<Requirement>,
}

/// `storage.k8s.io/v1` CSINode: the drivers on one node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct CsiNode {
    /// The node's name.
    pub metadata: Metadata,
    /// The drivers.
    #[serde(deserialize_with = "nullable")]
    pub spec: CsiNodeSpec,
}

/// `spec` of a CSINode.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct CsiNodeSpec {
    /// The drivers.
    #[serde(deserialize_with = "nullable")]
    pub drivers: Vec<CsiNodeDriver>,
}

/// A driver on one node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct CsiNodeDriver {
    /// The driver's name.
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// How much it can do there.
    pub allocatable: Option<VolumeNodeResources>,
}

/// How many volumes a driver can attach to one node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct VolumeNodeResources {
    /// So many; absent: no limit.
    pub count: Option<i64>,
}

/// `storage.k8s.io/v1` CSIDriver.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct CsiDriver {
    /// The driver's name.
    pub metadata: Metadata,
    /// What it does.
    #[serde(deserialize_with = "nullable")]
    pub spec: CsiDriverSpec,
}

/// `spec` of a CSIDriver.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiDriverSpec {
    /// Whether it publishes how much storage there is for which nodes.
    #[serde(deserialize_with = "nullable")]
    pub storage_capacity: bool,
}

/// `storage.k8s.io/v1` CSIStorageCapacity: how much storage of a class there is for some nodes.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct CsiStorageCapacity {
    /// Names.
    pub metadata: Metadata,
    /// The class.
    #[serde(deserialize_with = "nullable")]
    pub storage_class_name: String,
    /// The nodes by their labels; absent: none.
    pub node_topology: Option<LabelSelector>,
    /// How much there is.
    pub capacity: Option<Quantity>,
    /// How large one volume can be; where given, it counts instead of the capacity.
    pub maximum_volume_size: Option<Quantity>,
}

/// `storage.k8s.io/v1` VolumeAttachment: a volume that is attached to a node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Names.
    pub metadata: Metadata,
    /// What is attached where.
    #[serde(deserialize_with = "nullable")]
    pub spec: VolumeAttachmentSpec,
}

/// `spec` of a VolumeAttachment.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentSpec {
    /// The CSI driver.
    #[serde(deserialize_with = "nullable")]
    pub attacher: String,
    /// The node.
    #[serde(deserialize_with = "nullable")]
    pub node_name: String,
    /// The volume.
    #[serde(deserialize_with = "nullable")]
    pub source: VolumeAttachmentSource,
}

/// What is attached.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeAttachmentSource {
    /// The volume's name; absent for one that is named in a pod.
    pub persistent_volume_name: Option<String>,
}

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

impl PersistentVolume {
    /// Its storage class; empty: none. The old annotation wins.
    pub fn class(&self) -> &str {
        self.metadata.annotation(BETA_CLASS).unwrap_or(&self.spec.storage_class_name)
    }

    /// How many bytes it has; 0 where that is absent or can't be read.
    pub fn size(&self) -> Amount {
        let capacity = self.spec.capacity.get("storage");
        capacity.and_then(|quantity| quantity.amount().ok()).unwrap_or_default()
    }
}

impl PersistentVolumeClaim {
    /// Its storage class; empty: none. The old annotation wins.
    pub fn class(&self) -> &str {
        let named = || self.spec.storage_class_name.as_deref().unwrap_or_default();
        self.metadata.annotation(BETA_CLASS).unwrap_or_else(named)
    }

    /// Whether it is bound and the volume controller has said so.
    pub fn is_bound(&self) -> bool {
        !self.spec.volume_name.is_empty()
            && self.metadata.annotation("pv.kubernetes.io/bind-completed").is_some()
    }
}
