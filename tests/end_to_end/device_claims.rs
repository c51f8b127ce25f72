//! Claims of devices: what the binder writes for them, where their pods go, and what is left of them when pods go elsewhere.

use berth_sandbox::{
    agent::node::Node,
    claims::{
        DeviceClaims,
        driver::{Driver, cards},
    },
};
use k8s_openapi::api::{
    core::v1::Pod,
    resource::v1::{DeviceRequestAllocationResult, ResourceClaim, ResourceClaimTemplate},
};
use kube::{
    Api, ResourceExt as _,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
};
use serde_json::{Value, json};

use crate::{
    deaths::{Moment, Write},
    support::{build::Release, floor::Floor},
    world::{World, node_of, phase, pod},
};

/// A node without cards of a device plugin.
pub(crate) fn machine(name: &str) -> Node {
    Node::new(name).allocatable("cpu", "8").allocatable("memory", "64Gi").allocatable("pods", "110")
}

/// Nodes with so many cards of a driver each, and the controller of claims; Berth is yet to start.
pub(crate) async fn without_berth(
    floor: Floor,
    driver: Driver,
    nodes: &[(&str, u32)],
) -> Option<(World, DeviceClaims)> {
    let world = World::without_berth(floor, nodes.iter().map(|(name, _)| machine(name)).collect()).await?;
    for (name, count) in nodes {
        driver.publish(&world.cluster.client, name, &cards(name, *count), 1).await.unwrap();
    }
    let claims = DeviceClaims::start(world.cluster.client.clone());
    Some((world, claims))
}

async fn start(floor: Floor, driver: Driver, nodes: &[(&str, u32)]) -> Option<(World, DeviceClaims)> {
    let (mut world, claims) = without_berth(floor, driver, nodes).await?;
    world.start_berth();
    Some((world, claims))
}

pub(crate) fn all_are_content(world: &World, claims: &DeviceClaims) {
    world.agents_are_content();
    assert_eq!(claims.violations(), Vec::<String>::new());
}

/// A request for one device of the driver's class, with so much of its memory and compute.
pub(crate) fn request(driver: Driver, share: Option<(&str, &str)>) -> Value {
    let mut exactly = json!({"deviceClassName": driver.name()});
    if let Some((memory, cores)) = share {
        exactly["capacity"] = json!({"requests": {"memory": memory, "cores": cores}});
    }
    json!({"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}})
}

pub(crate) async fn create_template(world: &World, name: &str, spec: Value) {
    let template = json!({"metadata": {"name": name}, "spec": {"spec": spec}});
    let templates: Api<ResourceClaimTemplate> = Api::default_namespaced(world.cluster.client.clone());
    templates.create(&PostParams::default(), &serde_json::from_value(template).unwrap()).await.unwrap();
}

pub(crate) async fn create_claim(world: &World, name: &str, spec: Value) {
    let claim = json!({"metadata": {"name": name}, "spec": spec});
    claims(world).create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
}

pub(crate) fn claims(world: &World) -> Api<ResourceClaim> {
    Api::default_namespaced(world.cluster.client.clone())
}

/// A pod with a claim of its own from the template.
pub(crate) fn of_template(name: &str, template: &str) -> Value {
    let mut pod = pod(name, &json!({"cpu": "1"}));
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": template}]);
    pod["spec"]["containers"][0]["resources"]["claims"] = json!([{"name": "gpu"}]);
    pod
}

/// A pod that uses the claim of this name.
pub(crate) fn of_claim(name: &str, claim: &str) -> Value {
    let mut pod = of_template(name, claim);
    pod["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimName": claim}]);
    pod
}

/// The one device of a claim.
pub(crate) fn device_of(claim: &ResourceClaim) -> DeviceRequestAllocationResult {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.clone()).unwrap();
    allocation.devices.unwrap().results.unwrap().remove(0)
}

