//! What a node's row says (kubernetes v1.36 `pkg/printers/internalversion/printers.go`, `printNode`).

use super::{Kind, age, column, or, wide};
use crate::object;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const KIND: Kind = Kind {
    columns: &[
        column("Name"),
        column("Status"),
        column("Roles"),
        column("Age"),
        column("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ],
    cells,
};

fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = |field: &str| object::text(node, &format!("/status/nodeInfo/{field}"));
    let system = |field: &str| json!(or(info(field), "<unknown>"));
    vec![
        json!(object::name(node)),
        json!(status(node)),
        json!(or(&roles(node), "<none>")),
        json!(age::since(object::text(node, "/metadata/creationTimestamp"), now)),
        json!(info("kubeletVersion")),
        json!(address(node, "InternalIP")),
        json!(address(node, "ExternalIP")),
        system("osImage"),
        system("kernelVersion"),
        system("containerRuntimeVersion"),
    ]
}

fn status(node: &Value) -> String {
    let conditions = object::list(node, "/status/conditions");
    let ready = conditions.iter().find(|condition| object::text(condition, "/type") == "Ready");
    let status = match ready.map(|ready| object::text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = node.pointer("/spec/unschedulable") == Some(&Value::Bool(true));
    let cordon = if cordoned { ",SchedulingDisabled" } else { "" };
    format!("{status}{cordon}")
}

/// Each role once, in the order of the alphabet.
fn roles(node: &Value) -> String {
    let labels = object::pairs(node, "/metadata/labels");
    let roles = labels.filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role),
        None => (key == "kubernetes.io/role").then_some(value),
    });
    let roles: BTreeSet<&str> = roles.filter(|role| !role.is_empty()).collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

fn address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let addresses = object::list(node, "/status/addresses");
    let found = addresses.iter().find(|address| object::text(address, "/type") == kind);
    found.map_or("<none>", |found| object::text(found, "/address"))
}

#[cfg(test)]
mod tests {
    use super::cells;
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn a_node_shows_readiness_cordon_roles_and_addresses() {
        let node = json!({
            "metadata": { "name": "n", "creationTimestamp": "1970-01-01T00:00:00Z", "labels": {
                "node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu", "node-role.kubernetes.io/": "" } },
            "spec": { "unschedulable": true },
            "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }],
                "addresses": [{ "type": "InternalIP", "address": "10.0.0.1" }],
                "nodeInfo": { "kubeletVersion": "v1.36.0", "osImage": "Linux" } },
        });
        let want = [
            "n",
            "NotReady,SchedulingDisabled",
            "gpu,worker",
            "0s",
            "v1.36.0",
            "10.0.0.1",
            "<none>",
            "Linux",
            "<unknown>",
            "<unknown>",
        ];
        assert_eq!(cells(&node, Timestamp::UNIX_EPOCH), want);
        assert_eq!(cells(&json!({}), Timestamp::UNIX_EPOCH)[1..4], ["Unknown", "<none>", "<unknown>"]);
    }
}
