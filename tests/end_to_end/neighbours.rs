//! Pods whose place depends on other pods: where they go, what is said while they wait, and which change ends the wait.

use std::{collections::BTreeSet, fmt::Debug};

use berth_sandbox::agent::node::Node;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1 as apps, core::v1 as core},
};
use kube::{
    Api, Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    deaths::{Moment, Write},
    machines::hami_node,
    support::floor::Floor,
    world::{World, node_of, phase, pod},
};

fn zoned(name: &str, zone: &str) -> Node {
    hami_node(name, 2).label("zone", zone)
}

fn two_zones() -> Vec<Node> {
    vec![zoned("gpu-1", "a"), zoned("gpu-2", "b")]
}

/// A pod with a small share and this label.
fn share(name: &str, app: &str) -> Value {
    let mut pod = pod(name, &json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1000"}));
    pod["metadata"]["labels"] = json!({"app": app});
    pod
}

/// Creates an object of a kind that lives in namespaces.
async fn add<T>(world: &World, object: Value)
where
    T: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let objects: Api<T> = Api::default_namespaced(world.cluster.client.clone());
    objects.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Binds a pod of another scheduler by hand and returns once it runs.
async fn run_on(world: &World, namespace: &str, pod: Value, node: &str) {
    let pods: Api<core::Pod> = Api::namespaced(world.cluster.client.clone(), namespace);
    let mut pod: core::Pod = serde_json::from_value(pod).unwrap();
    let name = pod.metadata.name.clone().unwrap();
    pod.spec.as_mut().unwrap().scheduler_name = Some("by-hand".to_owned());
    pods.create(&PostParams::default(), &pod).await.unwrap();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
    let _: Value = pods.create_subresource("binding", &name, &PostParams::default(), &binding).await.unwrap();
}

async fn label_namespace(world: &World, name: &str, labels: Value) {
    let namespaces: Api<core::Namespace> = Api::all(world.cluster.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    namespaces.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

pub(crate) async fn a_pod_of_another_namespace_keeps_shares_away_until_it_is_gone(floor: Floor) {
    let Some(mut world) = World::without_berth(floor, two_zones()).await else { return };
    let namespaces: Api<core::Namespace> = Api::all(world.cluster.client.clone());
    let infra = serde_json::from_value(json!({"metadata": {"name": "infra"}})).unwrap();
    namespaces.create(&PostParams::default(), &infra).await.unwrap();
    label_namespace(&world, "default", json!({"noisy": "yes"})).await;
    for (name, node) in [("db-1", "gpu-1"), ("db-2", "gpu-2")] {
        let mut quiet = pod(name, &json!({}));
        let term = json!([{"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": "zone",
            "namespaceSelector": {"matchLabels": {"noisy": "yes"}}}]);
        quiet["spec"]["affinity"] =
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
        run_on(&world, "infra", quiet, node).await;
    }
    world.start_berth();
    world.create(share("train", "train")).await;
    let kept_away = "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules.";
    assert_eq!(world.unschedulable("train").await, kept_away);
    world.create(share("other", "other")).await;
    world.running("other").await;
    let infra: Api<core::Pod> = Api::namespaced(world.cluster.client.clone(), "infra");
    infra.delete("db-2", &DeleteParams::default()).await.unwrap();
    assert_eq!(node_of(&world.running("train").await), "gpu-2");
    world.create(share("again", "train")).await;
    assert_eq!(node_of(&world.running("again").await), "gpu-2");
    world.agents_are_content();
}

fn web(name: &str) -> Value {
    let mut pod = share(name, "web");
    pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}]);
    pod
}

pub(crate) async fn pods_are_spread_over_zones_and_the_next_waits_for_the_emptier_one(floor: Floor) {
    let Some(world) = World::start(floor, two_zones()).await else { return };
    for name in ["web-0", "web-1"] {
        world.create(web(name)).await;
    }
    let (first, second) = (world.running("web-0").await, world.running("web-1").await);
    assert_ne!(node_of(&first), node_of(&second));
    world.patch_node("gpu-2", json!({"spec": {"unschedulable": true}})).await;
    world.create(web("web-2")).await;
    assert_eq!(node_of(&world.running("web-2").await), "gpu-1");
    world.create(web("web-3")).await;
    let skewed = "0/2 nodes are available: 1 node(s) didn't match pod topology spread constraints, \
                  1 node(s) were unschedulable.";
    assert_eq!(world.unschedulable("web-3").await, skewed);
    world.patch_node("gpu-2", json!({"spec": {"unschedulable": null}})).await;
    assert_eq!(node_of(&world.running("web-3").await), "gpu-2");
    world.agents_are_content();
}

fn with_port(mut pod: Value, port: u16) -> Value {
    pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": port, "hostPort": port}]);
    pod
}