/// The claim that a pod uses.
pub(crate) async fn claim_of(world: &World, pod: &Pod) -> ResourceClaim {
    let made = pod.status.iter().flat_map(|status| status.resource_claim_statuses.iter().flatten()).next();
    let named = pod.spec.iter().flat_map(|spec| spec.resource_claims.iter().flatten()).next();
    let name = made.and_then(|made| made.resource_claim_name.clone());
    let name = name.or_else(|| named.and_then(|named| named.resource_claim_name.clone())).unwrap();
    claims(world).get(&name).await.unwrap()
}

fn users(claim: &ResourceClaim) -> Vec<String> {
    let users = claim.status.iter().flat_map(|status| status.reserved_for.iter().flatten());
    users.map(|user| user.name.clone()).collect()
}

pub(crate) async fn a_card_is_given_with_the_pod_and_free_after_it(floor: Floor) {
    let Some((world, claims)) = start(floor, Driver::Nvidia, &[("gpu-1", 1)]).await else { return };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.create(of_template("train", "gpu")).await;
    let train = world.running("train").await;
    let claim = claim_of(&world, &train).await;
    assert_eq!((device_of(&claim).device.as_str(), users(&claim)), ("gpu-0", vec!["train".to_owned()]));
    world.create(of_template("next", "gpu")).await;
    let waits = "0/1 nodes are available: 1 cannot allocate all claims.";
    world.unschedulable_with("next", waits).await;
    world.delete("train").await;
    world.running("next").await;
    all_are_content(&world, &claims);
}

pub(crate) async fn shares_of_one_card_are_counted_together(floor: Floor) {
    let Some((world, claims)) = start(floor, Driver::Hami, &[("gpu-1", 1)]).await else { return };
    create_template(&world, "half", request(Driver::Hami, Some(("40Gi", "30")))).await;
    for name in ["one", "two"] {
        world.create(of_template(name, "half")).await;
        world.running(name).await;
    }
    world.create(of_template("three", "half")).await;
    world.unschedulable_with("three", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    world.delete("one").await;
    let three = world.running("three").await;
    let consumed = device_of(&claim_of(&world, &three).await).consumed_capacity.unwrap();
    assert_eq!((consumed["memory"].0.as_str(), consumed["cores"].0.as_str()), ("40Gi", "30"));
    all_are_content(&world, &claims);
}

pub(crate) async fn pods_that_share_a_claim_go_to_one_node(floor: Floor) {
    let Some((world, claims)) = start(floor, Driver::Nvidia, &[("gpu-1", 1), ("gpu-2", 1)]).await else {
        return;
    };
    create_claim(&world, "shared", request(Driver::Nvidia, None)).await;
    world.create(of_claim("one", "shared")).await;
    world.create(of_claim("two", "shared")).await;
    let (one, two) = (world.running("one").await, world.running("two").await);
    assert_eq!(node_of(&one), node_of(&two));
    let mut together = users(&claim_of(&world, &one).await);
    together.sort();
    assert_eq!(together, ["one", "two"]);
    all_are_content(&world, &claims);
}

pub(crate) async fn a_card_that_is_published_later_wakes_the_pod(floor: Floor) {
    let Some((world, claims)) = start(floor, Driver::Nvidia, &[("gpu-1", 0)]).await else { return };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.create(of_template("train", "gpu")).await;
    world.unschedulable_with("train", "0/1 nodes are available: 1 cannot allocate all claims.").await;
    Driver::Nvidia.publish(&world.cluster.client, "gpu-1", &cards("gpu-1", 1), 2).await.unwrap();
    world.running("train").await;
    all_are_content(&world, &claims);
}

/// The rules that taint devices, in the version that the API server serves.
async fn taint_rules(world: &World) -> Api<DynamicObject> {
    let in_version = |version: &str| -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("resource.k8s.io", version, "DeviceTaintRule");
        Api::all_with(world.cluster.client.clone(), &ApiResource::from_gvk(&kind))
    };
    let newest = in_version("v1");
    match newest.list(&ListParams::default()).await {
        Ok(_) => newest,
        Err(kube::Error::Api(status)) if status.code == 404 => in_version("v1beta2"),
        Err(error) => panic!("{error}"),
    }
}

