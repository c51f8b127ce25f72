//! What `--strict` makes of documents that the simulation does not read.

use anyhow::bail;

use crate::cli::documents::Document;

/// Kinds of Kubernetes that neither make pods nor decide where one goes: group and kind.
const WITHOUT_A_SAY: [(&str, &str); 19] = [
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("storage.k8s.io", "VolumeAttributesClass"),
];

fn has_a_say(document: &Document) -> bool {
    let group = document.api_version().split_once('/').map_or("", |(group, _)| group);
    !WITHOUT_A_SAY.contains(&(group, document.kind()))
}

/// Fails where one of the documents might make pods, or decide where one goes.
pub(super) fn refuse(unread: &[Document]) -> anyhow::Result<()> {
    let mut refused = unread.iter().filter(|document| has_a_say(document));
    let Some(first) = refused.next() else { return Ok(()) };
    let more = match refused.count() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let version = if first.api_version().is_empty() { "no apiVersion" } else { first.api_version() };
    bail!(
        "{}: kind {} ({version}) is not read by the simulation{more}; --strict allows no unread document",
        first.place,
        first.kind()
    )
}
