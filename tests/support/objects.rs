//! Objects of any kind, as they stand in a manifest.

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// Where the API server keeps objects of this kind, in the namespace that the object names.
pub fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let version = object["apiVersion"].as_str().expect("a manifest has a version");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = object["kind"].as_str().expect("a manifest has a kind");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Creates an object, and writes its status.
pub async fn create(client: &Client, object: &Value) {
    let (api, what) = (api(client, object), format!("{} {}", object["kind"], object["metadata"]));
    let fail = |error| panic!("{what}: {error}");
    let parsed: DynamicObject = serde_json::from_value(object.clone()).expect("a manifest has metadata");
    let name = api.create(&PostParams::default(), &parsed).await.unwrap_or_else(fail).metadata.name;
    if !object["status"].is_null() {
        let status = Patch::Merge(json!({"status": object["status"]}));
        let name = name.expect("a stored object has a name");
        api.patch_status(&name, &PatchParams::default(), &status).await.unwrap_or_else(fail);
    }
}

/// Creates the ClusterRole that a page of the documentation shows, and grants it to a user.
pub async fn grant(client: &Client, page: &str, user: &str) {
    let page = std::fs::read_to_string(page).expect("the page can be read");
    let (_, rest) = page.split_once("```yaml\n").expect("the role stands in the page");
    let (role, _) = rest.split_once("```").expect("it ends");
    let role: Value = serde_saphyr::from_str(role).expect("it is YAML");
    create(client, &role).await;
    let (group, role) = ("rbac.authorization.k8s.io", &role["metadata"]["name"]);
    create(client, &json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": format!("of-{user}")},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "apiGroup": group, "name": user}],
    }))
    .await;
}