pub(crate) async fn devices_that_a_rule_taints_are_given_once_the_rule_is_gone(floor: Floor) {
    let nodes = [("gpu-1", 1), ("gpu-2", 1)];
    let Some((mut world, claims)) = without_berth(floor, Driver::Nvidia, &nodes).await else { return };
    let rules = taint_rules(&world).await;
    for node in ["gpu-1", "gpu-2"] {
        let taint = json!({"key": "example.com/broken", "effect": "NoSchedule"});
        let spec = json!({"deviceSelector": {"driver": Driver::Nvidia.name(), "pool": node}, "taint": taint});
        let rule = serde_json::from_value(json!({"metadata": {"name": node}, "spec": spec})).unwrap();
        rules.create(&PostParams::default(), &rule).await.unwrap();
    }
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.start_berth();
    world.create(of_template("train", "gpu")).await;
    world.unschedulable_with("train", "0/2 nodes are available: 2 cannot allocate all claims.").await;
    let observed = json!({"spec": {"taint": {"effect": "None"}}});
    rules.patch("gpu-2", &PatchParams::default(), &Patch::Merge(observed)).await.unwrap();
    assert_eq!(node_of(&world.running("train").await), "gpu-2");
    world.create(of_template("next", "gpu")).await;
    world.unschedulable_with("next", "0/2 nodes are available: 2 cannot allocate all claims.").await;
    rules.delete("gpu-1", &DeleteParams::default()).await.unwrap();
    assert_eq!(node_of(&world.running("next").await), "gpu-1");
    all_are_content(&world, &claims);
}

/// Whether the API server keeps what devices take of their nodes: as 1.37 has it, if it is told to.
fn serves_node_resources(floor: Floor) -> bool {
    floor == Floor::Sandbox || Release::of_tests().unwrap() == Release::V1_37
}

/// Has each device of a node stand for 3 cpu, and take 1 GiB of each pod and as much of each container. The API server admits that only of a node whose kubelet
/// declares the feature.
async fn take_of_node(world: &World, node: &str) {
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(world.cluster.client.clone());
    let declared = json!({"status": {"declaredFeatures": ["DRANodeAllocatableResources"]}});
    nodes.patch_status(node, &PatchParams::default(), &Patch::Merge(declared)).await.unwrap();
    let kind = ApiResource::erase::<k8s_openapi::api::resource::v1::ResourceSlice>(&());
    let slices: Api<DynamicObject> = Api::all_with(world.cluster.client.clone(), &kind);
    let all = slices.list(&ListParams::default()).await.unwrap().items;
    let mut slice = all.into_iter().find(|slice| slice.data["spec"]["nodeName"] == node).unwrap();
    let overhead = json!({"perPod": "1Gi", "perContainer": "1Gi"});
    let takes = json!({"cpu": {"mapping": {"deviceMultiplier": "3"}}, "memory": {"overhead": overhead}});
    for device in slice.data["spec"]["devices"].as_array_mut().unwrap() {
        device["nodeAllocatableResources"] = takes.clone();
    }
    let name = slice.name_any();
    slices.replace(&name, &PostParams::default(), &slice).await.unwrap();
}

/// What the pod's status says that claims take of its node.
async fn taken_by(world: &World, pod: &str) -> Value {
    let kind = ApiResource::erase::<Pod>(&());
    let pods: Api<DynamicObject> = Api::default_namespaced_with(world.cluster.client.clone(), &kind);
    pods.get(pod).await.unwrap().data["status"]["nodeAllocatableResourceClaimStatuses"].clone()
}

pub(crate) async fn what_devices_take_of_their_node_is_stated_and_counted(floor: Floor) {
    let Some((mut world, claims)) = without_berth(floor, Driver::Nvidia, &[("gpu-1", 2)]).await else {
        return;
    };
    take_of_node(&world, "gpu-1").await;
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    world.start_berth();
    world.create(of_template("train", "gpu")).await;
    let train = world.running("train").await;
    world.create(of_template("next", "gpu")).await;
    if serves_node_resources(floor) {
        let claim = claim_of(&world, &train).await.name_any();
        let stated = json!([{"resourceClaimName": claim, "containers": ["main"],
            "mapping": [{"name": "cpu", "quantity": "3"}],
            "overhead": [{"name": "memory", "perPod": "1Gi", "perContainer": "1Gi"}]}]);
        assert_eq!(taken_by(&world, "train").await, stated);
        world.running("next").await;
        // Each of both takes 1 cpu of the node's 8 by itself, and 3 with its card.
        world.create(pod("large", &json!({"cpu": "1"}))).await;
        world.unschedulable_with("large", "0/1 nodes are available: 1 Insufficient cpu.").await;
        world.delete("train").await;
        world.running("large").await;
    } else {
        assert_eq!(taken_by(&world, "train").await, Value::Null);
        world.running("next").await;
    }
    all_are_content(&world, &claims);
}

