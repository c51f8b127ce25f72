//! HAMi's webhook (`pkg/scheduler/webhook.go`, `pkg/device/nvidia/device.go`, v2.10.0) for pods with NVIDIA's resources.
//!
//! It must not know Berth.
#![allow(clippy::disallowed_methods, reason = "TLS clients judge certificates by the clock on the wall")]

use std::net::SocketAddr;

use axum::{Router, body::Bytes, http::header, routing::post};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use berth::webhook::{
    Certificates, Limits, Listener,
    certificate::mint::{self, Lifetimes, ServingNames},
};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::take_over::chart;

/// The webhook, at work until it is dropped, and its configuration.
pub(crate) struct Webhook {
    pub(crate) configuration: MutatingWebhookConfiguration,
    _task: JoinSet<()>,
}

pub(crate) async fn start(client: &Client) -> Webhook {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (service, namespace) = ("hami-scheduler".to_owned(), "kube-system".to_owned());
    let names = ServingNames { service, namespace, extra: vec!["127.0.0.1".to_owned()] };
    let bundle = mint::bundle(&names, Lifetimes::default(), Timestamp::now()).unwrap();
    let certificates = Certificates::from_pair(&bundle.serving).unwrap();
    let bound = Listener::new(Limits::default()).bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let url = format!("https://{}/webhook", bound.local_addr());
    let router = Router::new().route("/webhook", post(review));
    let mut task = JoinSet::new();
    task.spawn(
        async move { bound.serve(router, certificates.server_config(), std::future::pending()).await },
    );
    let configuration = chart::webhook_configuration(&url, &bundle.authority.certificate);
    chart::restore_webhook(client, &configuration).await;
    Webhook { configuration, _task: task }
}

async fn review(body: Bytes) -> ([(header::HeaderName, &'static str); 1], String) {
    let answer = answer(&serde_json::from_slice(&body).unwrap());
    ([(header::CONTENT_TYPE, "application/json")], answer.to_string())
}

fn answer(review: &Value) -> Value {
    let (request, mut response) = (&review["request"], json!({"allowed": true}));
    response["uid"] = request["uid"].clone();
    let patch = patch(&request["object"]);
    if !patch.is_empty() {
        response["patchType"] = "JSONPatch".into();
        response["patch"] = BASE64_STANDARD.encode(Value::from(patch).to_string()).into();
    }
    json!({"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response})
}

/// Nothing where another scheduler is named; else the defaults of each asking container, and HAMi's scheduler.
fn patch(pod: &Value) -> Vec<Value> {
    let named = pod["spec"]["schedulerName"].as_str().unwrap_or_default();
    if !["", "default-scheduler", "hami-scheduler"].contains(&named) {
        return Vec::new();
    }
    let mut operations = Vec::new();
    let mut asks = false;
    for (at, container) in pod["spec"]["containers"].as_array().into_iter().flatten().enumerate() {
        let limits = &container["resources"]["limits"];
        let has = |name: &str| limits.get(format!("nvidia.com/{name}")).is_some();
        let mut add = |name: &str, value: &str| {
            let path = format!("/spec/containers/{at}/resources/limits/nvidia.com~1{name}");
            operations.push(json!({"op": "add", "path": path, "value": value}));
        };
        if !has("gpu") && (has("gpumem") || has("gpumem-percentage") || has("gpucores")) {
            add("gpu", "1");
        }
        if has("gpu") && !["gpumem", "gpumem-percentage", "gpucores"].into_iter().any(has) {
            add("gpucores", "100");
        }
        asks |= ["gpu", "gpumem", "gpumem-percentage", "gpucores"].into_iter().any(has);
    }
    if asks {
        operations.push(json!({"op": "add", "path": "/spec/schedulerName", "value": "hami-scheduler"}));
    }
    operations
}
