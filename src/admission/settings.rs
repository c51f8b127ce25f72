//! The settings of the rules: names, defaults, and the action of each guard.
//!
//! The state of the cluster is in `facts`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::dialect::SharingMode;

/// The settings of the rules.
#[derive(Clone, Debug)]
pub struct AdmissionSettings {
    /// Berth's scheduler name, as in `spec.schedulerName`.
    pub scheduler_name: String,
    /// Schedulers whose share pods become Berth's.
    pub adopt_schedulers: BTreeSet<String>,
    /// What to do with a share pod that names `default-scheduler`.
    pub default_scheduler: DefaultScheduler,
    /// The modes that are served.
    pub modes: BTreeSet<SharingMode>,
    /// What the resources of each mode are called.
    pub resources: BTreeMap<SharingMode, ResourceNames>,
    /// What is set in pods of HAMi's mode.
    pub hami: HamiDefaults,
    /// Whether pods with claims of devices are placed.
    pub claims: ResourceClaimSupport,
    /// The revocable zones that have a window.
    pub zones: BTreeSet<String>,
    /// The action of each guard.
    pub guards: Guards,
}

/// What to do with a share pod that names `default-scheduler`, as the API server fills in where nothing was named.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DefaultScheduler {
    /// Berth places it.
    Overwrite,
    /// It is left alone, with a warning.
    Leave,
}

/// Whether Berth places pods with claims of devices.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResourceClaimSupport {
    /// It does.
    Served,
    /// `scheduling.claims.enabled` is `false`: it places none.
    NotServed,
}

/// The names of one mode's resources.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ResourceNames {
    /// Counts cards.
    pub count: String,
    /// Memory of each card.
    pub memory: String,
    /// Percent of each card's memory.
    pub memory_percentage: String,
    /// Percent of each card's compute.
    pub cores: String,
    /// MiB for each unit of memory, in requests and in quotas.
    pub memory_factor: u32,
}

/// What HAMi's webhook sets in pods of its mode (v2.10 `pkg/device/nvidia/device.go` `MutateAdmission`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HamiDefaults {
    /// The resource whose value becomes `CUDA_TASK_PRIORITY`.
    pub priority: String,
    /// The runtime class of share pods that name none.
    pub runtime_class: Option<String>,
    /// `GPU_CORE_UTILIZATION_POLICY` of containers that ask for a share; `None`: not set.
    pub core_policy: Option<&'static str>,
    /// What containers of a share pod see of cards that they did not ask for.
    pub bystanders: Bystanders,
}

/// What containers of a share pod see of cards that they did not ask for: HAMi's `overwriteEnv`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Bystanders {
    /// What their image says: they are not changed.
    #[default]
    Unchanged,
    /// `NVIDIA_VISIBLE_DEVICES=none`, unless they set it themselves.
    Blind,
}

/// The action of a guard.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Deny the pod.
    Deny,
    /// Admit the pod with a warning.
    Warn,
    /// Admit the pod without a warning.
    Allow,
}

/// The actions of the guards, which an operator can change.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Guards {
    /// What no known node could ever run. Default: warn, since a cluster can grow.
    pub never_fits: Severity,
    /// `spec.nodeName` of a new share pod, which no scheduler would see. Default: deny.
    pub preset_node: Severity,
    /// Privileged containers of a share pod, which can use every card. Default: deny, as HAMi v2.10 does.
    pub privileged: Severity,
    /// Host paths `/dev` and `/dev/nvidia*` in a share pod. Default: deny.
    pub device_mounts: Severity,
    /// `NVIDIA_VISIBLE_DEVICES` set by hand in a share pod. Default: deny, since the kubelet prefers it to the value of the device plugin.
    pub visible_devices: Severity,
    /// A pod that would exceed its namespace's quota of shares. Default: deny.
    pub quota: Severity,
}

impl Default for Guards {
    fn default() -> Self {
        Self {
            never_fits: Severity::Warn,
            preset_node: Severity::Deny,
            privileged: Severity::Deny,
            device_mounts: Severity::Deny,
            visible_devices: Severity::Deny,
            quota: Severity::Deny,
        }
    }
}
