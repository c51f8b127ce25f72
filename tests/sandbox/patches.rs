//! The patch types.

use super::world::{create_pod, object, pods, refusal, start};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

fn json_patch(operations: Value) -> Patch<()> {
    Patch::Json(serde_json::from_value(operations).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_merge_patch_with_a_version_is_a_compare_and_swap() {
    let (_sandbox, client) = start();
    let pod = create_pod(&client, "p").await;
    let patch = |version: Option<String>, value: &str| {
        Patch::Merge(json!({ "metadata": { "resourceVersion": version, "annotations": { "lock": value } } }))
    };
    let params = PatchParams::default();
    let taken = pods(&client).patch("p", &params, &patch(pod.resource_version(), "mine")).await.unwrap();
    assert_eq!(taken.annotations()["lock"], "mine");
    let (code, reason, _) =
        refusal(pods(&client).patch("p", &params, &patch(pod.resource_version(), "theirs")).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    let freed = Patch::Merge(json!({ "metadata": { "annotations": { "lock": null } } }));
    let freed = pods(&client).patch("p", &params, &freed).await.unwrap();
    assert!(freed.annotations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_strategic_patch_of_the_status_merges_conditions_and_metadata() {
    let (_sandbox, client) = start();
    create_pod(&client, "p").await;
    let condition = |kind: &str, status: &str| json!([{ "type": kind, "status": status, "reason": "r" }]);
    for (kind, status) in [("PodScheduled", "False"), ("Ready", "False"), ("PodScheduled", "True")] {
        let patch = Patch::Strategic(json!({ "status": { "conditions": condition(kind, status) },
            "metadata": { "annotations": { "a": status } }, "spec": { "nodeName": "stolen" } }));
        pods(&client).patch_status("p", &PatchParams::default(), &patch).await.unwrap();
    }
    let pod = pods(&client).get("p").await.unwrap();
    let conditions = pod.status.as_ref().unwrap().conditions.clone().unwrap();
    let seen: Vec<_> = conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())).collect();
    assert_eq!(seen, [("Ready", "False"), ("PodScheduled", "True")]);
    assert_eq!(pod.annotations()["a"], "True");
    assert_eq!(pod.spec.unwrap().node_name, None);
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_tests_before_it_changes() {
    let (_sandbox, client) = start();
    create_pod(&client, "p").await;
    let params = PatchParams::default();
    let add = json_patch(json!([{ "op": "add", "path": "/metadata/annotations", "value": { "a/b": "1" } }]));
    pods(&client).patch("p", &params, &add).await.unwrap();
    let swap = json_patch(json!([
        { "op": "test", "path": "/metadata/annotations/a~1b", "value": "1" },
        { "op": "replace", "path": "/metadata/annotations/a~1b", "value": "2" },
    ]));
    assert_eq!(pods(&client).patch("p", &params, &swap).await.unwrap().annotations()["a/b"], "2");
    assert_eq!(refusal(pods(&client).patch("p", &params, &swap).await).0, 422);
    assert_eq!(pods(&client).get("p").await.unwrap().annotations()["a/b"], "2");
}

#[tokio::test(start_paused = true)]
async fn an_apply_patch_creates_then_merges_and_unknown_types_are_refused() {
    let (_sandbox, client) = start();
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let patch = |key: &str| {
        Patch::Apply(
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "m" }, "data": { key: "v" } }),
        )
    };
    maps.patch("m", &PatchParams::apply("test"), &patch("a")).await.unwrap();
    let merged = maps.patch("m", &PatchParams::apply("test"), &patch("b")).await.unwrap();
    assert_eq!(merged.data.unwrap().into_keys().collect::<Vec<_>>(), ["a", "b"]);
    let request = http::Request::patch("/api/v1/namespaces/default/configmaps/m")
        .header("content-type", "text/plain")
        .body(b"{}".to_vec())
        .unwrap();
    assert_eq!(refusal(client.request::<Value>(request).await).0, 415);
    let request = http::Request::post("/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/vnd.kubernetes.protobuf")
        .body(b"k8s\0".to_vec())
        .unwrap();
    assert_eq!(refusal(client.request::<Value>(request).await).0, 415);
    assert_eq!(
        refusal(
            maps.replace("m", &PostParams::default(), &object(json!({ "metadata": { "name": "n" } }))).await
        )
        .0,
        400
    );
}
