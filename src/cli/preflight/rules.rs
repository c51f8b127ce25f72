//! The rules of the examination, by name.

use super::finding::{
    FindingSeverity::{Blocker, Info, Warning},
    PreflightRule,
};

macro_rules! rules {
    ($($rule:ident $name:literal $severity:ident $meaning:literal)*) => {
        $(#[doc = $meaning] pub const $rule: PreflightRule =
            PreflightRule { name: $name, severity: $severity, meaning: $meaning };)*
        /// Every rule, in the order of the documentation.
        pub const ALL: &[PreflightRule] = &[$($rule),*];
    };
}

rules! {
    KUBERNETES_TOO_OLD "kubernetes-too-old" Blocker "the API server is older than the minimum"
    API_NOT_SERVED "api-not-served" Blocker "the API server does not serve a version that the manifests need"
    CANNOT_LIST_ESSENTIAL "cannot-list-essential" Blocker "namespaces, nodes or pods could not be listed: nothing can be said about them"
    CANNOT_LIST "cannot-list" Warning "something else could not be listed or read; what depends on it was not examined"
    UNKNOWN_DETAIL "unknown-detail" Info "something could not be read that no other finding depends on"
    UNREADABLE_OBJECT "unreadable-object" Warning "an object is not of the shape that its kind has"
    UNTRUSTED_PROGRAM "untrusted-program" Blocker "what looks like a scheduler or device plugin of HAMi, Volcano or Berth runs in a namespace that is not trusted: nothing is taken from it"
    SCHEDULER_FOUND "scheduler-found" Info "a scheduler of shares runs: what it is and which name its pods bear"
    DEVICE_PLUGIN_FOUND "device-plugin-found" Info "a device plugin runs: whose it is and under which account"
    PLAIN_DEVICE_PLUGIN "plain-device-plugin" Warning "a device plugin that gives out whole cards and registers none: Berth places no share on its nodes"
    SCHEDULER_NAME_TAKEN "scheduler-name-taken" Blocker "another scheduler already serves the name that Berth is to have"
    EXTENDER_FOUND "extender-found" Info "a KubeSchedulerConfiguration calls an extender"
    FOREIGN_WEBHOOK "foreign-webhook" Warning "a mutating webhook of HAMi or Volcano changes pods, and which namespaces it covers"
    BERTH_INSTALLED "berth-installed" Info "Berth already runs in this cluster"
    NODE_WRITER "node-writer" Info "which field manager last wrote the annotations of device plugins on nodes"
    UNKNOWN_WRITER "unknown-writer" Warning "nodes carry a plugin's annotations, and no workload that writes them was found"
    AGENT_NOT_BOUND "agent-not-bound" Warning "an account writes what the policies protect and does not have the right to"
    AGENT_DENIED "agent-denied" Blocker "the same, where the installed policies already deny"
    ACCESS_NOT_ASKED "access-not-asked" Warning "whether an account has the right could not be asked"
    NAMESPACE_NOT_COVERED "namespace-not-covered" Warning "a namespace has share pods, or workloads that make them, and would not come in"
    SYSTEM_NAMESPACE "system-namespace" Warning "the same, for kube-system or Berth's own namespace, which never come in"
    PODS_LABEL_IGNORED "pods-label-ignored" Warning "a namespace has the label `berth.dev/pods`, and its pods without a share do not become Berth's"
    NO_CARDS "no-cards" Warning "no node has registered a card"
    UNREADABLE_NODE "unreadable-node" Warning "what a node's plugins registered can't be read: its cards are not used"
    NODE_WITHOUT_REGISTER "node-without-register" Warning "a node advertises shares, and no plugin has registered its cards"
    UNREADABLE_ASSIGNMENT "unreadable-assignment" Warning "the assignment of a pod can't be read: its node's cards are not used until it ends"
    SHARE_WITHOUT_ASSIGNMENT "share-without-assignment" Warning "a bound share pod carries no assignment: its card counts as free"
    CARD_OVERCOMMITTED "card-overcommitted" Warning "more is held of a card than there is"
    PENDING_POD "pending-pod" Warning "a pod waits for another scheduler: Berth places it once that has stopped, if `adoptSchedulers` lists the name"
    WORKLOAD_DENIED "workload-denied" Warning "the pods that a workload would make are refused by a rule of admission"
    WORKLOAD_WARNED "workload-warned" Info "they are admitted with a warning"
    UNMANAGED_WORKLOAD "unmanaged-workload" Warning "they name a scheduler that is not known to keep account of shares: `unmanagedPods: deny` refuses them"
    SCHEDULER_NOT_THERE "scheduler-not-there" Warning "a workload with shares names a scheduler that was not found in the cluster: its pods would wait"
    GANG_WITHOUT_KIND "gang-without-kind" Warning "pods name a group whose kind PodGroup the cluster does not serve: they are placed one by one"
    DRA_RESOURCE "dra-resource" Warning "a DeviceClass stands for a resource that Berth reads as a share"
    SETTING_NOT_CARRIED "setting-not-carried" Warning "a setting of HAMi or Volcano that can't be carried over"
    SETTING_UNUSED "setting-unused" Info "a setting of HAMi or Volcano that Berth has no use for"
}
