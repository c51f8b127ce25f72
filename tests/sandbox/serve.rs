//! The sandbox over real sockets: TLS, token, kubeconfig, watches, and a webhook over HTTPS.

use super::world::{create_pod, object, pod_json, pods, refusal};
use base64::{Engine, engine::general_purpose::STANDARD};
use berth_sandbox::{Https, Options, Sandbox, Workloads};
use futures::StreamExt;
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration, authentication::v1::TokenReview,
    authorization::v1::SubjectAccessReview,
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use std::sync::Arc;

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig: Kubeconfig = serde_saphyr::from_str(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_client_with_the_kubeconfig_reads_writes_and_watches() {
    let sandbox = Sandbox::new(Options::default());
    let served = sandbox.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let kubeconfig = served.kubeconfig.clone();
    let stranger = kubeconfig.replace(&served.token, "wrong");
    let talk = async {
        let known = client(&kubeconfig).await;
        let mut watch = pods(&known).watch(&WatchParams::default(), "0").await.unwrap().boxed();
        create_pod(&known, "p").await;
        let Some(Ok(WatchEvent::Added(pod))) = watch.next().await else { panic!("no pod") };
        assert_eq!(pod.name_any(), "p");
        assert_eq!(refusal(pods(&client(&stranger).await).get("p").await).0, 401);
    };
    tokio::select! {
        never = served.run => match never {},
        () = talk => {}
    }
}

/// What the server answers to a body of this media type that is to become a Job: status, message and warnings.
async fn job(sandbox: &Sandbox, media: &str) -> (u16, String, Vec<String>) {
    let containers = json!([{ "name": "main", "image": "i" }]);
    let spec = json!({ "template": { "spec": { "restartPolicy": "Never", "containers": containers } } });
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "j" }, "spec": spec });
    let request = http::Request::post("/apis/batch/v1/namespaces/default/jobs")
        .header("content-type", media)
        .body(kube::client::Body::from(serde_json::to_vec(&job).unwrap()))
        .unwrap();
    let response = sandbox.client().send(request).await.unwrap();
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|text| text.to_str().unwrap().to_owned()).collect();
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    let answer: serde_json::Value = serde_json::from_slice(&body).unwrap();
    (status, answer["message"].as_str().unwrap_or_default().to_owned(), warnings)
}

#[tokio::test]
async fn a_server_that_is_to_remark_it_warns_that_no_pods_come_of_a_workload() {
    let (status, _, warnings) = job(&Sandbox::new(Options::default()), "application/json").await;
    assert_eq!((status, warnings.len()), (201, 0), "{warnings:?}");
    let options = Options { workloads: Workloads::Warned, ..Options::default() };
    let (status, _, warnings) = job(&Sandbox::new(options), "application/json").await;
    assert_eq!(status, 201);
    assert!(warnings[0].contains("no pods are made of this Job; create Pods"), "{warnings:?}");
}

/// kubectl's `create deployment` and its like send protobuf.
#[tokio::test]
async fn a_body_in_protobuf_is_refused_with_the_command_that_sends_another() {
    let sandbox = Sandbox::new(Options::default());
    let (status, message, _) = job(&sandbox, "application/vnd.kubernetes.protobuf").await;
    assert_eq!(status, 415);
    assert!(
        message.contains("add `--dry-run=client -o yaml` and pipe the output to `kubectl apply -f -`"),
        "{message}"
    );
}

#[tokio::test]
async fn a_webhook_is_called_over_https_and_trusted_by_its_bundle_only() {
    let webhook = Sandbox::new(Options::default()).serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let stranger = Sandbox::new(Options::default()).serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let transport = Https::default()
        .resolving("localhost:443", webhook.url.trim_start_matches("https://").parse().unwrap());
    let sandbox = Sandbox::new(Options { transport: Arc::new(transport), ..Options::default() });
    let answer = async |ca: &str| {
        let client = sandbox.client();
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let sent = json!({ "metadata": { "generateName": "w" }, "webhooks": [{
            "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "url": "https://localhost/review", "caBundle": STANDARD.encode(ca) },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
        }] });
        let made = api.create(&PostParams::default(), &object(sent)).await.unwrap();
        let (_, _, message) =
            refusal(pods(&client).create(&PostParams::default(), &object(pod_json("p"))).await);
        api.delete(&made.name_any(), &kube::api::DeleteParams::default()).await.unwrap();
        message
    };
    let talk = async {
        // The other sandbox is no webhook: that it was reached shows in its answer to a stranger.
        let message = answer(&webhook.ca).await;
        assert!(message.contains("the server answered 401"), "{message}");
        let message = answer(&stranger.ca).await;
        assert!(message.contains("tls with") && message.contains("certificate"), "{message}");
    };
    tokio::select! {
        never = webhook.run => match never {},
        () = talk => {}
    }
}

/// The user of a token, as a TokenReview names it, and whether that user may get a path.
async fn reviewed(client: &Client, token: &str) -> Option<(String, bool)> {
    let sent = json!({ "metadata": {}, "spec": { "token": token } });
    let reviews: Api<TokenReview> = Api::all(client.clone());
    let status = reviews.create(&PostParams::default(), &object(sent)).await.unwrap().status.unwrap();
    let user = status.user.filter(|_| status.authenticated == Some(true))?;
    let path = json!({ "path": "/debug/ledger", "verb": "get" });
    let spec = json!({ "user": user.username, "groups": user.groups, "nonResourceAttributes": path });
    let accesses: Api<SubjectAccessReview> = Api::all(client.clone());
    let sent = object(json!({ "metadata": {}, "spec": spec }));
    let allowed = accesses.create(&PostParams::default(), &sent).await.unwrap().status.unwrap().allowed;
    Some((user.username.unwrap(), allowed))
}

#[tokio::test]
async fn tokens_and_access_are_reviewed_and_no_review_is_stored() {
    let sandbox = Sandbox::new(Options::default());
    let served = sandbox.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let client = sandbox.client();
    let before = sandbox.resource_version();
    assert_eq!(reviewed(&client, &served.token).await, Some(("system:admin".to_owned(), true)));
    assert_eq!(reviewed(&client, "wrong").await, None);
    let accesses: Api<SubjectAccessReview> = Api::all(client.clone());
    let may = async |spec| {
        let sent = object(json!({ "metadata": {}, "spec": spec }));
        Ok::<_, kube::Error>(accesses.create(&PostParams::default(), &sent).await?.status.unwrap().allowed)
    };
    let path = json!({ "path": "/debug/ledger", "verb": "get" });
    assert!(
        !may(json!({ "user": "eve", "groups": ["system:authenticated"], "nonResourceAttributes": path }))
            .await
            .unwrap()
    );
    assert_eq!(refusal(may(json!({ "nonResourceAttributes": path })).await).0, 422);
    let nobody: Api<TokenReview> = Api::all(client.clone());
    assert_eq!(
        refusal(nobody.create(&PostParams::default(), &object(json!({ "metadata": {}, "spec": {} }))).await)
            .0,
        400
    );
    assert_eq!(sandbox.resource_version(), before);
    assert_eq!(refusal(accesses.get("x").await).0, 405);
}
