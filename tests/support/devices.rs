//! Koordinator's kinds Device and Reservation, which the sandbox serves from the start and a real API server once they are installed.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, PostParams},
    runtime::{conditions::is_crd_established, wait::await_condition},
};
use serde_json::json;

use super::floor::Floor;

const GROUP: &str = "scheduling.koordinator.sh";
const VERSION: &str = "v1alpha1";

/// After this time a kind that should be served is not.
const LIMIT: Duration = Duration::from_mins(1);

/// The Devices of a cluster.
pub fn devices(client: &Client) -> Api<DynamicObject> {
    all(client, "Device", "devices")
}

/// The Reservations of a cluster.
pub fn reservations(client: &Client) -> Api<DynamicObject> {
    all(client, "Reservation", "reservations")
}

fn all(client: &Client, kind: &str, plural: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: GROUP.to_owned(),
        version: VERSION.to_owned(),
        api_version: format!("{GROUP}/{VERSION}"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    };
    Api::all_with(client.clone(), &resource)
}

/// Returns once the kind Device is served.
pub async fn serve(client: &Client, floor: Floor) {
    serve_kind(client, floor, "Device", "devices").await;
}

/// Returns once the kind Reservation is served.
pub async fn serve_reservations(client: &Client, floor: Floor) {
    serve_kind(client, floor, "Reservation", "reservations").await;
}

async fn serve_kind(client: &Client, floor: Floor, kind: &str, plural: &str) {
    if floor == Floor::Sandbox {
        return;
    }
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("{plural}.{GROUP}");
    let crd = json!({
        "metadata": {"name": name},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
            "versions": [{"name": VERSION, "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    let crd = serde_json::from_value(crd).expect("it is a CustomResourceDefinition");
    crds.create(&PostParams::default(), &crd).await.expect("a fresh cluster takes the kind");
    let established = await_condition(crds, &name, is_crd_established());
    tokio::time::timeout(LIMIT, established)
        .await
        .expect("the kind is served in time")
        .expect("the API server answers");
    // For a moment after its kind is established, kube-apiserver may still answer 404.
    let mut again = tokio::time::interval(Duration::from_millis(20));
    let served = async {
        while all(client, kind, plural).list(&ListParams::default()).await.is_err() {
            again.tick().await;
        }
    };
    tokio::time::timeout(LIMIT, served).await.expect("the kind is served in time");
}
