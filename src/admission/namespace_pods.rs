//! Which pods without a share become Berth's because their namespace gives it all its pods.
//!
//! The API server asks about pods of namespaces with this label alone, so the label is not looked for again: a namespace that was labelled a moment
//! ago may not be known here yet.

use super::{facts::Facts, modes::Ways, scheduler_name, settings::ResourceClaimSupport};
use crate::object::{Metadata, Pod};

/// The label of a namespace that gives Berth its pods.
pub const LABEL: &str = "berth.dev/pods";

/// The value that gives it all of them.
const ALL: &str = "all";

/// The namespace of the cluster's own programs, whose pods are never Berth's.
const KUBE_SYSTEM: &str = "kube-system";

/// Whether the namespace gives Berth all its pods.
pub fn are_given(namespace: &Metadata) -> bool {
    namespace.label(LABEL) == Some(ALL) && namespace.name != KUBE_SYSTEM
}

/// Whether the pod becomes Berth's where its namespace gives it all: it names no scheduler and no node, asks for no share, and Berth can place it.
pub fn is_adopted(pod: &Pod, namespace: &str, facts: &Facts) -> bool {
    let has_no_node = pod.spec.node_name.as_ref().is_none_or(String::is_empty);
    namespace != KUBE_SYSTEM
        && has_no_node
        && scheduler_name::is_default(pod)
        && !is_of_a_daemon_set(pod)
        && asks_for_nothing_else(&Ways::of(pod, facts), facts)
        && pod.spec.check_constraints().is_ok()
}

/// A pod of a DaemonSet runs on one given node, so there is no choice to make, and the node may need it to work.
fn is_of_a_daemon_set(pod: &Pod) -> bool {
    pod.metadata.controller.as_ref().is_some_and(|controller| controller.kind() == "DaemonSet")
}

/// Whether the pod asks for no card, in Berth's modes or another program's, and for claims only where Berth serves them.
fn asks_for_nothing_else(ways: &Ways, facts: &Facts) -> bool {
    match facts.settings.claims {
        ResourceClaimSupport::Served => ways.are_claims_alone(),
        ResourceClaimSupport::NotServed => ways.are_none(),
    }
}