/// As [`a_binder_that_is_killed_between_any_two_steps_gives_one_card`], for what the pod's status says of the node.
pub(crate) async fn a_binder_that_is_killed_at_the_status_of_a_pod_states_what_its_claim_takes(floor: Floor) {
    let nodes = [("gpu-1", 2), ("gpu-2", 2)];
    let Some((mut world, claims)) = without_berth(floor, Driver::Nvidia, &nodes).await else { return };
    for (node, _) in nodes {
        take_of_node(&world, node).await;
    }
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    let steps = [
        (Write::StateNodeResources, Moment::Before),
        (Write::StateNodeResources, Moment::After),
        (Write::Binding, Moment::Before),
    ];
    for (write, moment) in steps {
        let name = format!("taking-{write:?}-{moment:?}").to_lowercase();
        world.kill_berth_at(write, moment, of_template(&name, "gpu")).await;
        world.start_berth();
        let pod = world.running(&name).await;
        let claim = claim_of(&world, &pod).await;
        let stated = taken_by(&world, &name).await;
        let claims = [&stated[0]["resourceClaimName"], &stated[1]["resourceClaimName"]];
        assert_eq!(claims, [&json!(claim.name_any()), &Value::Null], "{name}");
        assert_eq!(device_of(&claim).pool, node_of(&pod), "{name}");
        world.kill_berth().await;
    }
    all_are_content(&world, &claims);
}

/// The pod's claim is on a node that has no room for the pod any more.
pub(crate) async fn a_claim_moves_with_its_pod(floor: Floor) {
    let nodes = [("gpu-1", 1), ("gpu-2", 1)];
    let Some((mut world, claims)) = without_berth(floor, Driver::Nvidia, &nodes).await else { return };
    create_claim(&world, "mine", request(Driver::Nvidia, None)).await;
    world.kill_berth_at(Write::Binding, Moment::Before, of_claim("train", "mine")).await;
    let first = device_of(&self::claims(&world).get("mine").await.unwrap()).pool;
    world.patch_node(&first, json!({"spec": {"unschedulable": true}})).await;
    world.start_berth();
    let train = world.running("train").await;
    assert_ne!(node_of(&train), first);
    assert_eq!(device_of(&claim_of(&world, &train).await).pool, node_of(&train));
    all_are_content(&world, &claims);
}

/// The binder dies before and after each write, and another goes on.
pub(crate) async fn a_binder_that_is_killed_between_any_two_steps_gives_one_card(floor: Floor) {
    let nodes = [("gpu-1", 8), ("gpu-2", 8)];
    let Some((mut world, claims)) = without_berth(floor, Driver::Nvidia, &nodes).await else { return };
    create_template(&world, "gpu", request(Driver::Nvidia, None)).await;
    for write in [Write::ProtectClaim, Write::ReserveClaim, Write::Binding] {
        for moment in [Moment::Before, Moment::After] {
            let name = format!("{write:?}-{moment:?}").to_lowercase();
            world.kill_berth_at(write, moment, of_template(&name, "gpu")).await;
            world.start_berth();
            let pod = world.pod_when(&name, |pod| matches!(phase(pod), "Running" | "Failed")).await;
            assert_eq!(phase(&pod), "Running", "{name}");
            let claim = claim_of(&world, &pod).await;
            assert_eq!(device_of(&claim).pool, node_of(&pod), "{name}");
            assert_eq!(users(&claim), [pod.name_any()], "{name}");
            world.kill_berth().await;
        }
    }
    all_are_content(&world, &claims);
}
