//! Which objects of a cluster are Berth's.

use std::collections::BTreeSet;

use kube::{
    Api, Client, Discovery,
    api::{DynamicObject, ListParams},
    discovery::{ApiGroup, verbs},
};

/// The objects that have Berth's name or label, by kind, namespace and name. Pods and Events, which are users', are left out.
pub(crate) async fn found(client: &Client) -> BTreeSet<String> {
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let mut found = BTreeSet::new();
    for (resource, capabilities) in discovery.groups().flat_map(ApiGroup::recommended_resources) {
        let users = ["Pod", "Event", "Node"].contains(&resource.kind.as_str());
        if users || !capabilities.supports_operation(verbs::LIST) {
            continue;
        }
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await.unwrap() {
            let metadata = object.metadata;
            let name = metadata.name.unwrap_or_default();
            let labelled = metadata.labels.unwrap_or_default().values().any(|value| value == "berth");
            if labelled || name.contains("berth") {
                found.insert(format!("{} {}/{name}", resource.kind, metadata.namespace.unwrap_or_default()));
            }
        }
    }
    found
}
