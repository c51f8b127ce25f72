//! Another scheduler that gives devices to claims: the API has no reservation, so it can give a device that Berth gives at the same time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use berth_sandbox::claims::driver::Driver;
use http::Request;
use k8s_openapi::api::{core::v1::Pod, resource::v1::ResourceClaim};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::{Value, json};
use tower::service_fn;

use crate::{
    deaths::{Write, write_of},
    device_claims::{
        claim_of, claims, create_claim, create_template, device_of, of_claim, of_template, request,
        without_berth,
    },
    support::floor::Floor,
    world::{LIMIT, World},
};

/// Berth's way to the API server, on which the rival's claim gets the devices that Berth is about to give, just before; and whether it has
/// got them.
fn overtaken(client: Client, rival: Pod) -> (Client, Arc<AtomicBool>) {
    let is_over: Arc<AtomicBool> = Arc::default();
    let overtaken = is_over.clone();
    let service = service_fn(move |request: Request<Body>| {
        let (client, rival, is_over) = (client.clone(), rival.clone(), overtaken.clone());
        async move {
            if write_of(&request) != Some(Write::ReserveClaim) || is_over.swap(true, Ordering::SeqCst) {
                return client.send(request).await;
            }
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let written: Value = serde_json::from_slice(&body).unwrap();
            give(&client, &rival, &written["status"]["allocation"]).await;
            client.send(Request::from_parts(parts, Body::from(body.to_vec()))).await
        }
    });
    (Client::new(service, "default"), is_over)
}

/// The other scheduler gives its pod's claim these devices.
async fn give(client: &Client, rival: &Pod, allocation: &Value) {
    let user = json!({"resource": "pods", "name": rival.name_any(), "uid": rival.uid()});
    let status = json!({"status": {"allocation": allocation, "reservedFor": [user]}});
    let claims: Api<ResourceClaim> = Api::default_namespaced(client.clone());
    claims.patch_status("rival", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// A pod of the other scheduler, which uses the claim `rival`.
async fn rival(world: &World) -> Pod {
    create_claim(world, "rival", request(Driver::Nvidia, None)).await;
    let mut rival = of_claim("rival", "rival");
    rival["spec"]["schedulerName"] = json!("other");
    world.create(rival).await
}

/// Berth learns that another claim has the device before it binds its pod, and gives that another device.
pub(crate) async fn a_pod_that_is_not_bound_gives_way_to_another_scheduler(floor: Floor) {
    let Some((mut world, _claims)) = without_berth(floor, Driver::Nvidia, &[("gpu-1", 2)]).await else {
        return;
    };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    let (client, rival) = (world.cluster.client.clone(), rival(&world).await);
    let (overtaken, is_over) = overtaken(client, rival);
    world.start_berth_through(overtaken);
    world.create(of_template("train", "gpu")).await;
    let train = world.running("train").await;
    assert!(is_over.load(Ordering::SeqCst), "the other scheduler was first");
    let other = claims(&world).get("rival").await.unwrap();
    assert_ne!(device_of(&claim_of(&world, &train).await).device, device_of(&other).device);
    world.agents_are_content();
}

/// A pod that is bound keeps its devices; whoever can end that is told.
pub(crate) async fn a_device_that_another_scheduler_gives_again_is_found(floor: Floor) {
    let Some((mut world, _claims)) = without_berth(floor, Driver::Nvidia, &[("gpu-1", 1)]).await else {
        return;
    };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.start_berth();
    world.create(of_template("train", "gpu")).await;
    let train = world.running("train").await;
    let own = claim_of(&world, &train).await;
    let rival = rival(&world).await;
    let allocation = serde_json::to_value(own.status.as_ref().unwrap().allocation.as_ref().unwrap()).unwrap();
    give(&world.cluster.client, &rival, &allocation).await;
    let told = world.event("train", "DeviceAllocatedTwice").await;
    let message = format!(
        "Device gpu-0 of pool gpu-1 (gpu.nvidia.com) is allocated to more than one claim: default/rival, default/{}. \
         Delete all but one of their Pods",
        own.name_any()
    );
    assert_eq!(told.message.as_deref(), Some(&*message));
    let metric = "berth_scheduler_doubly_allocated_devices{node=\"gpu-1\"} 1";
    until_counted(&world, |counts| counts.contains(metric)).await;

    let binding = json!({"metadata": {"name": "rival"}, "target": {"kind": "Node", "name": "gpu-1"}});
    let _: Value =
        world.pods().create_subresource("binding", "rival", &PostParams::default(), &binding).await.unwrap();
    let told = world.event("rival", "DeviceAllocatedTwice").await;
    assert_eq!(told.message.as_deref(), Some(&*message));

    world.delete("rival").await;
    until_counted(&world, |counts| !counts.contains("doubly_allocated_devices{")).await;
    world.agents_are_content();
}

async fn until_counted(world: &World, is_met: impl Fn(&str) -> bool) {
    let mut again = tokio::time::interval(Duration::from_millis(20));
    let met = async {
        while !is_met(&world.counts()) {
            again.tick().await;
        }
    };
    tokio::time::timeout(LIMIT, met).await.expect("it is counted in time");
}
