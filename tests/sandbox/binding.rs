//! What a Binding does and which ones are refused.

use super::world::{bind, create_pod, object, pod_json, pods, refusal, start};
use kube::{ResourceExt, api::PostParams};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_binding_writes_node_condition_labels_and_annotations_at_once() {
    let (sandbox, client) = start();
    let mut sent = pod_json("p");
    sent["metadata"]["annotations"] = json!({ "keep": "1", "change": "1" });
    let pod = pods(&client).create(&PostParams::default(), &object(sent)).await.unwrap();
    let before = sandbox.resource_version();
    let metadata =
        json!({ "uid": pod.uid(), "annotations": { "change": "2", "new": "3" }, "labels": { "l": "4" } });
    let answer = bind(&client, "p", "n1", metadata).await.unwrap();
    assert_eq!(
        (&answer["kind"], &answer["status"], &answer["code"]),
        (&json!("Status"), &json!("Success"), &json!(201))
    );
    assert_eq!(sandbox.resource_version(), before + 1, "one write");
    let bound = pods(&client).get("p").await.unwrap();
    assert_eq!(bound.spec.as_ref().unwrap().node_name.as_deref(), Some("n1"));
    let annotations: Vec<_> = bound.annotations().iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(annotations, [("change", "2"), ("keep", "1"), ("new", "3")]);
    assert_eq!(bound.labels()["l"], "4");
    let condition = &bound.status.as_ref().unwrap().conditions.as_ref().unwrap()[0];
    assert_eq!((condition.type_.as_str(), condition.status.as_str()), ("PodScheduled", "True"));
}

#[tokio::test(start_paused = true)]
async fn bindings_that_come_too_late_or_for_another_pod_conflict() {
    let (_sandbox, client) = start();
    let pod = create_pod(&client, "p").await;
    let (code, reason, message) = refusal(bind(&client, "p", "n1", json!({ "uid": "other" })).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    let want = format!(
        "Precondition failed: UID in precondition: other, UID in object meta: {}",
        pod.uid().unwrap()
    );
    assert!(
        message.starts_with("Operation cannot be fulfilled on pods \"p\": ") && message.ends_with(&want),
        "{message}"
    );
    assert_eq!(refusal(bind(&client, "p", "n1", json!({ "resourceVersion": "1" })).await).0, 409);
    let current = json!({ "uid": pod.uid(), "resourceVersion": pod.resource_version() });
    bind(&client, "p", "n1", current).await.unwrap();
    let again = refusal(bind(&client, "p", "n2", json!({ "annotations": { "a": "b" } })).await);
    assert_eq!(again.0, 409);
    assert_eq!(
        again.2,
        "Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\""
    );
    assert!(pods(&client).get("p").await.unwrap().annotations().is_empty());
    pods(&client).delete("p", &kube::api::DeleteParams::default()).await.unwrap();
    assert!(refusal(bind(&client, "p", "n2", json!({})).await).2.contains("is being deleted"));
    assert_eq!(refusal(bind(&client, "gone", "n1", json!({})).await).0, 404);
    let mut gated = pod_json("g");
    gated["spec"]["schedulingGates"] = json!([{ "name": "a.b/c" }]);
    pods(&client).create(&PostParams::default(), &object(gated)).await.unwrap();
    let (code, _, message) = refusal(bind(&client, "g", "n1", json!({})).await);
    assert!(code == 409 && message.contains("schedulingGates"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn the_older_path_binds_too() {
    let (_sandbox, client) = start();
    create_pod(&client, "p").await;
    let body = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "p", "annotations": { "a": "b" } },
        "target": { "kind": "Node", "name": "n1" } });
    let request =
        http::Request::post("/api/v1/namespaces/default/bindings").body(body.to_string().into_bytes());
    client.request::<Value>(request.unwrap()).await.unwrap();
    let pod = pods(&client).get("p").await.unwrap();
    assert_eq!(
        (pod.spec.as_ref().unwrap().node_name.as_deref(), pod.annotations()["a"].as_str()),
        (Some("n1"), "b")
    );
}

#[tokio::test(start_paused = true)]
async fn a_label_that_a_binding_brought_may_block_later_updates() {
    let (_sandbox, client) = start();
    create_pod(&client, "p").await;
    bind(&client, "p", "n1", json!({ "labels": { "node": "x".repeat(64) } })).await.unwrap();
    let patch = kube::api::Patch::Strategic(json!({ "status": { "phase": "Running" } }));
    let answer = pods(&client).patch_status("p", &kube::api::PatchParams::default(), &patch).await;
    assert_eq!(refusal(answer).0, 422);
}
