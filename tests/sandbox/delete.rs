//! How objects go.

use super::world::{bind, create_pod, object, pods, refusal, start};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_stays_until_it_is_deleted_without_grace() {
    let (_sandbox, client) = start();
    create_pod(&client, "p").await;
    bind(&client, "p", "n1", json!({})).await.unwrap();
    let marked = pods(&client).delete("p", &DeleteParams::default()).await.unwrap().left();
    assert!(marked.is_some(), "the answer is the pod");
    let pod = pods(&client).get("p").await.unwrap();
    assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(30));
    let at = pod.metadata.deletion_timestamp.as_ref().unwrap().0;
    assert_eq!(at.to_string(), "2026-01-01T00:00:30Z");
    let version = pod.resource_version();
    pods(&client).delete("p", &DeleteParams::default()).await.unwrap();
    assert_eq!(pods(&client).get("p").await.unwrap().resource_version(), version, "the mark stays");
    pods(&client).delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(refusal(pods(&client).get("p").await).2, "pods \"p\" not found");
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_node_goes_at_once_if_it_is_the_one_meant() {
    let (_sandbox, client) = start();
    let pod = create_pod(&client, "p").await;
    let wrong = Preconditions { uid: Some("other".to_owned()), resource_version: None };
    let (code, _, message) =
        refusal(pods(&client).delete("p", &DeleteParams::default().preconditions(wrong)).await);
    assert!(
        code == 409 && message.contains("the UID in the precondition (other) does not match"),
        "{message}"
    );
    let stale = Preconditions { uid: None, resource_version: Some("1".to_owned()) };
    assert_eq!(
        refusal(pods(&client).delete("p", &DeleteParams::default().preconditions(stale)).await).0,
        409
    );
    let right = Preconditions { uid: pod.uid(), resource_version: pod.resource_version() };
    pods(&client).delete("p", &DeleteParams::default().preconditions(right)).await.unwrap();
    assert_eq!(refusal(pods(&client).get("p").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_is_taken_off() {
    let (_sandbox, client) = start();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let sent = json!({ "metadata": { "name": "m", "finalizers": ["a.b/c"] } });
    maps.create(&PostParams::default(), &object(sent)).await.unwrap();
    maps.delete("m", &DeleteParams::default()).await.unwrap();
    assert!(maps.get("m").await.unwrap().metadata.deletion_timestamp.is_some());
    let patch = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    maps.patch("m", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(refusal(maps.get("m").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_collection_goes_by_its_selector() {
    let (_sandbox, client) = start();
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let sent = json!({ "metadata": { "name": name, "labels": { "app": label } } });
        maps.create(&PostParams::default(), &object(sent)).await.unwrap();
    }
    maps.delete_collection(&DeleteParams::default(), &ListParams::default().labels("app=x")).await.unwrap();
    let left = maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["b"]);
}
