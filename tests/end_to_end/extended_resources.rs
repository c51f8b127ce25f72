//! Extended resources that a class of devices stands for: the claim that the binder makes for them, what kubelet needs to know of it, and
//! what is left of it when a pod goes elsewhere.

use std::time::Duration;

use berth_sandbox::{
    agent::{card::Card, node::Node, wire::Release},
    claims::{
        DeviceClaims,
        driver::{Driver, cards},
    },
};
use k8s_openapi::api::{
    core::v1::Pod,
    resource::v1::{DeviceClass, ResourceClaim},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use berth::config::Config;

use crate::{
    deaths::{Death, Moment, Write},
    support::floor::Floor,
    world::{LIMIT, World, node_of, phase, pod},
};

/// The resource for which the class stands.
const RESOURCE: &str = "example.com/gpu";

fn machine(name: &str) -> Node {
    Node::new(name).allocatable("cpu", "8").allocatable("memory", "64Gi").allocatable("pods", "110")
}

/// Nodes with so many cards of NVIDIA's driver each, whose class stands for the resource, and the controller of claims; Berth is yet to
/// start.
async fn without_berth(
    floor: Floor,
    nodes: &[(&str, u32)],
    others: Vec<Node>,
) -> Option<(World, DeviceClaims)> {
    let machines = nodes.iter().map(|(name, _)| machine(name)).chain(others).collect();
    let world = World::without_berth(floor, machines).await?;
    let client = &world.cluster.client;
    let mut class = Driver::Nvidia.class();
    class.spec.get_or_insert_default().extended_resource_name = Some(RESOURCE.to_owned());
    Api::<DeviceClass>::all(client.clone()).create(&PostParams::default(), &class).await.unwrap();
    for (name, count) in nodes {
        Driver::Nvidia.publish(client, name, &cards(name, *count), 1).await.unwrap();
    }
    let claims = DeviceClaims::start(client.clone());
    Some((world, claims))
}

async fn start(floor: Floor, nodes: &[(&str, u32)], others: Vec<Node>) -> Option<(World, DeviceClaims)> {
    let (mut world, claims) = without_berth(floor, nodes, others).await?;
    world.start_berth();
    Some((world, claims))
}

fn all_are_content(world: &World, claims: &DeviceClaims) {
    world.agents_are_content();
    assert_eq!(claims.violations(), Vec::<String>::new());
}

fn asking(name: &str, count: u32) -> Value {
    pod(name, &json!({"cpu": "1", RESOURCE: count.to_string()}))
}

fn claims(world: &World) -> Api<ResourceClaim> {
    Api::default_namespaced(world.cluster.client.clone())
}

/// The claims that there are.
async fn all(world: &World) -> Vec<String> {
    let list = claims(world).list(&ListParams::default()).await.unwrap();
    list.items.iter().map(ResourceExt::name_any).collect()
}

/// The claim that serves the pod, as its status says.
async fn claim_of(world: &World, pod: &Pod) -> ResourceClaim {
    let status = pod.status.as_ref().and_then(|status| status.extended_resource_claim_status.as_ref());
    claims(world).get(&status.expect("the pod's status names a claim").resource_claim_name).await.unwrap()
}

/// The pools and devices of a claim.
fn devices(claim: &ResourceClaim) -> Vec<(String, String)> {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    let results = allocation.and_then(|allocation| allocation.devices.as_ref()?.results.clone());
    results.unwrap_or_default().into_iter().map(|result| (result.pool, result.device)).collect()
}

fn users(claim: &ResourceClaim) -> Vec<String> {
    let users = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
    users.map(|user| user.name.clone()).collect()
}

/// No claim is left.
async fn none_are_left(world: &World) {
    let mut again = tokio::time::interval(Duration::from_millis(20));
    let gone = async {
        while !all(world).await.is_empty() {
            again.tick().await;
        }
    };
    tokio::time::timeout(LIMIT, gone).await.expect("the claims are deleted in time");
}

pub(crate) async fn a_resource_is_served_by_a_claim_that_the_pod_owns(floor: Floor) {
    let Some((world, watch)) = start(floor, &[("gpu-1", 2)], Vec::new()).await else { return };
    world.create(asking("extended-one", 2)).await;
    let one = world.running("extended-one").await;
    let claim = claim_of(&world, &one).await;
    assert!(claim.name_any().starts_with("extended-one-extended-resources-"), "{}", claim.name_any());
    assert_eq!(claim.annotations()["resource.kubernetes.io/extended-resource-claim"], "true");
    let owner = &claim.owner_references()[0];
    assert_eq!((Some(&owner.uid), owner.controller), (one.metadata.uid.as_ref(), Some(true)));
    assert_eq!(users(&claim), ["extended-one"]);
    assert_eq!(devices(&claim).len(), 2);
    world.create(asking("extended-two", 1)).await;
    world.unschedulable_with("extended-two", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    world.delete("extended-one").await;
    let two = world.running("extended-two").await;
    assert_eq!(all(&world).await, [claim_of(&world, &two).await.name_any()]);
    all_are_content(&world, &watch);
}

/// The same pod goes to a node whose device plugin provides the resource, and gets no claim.
pub(crate) async fn where_a_device_plugin_provides_the_resource_no_claim_is_made(floor: Floor) {
    let plugin = machine("plugin-1").allocatable(RESOURCE, "4");
    let Some((world, watch)) = start(floor, &[("gpu-1", 1)], vec![plugin]).await else { return };
    world.create(asking("extended-one", 2)).await;
    assert_eq!(node_of(&world.running("extended-one").await), "plugin-1");
    assert_eq!(all(&world).await, Vec::<String>::new());
    all_are_content(&world, &watch);
}

/// The binder dies before and after each write, and another goes on.
pub(crate) async fn a_binder_that_is_killed_between_any_two_writes_makes_one_claim(floor: Floor) {
    let nodes = [("gpu-1", 8), ("gpu-2", 8)];
    let Some((mut world, watch)) = without_berth(floor, &nodes, Vec::new()).await else { return };
    let mut pods = Vec::new();
    for write in [Write::CreateClaim, Write::ReserveClaim, Write::StateClaim, Write::Binding] {
        for moment in [Moment::Before, Moment::After] {
            let name = format!("extended-{write:?}-{moment:?}").to_lowercase();
            world.kill_berth_at(write, moment, asking(&name, 1)).await;
            world.start_berth();
            let pod = world.pod_when(&name, |pod| matches!(phase(pod), "Running" | "Failed")).await;
            assert_eq!(phase(&pod), "Running", "{name}");
            let claim = claim_of(&world, &pod).await;
            assert_eq!(devices(&claim)[0].0, node_of(&pod), "{name}");
            assert_eq!(users(&claim), [pod.name_any()], "{name}");
            pods.push(name);
            assert_eq!(all(&world).await.len(), pods.len(), "each pod has one claim");
            world.kill_berth().await;
        }
    }
    for pod in &pods {
        world.delete(pod).await;
    }
    none_are_left(&world).await;
    all_are_content(&world, &watch);
}

/// The claim that was made holds devices of a node that has no room for the pod any more.
pub(crate) async fn a_claim_of_another_node_is_deleted_and_made_anew(floor: Floor) {
    let nodes = [("gpu-1", 1), ("gpu-2", 1)];
    let Some((mut world, watch)) = without_berth(floor, &nodes, Vec::new()).await else { return };
    world.kill_berth_at(Write::Binding, Moment::Before, asking("extended-moves", 1)).await;
    let before = claims(&world).list(&ListParams::default()).await.unwrap().items.remove(0);
    let first = devices(&before)[0].0.clone();
    world.patch_node(&first, json!({"spec": {"unschedulable": true}})).await;
    world.start_berth();
    let pod = world.running("extended-moves").await;
    let claim = claim_of(&world, &pod).await;
    assert_ne!(node_of(&pod), first);
    assert_ne!(claim.uid(), before.uid());
    assert_eq!(devices(&claim)[0].0, node_of(&pod));
    assert_eq!(all(&world).await.len(), 1);
    all_are_content(&world, &watch);
}

/// Another scheduler has made a claim for the pod, under a name of its own, and ended before it bound the pod.
pub(crate) async fn a_claim_that_another_scheduler_has_made_is_taken_up(floor: Floor) {
    let nodes = [("gpu-1", 2), ("gpu-2", 2)];
    let Some((mut world, watch)) = without_berth(floor, &nodes, Vec::new()).await else { return };
    world.kill_berth_at(Write::StateClaim, Moment::Before, asking("extended-one", 1)).await;
    let made = claims(&world).list(&ListParams::default()).await.unwrap().items.remove(0);
    claims(&world).delete(&made.name_any(), &DeleteParams::default()).await.unwrap();
    let unprotected = json!({"metadata": {"finalizers": null}});
    claims(&world)
        .patch(&made.name_any(), &PatchParams::default(), &Patch::Merge(unprotected))
        .await
        .unwrap();
    none_are_left(&world).await;
    let mut theirs = made.clone();
    theirs.metadata.name = Some("extended-one-extended-resources-x7k2p".to_owned());
    theirs.metadata.resource_version = None;
    theirs.metadata.uid = None;
    let theirs = claims(&world).create(&PostParams::default(), &theirs).await.unwrap();
    let allocated = json!({"status": made.status});
    claims(&world)
        .patch_status(&theirs.name_any(), &PatchParams::default(), &Patch::Merge(allocated))
        .await
        .unwrap();
    let pod = world.pods().get("extended-one").await.unwrap();
    let mapping = json!({
        "containerName": pod.spec.as_ref().unwrap().containers[0].name,
        "resourceName": RESOURCE,
        "requestName": theirs.spec.as_ref().unwrap().devices.as_ref().unwrap().requests.as_ref().unwrap()[0].name,
    });
    let stated = json!({"resourceClaimName": theirs.name_any(), "requestMappings": [mapping]});
    let stated = json!({"status": {"extendedResourceClaimStatus": stated}});
    world.pods().patch_status("extended-one", &PatchParams::default(), &Patch::Merge(stated)).await.unwrap();
    world.start_berth();
    let pod = world.running("extended-one").await;
    let claim = claim_of(&world, &pod).await;
    assert_eq!(claim.uid(), theirs.uid());
    assert_eq!((devices(&claim), node_of(&pod)), (devices(&made), &*devices(&made)[0].0));
    assert_eq!(all(&world).await, [theirs.name_any()]);
    world.delete("extended-one").await;
    none_are_left(&world).await;
    all_are_content(&world, &watch);
}

/// Two nodes and a pod for which a claim was made on the first, when Berth died; now only the second, whose device plugin provides the resource, has
/// room for it.
async fn before_it_moves(floor: Floor) -> Option<(World, DeviceClaims)> {
    let (mut world, watch) = without_berth(floor, &[("gpu-1", 1)], vec![machine("plugin-1")]).await?;
    world.kill_berth_at(Write::Binding, Moment::Before, asking("extended-moves", 1)).await;
    assert_eq!(all(&world).await.len(), 1);
    world.patch_node("gpu-1", json!({"spec": {"unschedulable": true}})).await;
    let provided = json!({"status": {"allocatable": {RESOURCE: "1"}, "capacity": {RESOURCE: "1"}}});
    world.nodes().patch_status("plugin-1", &PatchParams::default(), &Patch::Merge(provided)).await.unwrap();
    Some((world, watch))
}

/// The API server of 1.37 keeps what the pod's status says of the claim, and kubelet starts the pod with it alone.
pub(crate) async fn a_pod_whose_status_names_a_claim_for_good_goes_where_it_is_served(floor: Floor) {
    let Some((mut world, watch)) = before_it_moves(floor).await else { return };
    let settings = Config::parse("scheduling: {kubeScheduler: v1.37}", "berth.yaml").unwrap().0;
    let claim = all(&world).await.remove(0);
    world.start_berth_with(&settings);
    let told = format!(
        "0/2 nodes are available: 1 node(s) were unschedulable, 1 node(s) would not use resourceclaim \"{claim}\", \
         which the API server keeps in the pod's status."
    );
    world.waits_with("extended-moves", |why| why.starts_with(&told)).await;
    world.patch_node("gpu-1", json!({"spec": {"unschedulable": null}})).await;
    let pod = world.running("extended-moves").await;
    assert_eq!((node_of(&pod), claim_of(&world, &pod).await.name_any()), ("gpu-1", claim));
    all_are_content(&world, &watch);
}

/// The pod goes to a node whose device plugin provides the resource after a claim was made for another.
pub(crate) async fn a_claim_that_is_not_needed_after_all_is_deleted(floor: Floor) {
    let Some((mut world, watch)) = before_it_moves(floor).await else { return };
    world.start_berth();
    let pod = world.running("extended-moves").await;
    assert_eq!(node_of(&pod), "plugin-1");
    assert_eq!(pod.status.unwrap().extended_resource_claim_status, None);
    none_are_left(&world).await;
    all_are_content(&world, &watch);
}

/// The pod is deleted while its claim is being written.
pub(crate) async fn a_pod_that_is_deleted_in_between_leaves_no_claim(floor: Floor) {
    let Some((mut world, watch)) = without_berth(floor, &[("gpu-1", 1)], Vec::new()).await else { return };
    for (write, moment) in [
        (Write::CreateClaim, Moment::After),
        (Write::ReserveClaim, Moment::After),
        (Write::StateClaim, Moment::Before),
    ] {
        let name = format!("extended-{write:?}").to_lowercase();
        let death = Death::at(world.cluster.client.clone(), write, moment);
        world.start_berth_through(death.client());
        world.create(asking(&name, 1)).await;
        death.reached().await;
        world.delete(&name).await;
        none_are_left(&world).await;
        world.kill_berth().await;
    }
    all_are_content(&world, &watch);
}

/// A pod with a share in HAMi's words.
fn sharing(name: &str, memory: u32) -> Value {
    pod(
        name,
        &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": memory.to_string(), "nvidia.com/gpucores": "30"}),
    )
}

/// The pod does not need to know: on a node whose cards HAMi's driver of devices publishes its share is a claim with capacity, on one with
/// HAMi's device plugin it is an annotation.
pub(crate) async fn a_share_is_a_claim_where_a_driver_publishes_the_cards(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, vec![machine("dra-1")]).await else { return };
    let client = world.cluster.client.clone();
    Driver::Hami.publish(&client, "dra-1", &cards("dra-1", 1), 1).await.unwrap();
    let watch = DeviceClaims::start(client);
    world.start_berth();
    for name in ["extended-one", "extended-two"] {
        let mut sharing = sharing(name, 40_000);
        sharing["metadata"]["annotations"]["nvidia.com/use-gputype"] = json!("a100,h100");
        sharing["metadata"]["annotations"]["nvidia.com/nouse-gpuuuid"] = json!("GPU-elsewhere");
        world.create(sharing).await;
        let pod = world.running(name).await;
        let claim = claim_of(&world, &pod).await;
        let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref()).unwrap();
        let given = allocation.devices.as_ref().unwrap().results.as_ref().unwrap();
        let consumed = given[0].consumed_capacity.as_ref().unwrap();
        assert_eq!(
            (consumed["memory"].0.as_str(), consumed["cores"].0.as_str()),
            ("40000Mi", "30"),
            "{name}"
        );
        let carried: Vec<_> = pod.annotations().keys().filter(|key| key.starts_with("hami.io/")).collect();
        assert_eq!(carried, Vec::<&String>::new(), "{name}");
    }
    world.create(sharing("extended-three", 40_000)).await;
    world
        .unschedulable_with("extended-three", "0/1 nodes are available: 1 cannot allocate all claims.")
        .await;
    world.delete("extended-one").await;
    world.running("extended-three").await;
    all_are_content(&world, &watch);
}

pub(crate) async fn the_same_share_is_an_annotation_where_a_device_plugin_serves_it(floor: Floor) {
    let plugin = machine("plugin-1").hami(Release::V2_8).card(Card::new("GPU-1", 0, 80 << 10));
    let Some(mut world) = World::without_berth(floor, vec![plugin]).await else { return };
    let client = world.cluster.client.clone();
    Driver::Hami.publish(&client, "other", &cards("other", 1), 1).await.unwrap();
    let watch = DeviceClaims::start(client);
    world.start_berth();
    world.create(sharing("extended-one", 4000)).await;
    let pod = world.running("extended-one").await;
    assert!(pod.annotations().keys().any(|key| key.starts_with("hami.io/")), "{:?}", pod.annotations());
    assert_eq!(all(&world).await, Vec::<String>::new());
    all_are_content(&world, &watch);
}
