//! The API server's queues: whose requests wait where.

use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kube::Api;

use super::{
    support::server::pause,
    world::{BINDER, Changes, USER, World},
};

/// The FlowSchema and the priority level that took a GET of this path, by uid
/// (kubernetes `staging/src/k8s.io/apiserver/pkg/server/filters/priority-and-fairness.go`).
async fn taken_by(world: &World, user: &str, path: &str) -> [String; 2] {
    let request = http::Request::get(path).body(kube::client::Body::empty()).unwrap();
    let response = world.cluster.client_of(user).send(request).await.unwrap();
    ["x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"]
        .map(|header| response.headers()[header].to_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_binder_waits_in_no_crowd_and_its_lease_behind_no_binding() {
    let Some(world) = World::start().await else { return };
    world.install(&Changes::default(), |kind| !kind.ends_with("WebhookConfiguration")).await;
    let client = &world.cluster.client;
    let schemas: Api<FlowSchema> = Api::all(client.clone());
    let levels: Api<PriorityLevelConfiguration> = Api::all(client.clone());
    let cases = [
        ("/api/v1/pods", "berth", "berth"),
        ("/api/v1/namespaces/other/pods/p", "berth", "berth"),
        (
            "/apis/coordination.k8s.io/v1/namespaces/berth-system/leases/berth",
            "berth-leader-election",
            "leader-election",
        ),
    ];
    for (path, schema, level) in cases {
        let schema = schemas.get(schema).await.unwrap().metadata.uid.unwrap();
        let level = levels.get(level).await.unwrap().metadata.uid.unwrap();
        // The API server takes a schema into force when its controller has seen it.
        while taken_by(&world, BINDER, path).await != [schema.clone(), level.clone()] {
            pause().await;
        }
        assert_ne!(taken_by(&world, USER, path).await, [schema, level], "{path}: its own, and nobody else's");
    }
}
