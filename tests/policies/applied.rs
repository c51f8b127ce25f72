//! What `berth manifests` prints, applied again: nothing may change, or each `kubectl apply` says `configured` and nobody sees what did.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth::cli::manifests::{self, Account, InstallationSettings, ManifestsArgs};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::world::World;

fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let version = text("/apiVersion").unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind").unwrap()));
    match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Where a stored object does not hold what was printed: `kubectl apply` would write it again each time.
fn differences(printed: &Value, stored: &Value, at: &str, found: &mut Vec<String>) {
    match (printed, stored) {
        (Value::Object(printed), Value::Object(stored)) => {
            for (key, value) in printed {
                differences(value, stored.get(key).unwrap_or(&Value::Null), &format!("{at}.{key}"), found);
            }
        }
        (Value::Array(printed), Value::Array(stored)) if printed.len() == stored.len() => {
            for (index, (printed, stored)) in printed.iter().zip(stored).enumerate() {
                differences(printed, stored, &format!("{at}[{index}]"), found);
            }
        }
        (printed, stored) if printed == stored => {}
        (printed, stored) => found.push(format!("{at}: printed {printed}, stored {stored}")),
    }
}

/// What of a stored object only the API server writes.
fn by_hand(object: &DynamicObject) -> Value {
    let mut object = serde_json::to_value(object).unwrap();
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| !["managedFields", "resourceVersion"].contains(&key.as_str()));
    object
}

/// Publishes an authority in each webhook, as Berth does.
async fn publish(api: &Api<DynamicObject>, name: &str, webhooks: usize, bundle: &str) {
    let place = |at: usize| format!("/webhooks/{at}/clientConfig/caBundle");
    let adds = (0..webhooks).map(|at| json!({"op": "add", "path": place(at), "value": bundle}));
    let patch = Patch::<()>::Json(serde_json::from_value(adds.collect()).unwrap());
    api.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_that_are_applied_again_are_unchanged() {
    let Some(world) = World::start().await else { return };
    let authority = rcgen::generate_simple_self_signed(Vec::new()).unwrap().cert.pem();
    let bundle = STANDARD.encode(authority);
    let settings = "workloads:\n- {apiGroup: example.com, kind: Run, templates: [{path: spec.template}]}\n";
    let settings = InstallationSettings::parse(settings.to_owned(), "berth.yaml").unwrap().0;
    let mut found = Vec::new();
    for split in [false, true] {
        let agent = vec![Account { namespace: "gpu".to_owned(), name: "agent".to_owned() }];
        let args = ManifestsArgs { split, agent, ..ManifestsArgs::default() };
        for object in manifests::objects(&args, &settings).unwrap() {
            let (api, name) =
                (api(&world.cluster.client, &object), object["metadata"]["name"].as_str().unwrap());
            let parameters = PatchParams::apply("kubectl").force();
            let first = api.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
            let webhooks = object["webhooks"].as_array().map_or(0, Vec::len);
            let first = if webhooks == 0 {
                first
            } else {
                publish(&api, name, webhooks, &bundle).await;
                api.get(name).await.unwrap()
            };
            let again = api.patch(name, &parameters, &Patch::Apply(&object)).await.unwrap();
            assert_eq!(by_hand(&again), by_hand(&first), "{name}");
            // The API server writes the status of some kinds by itself.
            if first.data.get("status").is_none() {
                assert_eq!(again.metadata.resource_version, first.metadata.resource_version, "{name}");
            }
            let at = format!("{}/{name}", object["kind"].as_str().unwrap());
            differences(&object, &serde_json::to_value(&again).unwrap(), &at, &mut found);
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
