//! Admission webhooks, served by routers in this process.

use super::world::{bind, create_pod, object, pod_json, pods, refusal};
use axum::{
    Router,
    body::{Body, Bytes},
    routing::post,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use berth_sandbox::{InProcess, Options, Sandbox, UserInfo};
use futures::future;
use k8s_openapi::api::{
    admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
    core::v1::Pod,
};
use kube::{
    Api, Client, Error, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

type Seen = Arc<Mutex<Vec<Value>>>;

/// What the webhook at `/NAME` answers to a review, beside its uid.
fn verdict(name: &str, request: &Value) -> Value {
    let patch = |operations: Value| json!({ "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(operations.to_string()) });
    let annotated = |pod: &Value| pod.pointer("/metadata/annotations").is_some();
    match name {
        "deny" => json!({ "allowed": false, "status": { "code": 403, "message": "no cards" } }),
        "deny-bare" => json!({ "allowed": false }),
        "annotate" if annotated(&request["object"]) => {
            json!({ "allowed": true, "warnings": ["seen \"twice\""] })
        }
        "annotate" => patch(json!([{ "op": "add", "path": "/metadata/annotations", "value": { "a": "1" } }])),
        "rename" => patch(json!([{ "op": "replace", "path": "/spec/schedulerName", "value": "berth" }])),
        "misfit" => patch(json!([{ "op": "replace", "path": "/spec/nothing/here", "value": 1 }])),
        "garbage" => json!({ "allowed": true, "patchType": "JSONPatch", "patch": "!" }),
        _ => json!({ "allowed": true }),
    }
}

fn router(seen: &Seen) -> Router {
    let seen = seen.clone();
    let handler = async move |uri: http::Uri, body: Bytes| {
        let name = uri.path().trim_start_matches('/').to_owned();
        let review: Value = serde_json::from_slice(&body).unwrap();
        let request = &review["request"];
        seen.lock().unwrap().push(json!({ "uri": uri.to_string(), "request": request }));
        if name == "hang" {
            future::pending::<()>().await;
        }
        let mut response = verdict(&name, request);
        response["uid"] = request["uid"].clone();
        let answer =
            json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response });
        let code = if name == "broken" { 500 } else { 200 };
        http::Response::builder().status(code).body(Body::from(answer.to_string())).unwrap()
    };
    Router::new().route("/{name}", post(handler))
}

fn start() -> (Sandbox, Client, Seen) {
    let seen = Seen::default();
    let transport = Arc::new(InProcess::default().with("berth.berth-system.svc:443", router(&seen)));
    let sandbox = Sandbox::new(Options { transport, ..Options::default() });
    let client = sandbox.client();
    (sandbox, client, seen)
}

/// One entry for pods; `more` overrides fields.
fn entry(path: &str, more: Value) -> Value {
    let mut entry = json!({
        "name": format!("{path}.berth.dev"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": { "service": { "name": "berth", "namespace": "berth-system", "path": format!("/{path}") } },
        "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
    });
    if let Value::Object(more) = more {
        more.into_iter().for_each(|(field, value)| entry[field] = value);
    }
    entry
}

async fn mutating(client: &Client, name: &str, webhooks: Vec<Value>) {
    let api: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let sent = json!({ "metadata": { "name": name }, "webhooks": webhooks });
    api.create(&PostParams::default(), &object(sent)).await.unwrap();
}

async fn validating(client: &Client, webhooks: Vec<Value>) {
    let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let sent = json!({ "metadata": { "name": "v" }, "webhooks": webhooks });
    api.create(&PostParams::default(), &object(sent)).await.unwrap();
}

async fn create(client: &Client) -> Result<Pod, Error> {
    pods(client).create(&PostParams::default(), &object(pod_json("p"))).await
}

#[tokio::test(start_paused = true)]
async fn a_denial_carries_code_and_message() {
    let (_sandbox, client, _seen) = start();
    validating(
        &client,
        vec![entry("allow", json!({})), entry("deny", json!({})), entry("deny-bare", json!({}))],
    )
    .await;
    let (code, _, message) = refusal(create(&client).await);
    let want = "admission webhook \"deny.berth.dev\" denied the request: no cards";
    assert_eq!((code, message.as_str()), (403, want));
    assert_eq!(refusal(pods(&client).get("p").await).0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_denial_without_a_status_is_a_400() {
    let (_sandbox, client, _seen) = start();
    validating(&client, vec![entry("deny-bare", json!({}))]).await;
    let (code, _, message) = refusal(create(&client).await);
    let want = "admission webhook \"deny-bare.berth.dev\" denied the request without explanation";
    assert_eq!((code, message.as_str()), (400, want));
}

#[tokio::test(start_paused = true)]
async fn mutations_follow_names_and_are_reinvoked_once() {
    let (_sandbox, client, seen) = start();
    mutating(&client, "b", vec![entry("rename", json!({}))]).await;
    mutating(
        &client,
        "a",
        vec![entry("annotate", json!({ "reinvocationPolicy": "IfNeeded" })), entry("allow", json!({}))],
    )
    .await;
    let pod = create(&client).await.unwrap();
    assert_eq!(pod.annotations()["a"], "1");
    assert_eq!(pod.spec.unwrap().scheduler_name.as_deref(), Some("berth"));
    let uris: Vec<Value> = seen.lock().unwrap().iter().map(|call| call["uri"].clone()).collect();
    assert_eq!(
        uris,
        ["/annotate?timeout=10s", "/allow?timeout=10s", "/rename?timeout=10s", "/annotate?timeout=10s"]
    );
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0]["request"]["object"]["spec"]["schedulerName"], "default-scheduler");
    assert_eq!(seen[0]["request"]["object"]["metadata"].get("uid"), None);
    assert_eq!(seen[3]["request"]["object"]["spec"]["schedulerName"], "berth");
    assert_eq!(seen[0]["request"]["userInfo"]["username"], "system:admin");
}

#[tokio::test(start_paused = true)]
async fn a_time_out_counts_by_its_policy() {
    for (policy, want) in [("Fail", Some(500)), ("Ignore", None)] {
        let (_sandbox, client, _seen) = start();
        let webhook = entry("hang", json!({ "timeoutSeconds": 3, "failurePolicy": policy }));
        mutating(&client, "m", vec![webhook]).await;
        let began = Instant::now();
        let answer = create(&client).await;
        assert_eq!(began.elapsed().as_secs(), 3);
        match want {
            None => assert!(answer.is_ok()),
            Some(code) => {
                let (got, reason, message) = refusal(answer);
                assert_eq!((got, reason.as_str()), (code, "InternalError"));
                let want = "Internal error occurred: failed calling webhook \"hang.berth.dev\": failed to call webhook: \
                    Post \"https://berth.berth-system.svc:443/hang?timeout=3s\": context deadline exceeded";
                assert_eq!(message, want);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn broken_answers_follow_the_policy_but_a_misfit_patch_never_does() {
    for (path, policy, want) in [
        ("broken", "Ignore", None),
        ("broken", "Fail", Some(500)),
        ("garbage", "Ignore", None),
        ("garbage", "Fail", Some(500)),
        ("misfit", "Ignore", Some(500)),
        ("misfit", "Fail", Some(500)),
    ] {
        let (_sandbox, client, _seen) = start();
        mutating(&client, "m", vec![entry(path, json!({ "failurePolicy": policy }))]).await;
        let answer = create(&client).await;
        assert_eq!(answer.is_err().then(|| refusal(answer).0), want, "{path} {policy}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_nobody_serves_fails() {
    let (_sandbox, client, _seen) = start();
    let elsewhere = json!({ "clientConfig": { "url": "https://127.0.0.1:1/x" } });
    mutating(&client, "m", vec![entry("gone", elsewhere)]).await;
    assert!(refusal(create(&client).await).2.contains("no such host"));
}

fn rule(operation: &str, resource: &str, scope: &str) -> Value {
    json!({ "rules": [{
        "apiGroups": [""], "apiVersions": ["*"], "operations": [operation], "resources": [resource], "scope": scope,
    }] })
}

/// The paths called since the last look.
fn take(seen: &Seen) -> Vec<String> {
    let mut seen = seen.lock().unwrap();
    seen.drain(..).map(|call| call["uri"].as_str().unwrap().split('?').next().unwrap().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn rules_name_operations_subresources_and_scope() {
    let (sandbox, client, seen) = start();
    let webhooks = vec![
        entry("binding", rule("CREATE", "pods/binding", "*")),
        entry("all", rule("*", "*", "Namespaced")),
        entry("cluster", rule("*", "*", "Cluster")),
        entry("delete", rule("DELETE", "pods", "*")),
    ];
    validating(&client, webhooks).await;
    create_pod(&client, "p").await;
    assert_eq!(take(&seen), ["/all"]);
    let user = UserInfo::service_account("berth-system", "berth");
    bind(&sandbox.client_as(user), "p", "n", json!({ "annotations": { "x": "y" } })).await.unwrap();
    let request = seen.lock().unwrap()[0]["request"].clone();
    assert_eq!(request["object"]["metadata"]["annotations"]["x"], "y");
    assert_eq!((&request["subResource"], &request["kind"]["kind"]), (&json!("binding"), &json!("Binding")));
    assert_eq!(request["userInfo"]["username"], "system:serviceaccount:berth-system:berth");
    assert_eq!(take(&seen), ["/binding"]);
    pods(&client).delete("p", &DeleteParams::default()).await.unwrap();
    let request = seen.lock().unwrap()[0]["request"].clone();
    assert_eq!((&request["operation"], &request["object"]), (&json!("DELETE"), &Value::Null));
    assert_eq!(request["oldObject"]["metadata"]["name"], "p");
    assert_eq!(take(&seen), ["/all", "/delete"]);
    let request =
        http::Request::post("/api/v1/namespaces").body(br#"{"metadata":{"name":"x"}}"#.to_vec()).unwrap();
    client.request::<Value>(request).await.unwrap();
    assert_eq!(take(&seen), ["/cluster"]);
}

#[tokio::test(start_paused = true)]
async fn updates_and_deletions_show_the_old_object_and_the_dry_run() {
    let (_sandbox, client, seen) = start();
    create_pod(&client, "p").await;
    let labelled = json!({ "objectSelector": { "matchLabels": { "gpu": "yes" } } });
    let mut webhook = entry("all", rule("*", "pods/*", "*"));
    webhook["objectSelector"] = labelled["objectSelector"].clone();
    validating(&client, vec![webhook]).await;
    for label in [json!("yes"), json!(null)] {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "gpu": label } } }));
        pods(&client).patch_status("p", &PatchParams::default(), &patch).await.unwrap();
    }
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "gpu": "yes" } } }));
    pods(&client).patch("p", &PatchParams::default(), &patch).await.unwrap();
    pods(&client).delete("p", &DeleteParams::default().dry_run()).await.unwrap();
    let seen: Vec<Value> = seen.lock().unwrap().iter().map(|call| call["request"].clone()).collect();
    let label = |object: &Value| object["metadata"]["labels"]["gpu"].clone();
    let seen: Vec<_> = seen
        .iter()
        .map(|one| {
            json!([
                one["operation"],
                one["subResource"],
                label(&one["oldObject"]),
                label(&one["object"]),
                one["dryRun"]
            ])
        })
        .collect();
    let want = [
        json!(["UPDATE", "status", null, "yes", false]),
        json!(["UPDATE", "status", "yes", null, false]),
        json!(["UPDATE", null, null, "yes", false]),
        json!(["DELETE", null, "yes", null, true]),
    ];
    assert_eq!(seen, want);
}

#[tokio::test(start_paused = true)]
async fn selectors_read_the_namespace_and_the_object() {
    let (_sandbox, client, seen) = start();
    let elsewhere = json!({ "namespaceSelector": { "matchExpressions": [
        { "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"] },
    ] } });
    let labelled = json!({ "objectSelector": { "matchLabels": { "gpu": "yes" } } });
    validating(&client, vec![entry("elsewhere", elsewhere), entry("labelled", labelled)]).await;
    let mut sent = pod_json("p");
    create_pod(&client, "plain").await;
    assert!(take(&seen).is_empty());
    sent["metadata"]["labels"] = json!({ "gpu": "yes" });
    pods(&client).create(&PostParams::default(), &object(sent.clone())).await.unwrap();
    assert_eq!(take(&seen), ["/labelled"]);
    let kube_system: Api<Pod> = Api::namespaced(client.clone(), "kube-system");
    kube_system.create(&PostParams::default(), &object(sent)).await.unwrap();
    assert_eq!(take(&seen), ["/elsewhere", "/labelled"]);
}

#[tokio::test(start_paused = true)]
async fn dry_runs_are_reviewed_and_warnings_reach_the_client() {
    let (_sandbox, client, seen) = start();
    let twice = json!({ "reinvocationPolicy": "IfNeeded" });
    mutating(&client, "m", vec![entry("annotate", twice.clone()), entry("rename", twice)]).await;
    let body = serde_json::to_vec(&pod_json("p")).unwrap();
    let request =
        http::Request::post("/api/v1/namespaces/default/pods?dryRun=All").body(body.into()).unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], "299 - \"seen \\\"twice\\\"\"");
    assert!(seen.lock().unwrap().iter().all(|call| call["request"]["dryRun"] == true));
    assert_eq!(refusal(pods(&client).get("p").await).0, 404);
}
