//! The sandbox over real sockets: TLS, token, kubeconfig, watches, and a webhook over HTTPS.

use super::world::{create_pod, object, pod_json, pods, refusal};
use base64::{Engine, engine::general_purpose::STANDARD};
use berth::sandbox::{Https, Options, Sandbox};
use futures::StreamExt;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Client, Config, ResourceExt,
    api::{PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use std::sync::Arc;

async fn client(kubeconfig: &str) -> Client {
    let kubeconfig: Kubeconfig = serde_saphyr::from_str(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
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
        let mut watch = pods(&known)
            .watch(&WatchParams::default(), "0")
            .await
            .unwrap()
            .boxed();
        create_pod(&known, "p").await;
        let Some(Ok(WatchEvent::Added(pod))) = watch.next().await else {
            panic!("no pod")
        };
        assert_eq!(pod.name_any(), "p");
        assert_eq!(refusal(pods(&client(&stranger).await).get("p").await).0, 401);
    };
    tokio::select! {
        never = served.run => match never {},
        () = talk => {}
    }
}

#[tokio::test]
async fn a_webhook_is_called_over_https_and_trusted_by_its_bundle_only() {
    let webhook = Sandbox::new(Options::default())
        .serve("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let stranger = Sandbox::new(Options::default())
        .serve("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let transport = Https::default().resolving(
        "localhost:443",
        webhook.url.trim_start_matches("https://").parse().unwrap(),
    );
    let sandbox = Sandbox::new(Options {
        transport: Arc::new(transport),
        ..Options::default()
    });
    let answer = async |ca: &str| {
        let client = sandbox.client();
        let api: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
        let sent = json!({ "metadata": { "generateName": "w" }, "webhooks": [{
            "name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "url": "https://localhost/review", "caBundle": STANDARD.encode(ca) },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"] }],
        }] });
        let made = api.create(&PostParams::default(), &object(sent)).await.unwrap();
        let (_, _, message) = refusal(
            pods(&client)
                .create(&PostParams::default(), &object(pod_json("p")))
                .await,
        );
        api.delete(&made.name_any(), &kube::api::DeleteParams::default())
            .await
            .unwrap();
        message
    };
    let talk = async {
        // The other sandbox is no webhook: that it was reached shows in its answer to a stranger.
        let message = answer(&webhook.ca).await;
        assert!(message.contains("the server answered 401"), "{message}");
        let message = answer(&stranger.ca).await;
        assert!(
            message.contains("tls with") && message.contains("certificate"),
            "{message}"
        );
    };
    tokio::select! {
        never = webhook.run => match never {},
        () = talk => {}
    }
}
