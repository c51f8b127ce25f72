//! What a fresh cluster has before the first request: namespaces and priority classes.

use super::{
    create, defaults,
    resource::{self, Resource},
    server::Server,
};
use serde_json::{Value, json};

/// Namespaces that exist from the start.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Priority classes that exist from the start, with their values.
const PRIORITY_CLASSES: &[(&str, i64)] =
    &[("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Stores these objects in an empty server.
pub(super) fn fill(server: &Server) {
    for name in NAMESPACES {
        store(server, resource::known("", "namespaces"), json!({ "metadata": { "name": name } }));
    }
    for (name, value) in PRIORITY_CLASSES {
        let class = json!({ "metadata": { "name": name }, "value": value });
        store(server, resource::known("scheduling.k8s.io", "priorityclasses"), class);
    }
}

fn store(server: &Server, resource: &'static Resource, mut object: Value) {
    defaults::apply(resource, &mut object);
    create::begin(server, resource, &mut object);
    server.store().put(resource, object);
}