pub(crate) async fn a_pod_waits_until_the_port_of_a_node_is_free(floor: Floor) {
    let Some(world) = World::start(floor, vec![hami_node("gpu-1", 2)]).await else { return };
    run_on(&world, "default", with_port(pod("proxy", &json!({})), 8080), "gpu-1").await;
    world.running("proxy").await;
    world.create(with_port(share("web", "web"), 8080)).await;
    let taken = "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports.";
    assert_eq!(world.unschedulable("web").await, taken);
    world.create(with_port(share("beside", "web"), 8081)).await;
    world.running("beside").await;
    world.delete("proxy").await;
    world.running("web").await;
    world.agents_are_content();
}

/// A pod that shares its zone with no pod of its kind.
fn lonely(name: &str) -> Value {
    let mut pod = share(name, "lonely");
    let term = json!([{"labelSelector": {"matchLabels": {"app": "lonely"}}, "topologyKey": "zone"}]);
    pod["spec"]["affinity"] =
        json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
    pod
}

fn on_one_port(name: &str) -> Value {
    with_port(share(name, "port"), 8080)
}

/// The binder dies before and after each write, and another goes on: of each kind, every zone gets one pod.
pub(crate) async fn a_binder_that_is_killed_between_any_two_steps_keeps_pods_apart(floor: Floor) {
    let nodes = ["a", "b", "c", "d"].map(|zone| zoned(&format!("gpu-{zone}"), zone));
    let Some(mut world) = World::without_berth(floor, nodes.into()).await else { return };
    for (kind, pod) in [("lonely", lonely as fn(&str) -> Value), ("web", web), ("port", on_one_port)] {
        let mut taken = BTreeSet::new();
        for write in [Write::Lock, Write::Binding] {
            for moment in [Moment::Before, Moment::After] {
                let name = format!("{kind}-{write:?}-{moment:?}").to_lowercase();
                world.kill_berth_at(write, moment, pod(&name)).await;
                world.start_berth();
                let pod = world.pod_when(&name, |pod| matches!(phase(pod), "Running" | "Failed")).await;
                assert_eq!(phase(&pod), "Running", "{name}");
                assert!(taken.insert(node_of(&pod).to_owned()), "{name} is on {}", node_of(&pod));
                world.kill_berth().await;
            }
        }
    }
    world.agents_are_content();
}

/// The nodes of pods that are created one after the other until they are on two nodes; of many pods where they never are.
async fn nodes_of_pods(world: &World, app: &str, owner: Option<(&str, &str)>) -> BTreeSet<String> {
    let mut nodes = BTreeSet::new();
    for at in 0..5 {
        let name = format!("{app}-{at}");
        let mut pod = share(&name, app);
        if let Some((version, kind)) = owner {
            pod["metadata"]["ownerReferences"] =
                json!([{"apiVersion": version, "kind": kind, "name": app, "uid": app, "controller": true}]);
        }
        world.create(pod).await;
        nodes.insert(node_of(&world.running(&name).await).to_owned());
        if nodes.len() > 1 {
            break;
        }
    }
    nodes
}

pub(crate) async fn pods_of_a_service_or_a_controller_are_spread_by_default(floor: Floor) {
    let host = |name: &str| hami_node(name, 2).label("kubernetes.io/hostname", name);
    let Some(world) = World::start(floor, vec![host("gpu-1"), host("gpu-2")]).await else { return };
    assert_eq!(nodes_of_pods(&world, "plain", None).await.len(), 1, "pods that nothing selects are packed");
    let named = |app: &str, spec: Value| json!({"metadata": {"name": app}, "spec": spec});
    let controller = |app: &str, selector: Value| {
        let template = json!({"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "main", "image": "none"}]}});
        named(app, json!({"replicas": 5, "selector": selector, "serviceName": app, "template": template}))
    };
    let labels = |app: &str| json!({"app": app});
    let matching = |app: &str| json!({"matchLabels": labels(app)});
    let service = json!({"selector": labels("served"), "ports": [{"port": 80}]});
    add::<core::Service>(&world, named("served", service)).await;
    add::<core::ReplicationController>(&world, controller("old", labels("old"))).await;
    add::<apps::ReplicaSet>(&world, controller("deployed", matching("deployed"))).await;
    add::<apps::StatefulSet>(&world, controller("stateful", matching("stateful"))).await;
    for (app, owner) in [
        ("served", None),
        ("old", Some(("v1", "ReplicationController"))),
        ("deployed", Some(("apps/v1", "ReplicaSet"))),
        ("stateful", Some(("apps/v1", "StatefulSet"))),
    ] {
        assert_eq!(nodes_of_pods(&world, app, owner).await.len(), 2, "{app}");
    }
    world.agents_are_content();
}
