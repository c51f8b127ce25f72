//! A volume of a pod: the kinds that bind a pod to nodes or exclude other pods.

use compact_str::CompactString;
use serde::Deserialize;

use super::{Present, nullable};

/// A volume. The kinds that are rare are boxed: a review reads every volume of its pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Volume {
    /// The volume's name in the pod.
    #[serde(deserialize_with = "nullable")]
    pub name: CompactString,
    /// A claim in the pod's namespace.
    pub persistent_volume_claim: Option<ClaimVolume>,
    /// A claim that lives as long as the pod.
    pub ephemeral: Option<Present>,
    /// A directory that lives as long as the pod.
    pub empty_dir: Option<EmptyDir>,
    /// An image, as files.
    pub image: Option<Box<ImageVolume>>,
    /// A file or directory of the node.
    pub host_path: Option<HostPath>,
    /// A Google persistent disk.
    pub gce_persistent_disk: Option<Box<GceDisk>>,
    /// An Amazon volume.
    pub aws_elastic_block_store: Option<Box<AwsVolume>>,
    /// A Ceph block device.
    pub rbd: Option<Box<Rbd>>,
    /// An iSCSI disk.
    pub iscsi: Option<Box<Iscsi>>,
}

/// A claim in the pod's namespace.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct ClaimVolume {
    /// The claim's name.
    #[serde(deserialize_with = "nullable")]
    pub claim_name: CompactString,
}

/// A directory that lives as long as the pod.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct EmptyDir {
    /// Where its files are.
    #[serde(deserialize_with = "nullable")]
    pub medium: Medium,
}

/// Where the files of such a directory are.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub enum Medium {
    /// In memory.
    Memory,
    /// On a disk of the node, or in huge pages.
    #[default]
    #[serde(other)]
    Node,
}

/// An image, as files (KEP-4639).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct ImageVolume {
    /// The image's name.
    #[serde(deserialize_with = "nullable")]
    pub reference: String,
}

/// A file or directory of the node.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
pub struct HostPath {
    /// Where it is on the node.
    pub path: String,
}

/// A Google persistent disk.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct GceDisk {
    /// The disk's name.
    #[serde(deserialize_with = "nullable")]
    pub pd_name: String,
    /// Whether it is only read.
    #[serde(deserialize_with = "nullable")]
    pub read_only: bool,
}

/// An Amazon volume.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct AwsVolume {
    /// The volume's id.
    #[serde(rename = "volumeID", deserialize_with = "nullable")]
    pub volume_id: String,
}

/// A Ceph block device.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Rbd {
    /// The monitors of the Ceph cluster.
    #[serde(deserialize_with = "nullable")]
    pub monitors: Vec<String>,
    /// The image.
    #[serde(deserialize_with = "nullable")]
    pub image: String,
    /// The pool; `rbd` where none is given.
    pub pool: String,
    /// Whether it is only read.
    #[serde(deserialize_with = "nullable")]
    pub read_only: bool,
}

impl Default for Rbd {
    fn default() -> Self {
        Self { monitors: Vec::new(), image: String::new(), pool: "rbd".to_owned(), read_only: false }
    }
}

/// An iSCSI disk.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, rename_all = "camelCase")]
pub struct Iscsi {
    /// The target's qualified name.
    #[serde(deserialize_with = "nullable")]
    pub iqn: String,
    /// Whether it is only read.
    #[serde(deserialize_with = "nullable")]
    pub read_only: bool,
}
