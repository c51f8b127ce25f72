//! What moves the scores of nodes and rejects none.

use serde_json::{Value, json};

use super::{
    nodes,
    spread::{TOPOLOGIES, constraint_of, term},
};
use crate::kube_scheduler::{
    dice::Dice,
    world::{NAMESPACES, World, push},
};

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const KINDS: &[&str] = &["podAffinity", "podAntiAffinity"];

/// Pods with preferred node affinity: several terms, empty ones too, all operators.
pub(super) fn nodes(world: &mut World) {
    for pod in world.chosen() {
        for _ in 0..=world.dice.below(3) {
            let weight = 1 + world.dice.below(100);
            let preferred = json!({"weight": weight, "preference": nodes::term(world)});
            push(&mut world.waiting[pod]["spec"]["affinity"]["nodeAffinity"][PREFERRED], preferred);
        }
    }
}

/// Nodes with taints that keep no pod off, and pods of which some tolerate some.
pub(super) fn taints(world: &mut World) {
    let dice = &mut world.dice;
    for node in &mut world.nodes {
        for key in ["slow", "old", "loud", "far"] {
            if dice.in_thousand(400) {
                push(&mut node["spec"]["taints"], json!({"key": key, "effect": "PreferNoSchedule"}));
            }
        }
    }
    for pod in world.chosen() {
        for key in ["slow", "old"] {
            let effect = world.dice.one_of(&["", "PreferNoSchedule", "NoSchedule"]);
            if world.dice.in_thousand(300) {
                let toleration = json!({"key": key, "operator": "Exists", "effect": effect});
                push(&mut world.waiting[pod]["spec"]["tolerations"], toleration);
            }
        }
    }
}

/// Spread constraints with `ScheduleAnyway`, on a cluster with pods that are being deleted.
pub(super) fn spread(world: &mut World) {
    for pod in &mut world.bound {
        if world.dice.in_thousand(100) {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
    }
    for pod in world.chosen() {
        let mut topologies = TOPOLOGIES.to_vec();
        for _ in 0..=world.dice.below(2) {
            let at = usize::try_from(world.dice.below(topologies.len() as u64)).expect("it is below 3");
            let topology = topologies.swap_remove(at);
            let constraints = &mut world.waiting[pod]["spec"]["topologySpreadConstraints"];
            let has =
                |one: &Value| one["topologyKey"] == topology && one["whenUnsatisfiable"] == "ScheduleAnyway";
            if !constraints.as_array().is_some_and(|constraints| constraints.iter().any(has)) {
                push(constraints, constraint_of(&mut world.dice, topology, "ScheduleAnyway"));
            }
        }
    }
}

/// Services of every namespace, and controllers that waiting pods name as their owners: of each kind, some that are not there, some
/// of another group, some that own without control.
pub(super) fn default_spread(world: &mut World) {
    for (namespace, _) in NAMESPACES {
        for at in 0..world.dice.below(4) {
            let selector = match world.dice.below(5) {
                0 => json!({"app": "web", "tier": world.dice.one_of(&["x", "y"])}),
                1 => json!({"tier": world.dice.one_of(&["x", "y"])}),
                2 => json!(null),
                _ => json!({"app": world.dice.one_of(&["web", "db"])}),
            };
            world.add(json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": format!("s{at}"), "namespace": namespace},
                "spec": {"selector": selector, "ports": [{"port": 80}]},
            }));
        }
    }
    for pod in world.chosen() {
        if world.dice.in_thousand(250) {
            continue;
        }
        let (kind, group) = world.dice.one_of(CONTROLLERS);
        let (namespace, name) = (world.namespace(pod), format!("{}-{pod}", kind.to_lowercase()));
        let app = world.waiting[pod]["metadata"]["labels"]["app"].clone();
        if world.dice.in_thousand(850) {
            let controller = controller(&mut world.dice, (kind, group), &namespace, &name, &app);
            world.add(controller);
        }
        let group = if world.dice.in_thousand(100) { "example.com/v1" } else { group };
        let owner = json!({
            "apiVersion": group, "kind": kind, "name": name, "uid": format!("uid-{name}"),
            "controller": world.dice.in_thousand(850),
        });
        push(&mut world.waiting[pod]["metadata"]["ownerReferences"], owner);
    }
}

const CONTROLLERS: &[(&str, &str)] =
    &[("ReplicationController", "v1"), ("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1")];

/// A controller whose pods have this label `app`, or one that they no longer have.
fn controller(
    dice: &mut Dice,
    (kind, group): (&str, &str),
    namespace: &str,
    name: &str,
    app: &Value,
) -> Value {
    let app = if dice.in_thousand(100) { &json!("web") } else { app };
    let tier = dice.one_of(&["x", "y"]);
    let mut labels = json!({"app": app});
    let selector = if kind == "ReplicationController" {
        labels.clone()
    } else if dice.in_thousand(400) {
        labels["tier"] = json!(tier);
        json!({"matchLabels": {"app": app}, "matchExpressions": [
            {"key": "tier", "operator": dice.one_of(&["In", "Exists"]), "values": [tier]}]})
    } else {
        json!({"matchLabels": labels})
    };
    let mut controller = json!({
        "apiVersion": group, "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}")},
        "spec": {"selector": selector, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}},
    });
    if let Some(expression) = controller["spec"]["selector"]["matchExpressions"].get_mut(0)
        && expression["operator"] == "Exists"
    {
        expression["values"] = json!([]);
    }
    if kind == "StatefulSet" {
        controller["spec"]["serviceName"] = json!("none");
    }
    controller
}

/// Preferred affinity and anti-affinity of waiting and bound pods, and required affinity of bound ones.
pub(super) fn pods(world: &mut World) {
    for pod in world.chosen() {
        for _ in 0..world.dice.below(4) {
            let kind = world.dice.one_of(KINDS);
            let weighted =
                json!({"weight": 1 + world.dice.below(100), "podAffinityTerm": term(&mut world.dice)});
            push(&mut world.waiting[pod]["spec"]["affinity"][kind][PREFERRED], weighted);
        }
    }
    for pod in &mut world.bound {
        if world.dice.in_thousand(300) {
            let kind = world.dice.one_of(KINDS);
            let weighted =
                json!({"weight": 1 + world.dice.below(100), "podAffinityTerm": term(&mut world.dice)});
            push(&mut pod["spec"]["affinity"][kind][PREFERRED], weighted);
        }
        if world.dice.in_thousand(150) {
            let required = term(&mut world.dice);
            push(&mut pod["spec"]["affinity"]["podAffinity"][REQUIRED], required);
        }
    }
}

/// Nodes and pods of uneven shapes, with room for all.
pub(super) fn balance(world: &mut World) {
    for node in &mut world.nodes {
        let (cpu, memory) =
            (world.dice.one_of(&["16", "24", "32"]), world.dice.one_of(&["16Gi", "48Gi", "200Gi"]));
        for amounts in ["capacity", "allocatable"] {
            node["status"][amounts]["cpu"] = json!(cpu);
            node["status"][amounts]["memory"] = json!(memory);
        }
    }
    for pod in &mut world.bound {
        let requests = json!({
            "cpu": world.dice.one_of(&["0", "250m", "1"]), "memory": world.dice.one_of(&["0", "100M", "1Gi"]),
        });
        pod["spec"]["containers"][0]["resources"]["requests"] = requests;
    }
    for pod in world.chosen() {
        let resources = &mut world.waiting[pod]["spec"]["containers"][0]["resources"];
        resources["requests"]["cpu"] = json!(world.dice.one_of(&["100m", "3", "9"]));
        if world.dice.in_thousand(700) {
            resources["requests"]["memory"] = json!(world.dice.one_of(&["500M", "3Gi", "9Gi"]));
        }
    }
}

/// Images by name, with the size in MB: names with and without a tag, with a registry's port, with a digest.
const IMAGES: &[(&str, u64)] = &[
    ("cuda:latest", 4000),
    ("registry.example.com:5000/torch:latest", 1500),
    ("registry.example.com:5000/torch:2", 1700),
    ("tools:1", 20),
    ("tools@sha256:1111111111111111111111111111111111111111111111111111111111111111", 300),
];
/// Names under which pods ask for these and for others.
const ASKED: &[&str] = &[
    "cuda",
    "cuda:latest",
    "registry.example.com:5000/torch",
    "registry.example.com:5000/torch:2",
    "tools:1",
    "tools@sha256:1111111111111111111111111111111111111111111111111111111111111111",
    "absent",
];

/// Nodes that have images, and pods whose containers, init containers and volumes ask for some.
pub(super) fn images(world: &mut World) {
    for node in &mut world.nodes {
        for (name, size) in IMAGES {
            if world.dice.in_thousand(450) {
                let image = json!({"names": [name, format!("mirror/{name}")], "sizeBytes": size * 1_000_000});
                push(&mut node["status"]["images"], image);
            }
        }
    }
    for pod in world.chosen() {
        let spec = &mut world.waiting[pod]["spec"];
        spec["containers"][0]["image"] = json!(world.dice.one_of(ASKED));
        for at in 0..world.dice.below(3) {
            let container = json!({"name": format!("with-image-{at}"), "image": world.dice.one_of(ASKED)});
            push(&mut spec["containers"], container);
        }
        if world.dice.in_thousand(400) {
            let mut init = json!({"name": "init-image", "image": world.dice.one_of(ASKED)});
            if world.dice.in_thousand(500) {
                init["restartPolicy"] = json!("Always");
            }
            push(&mut spec["initContainers"], init);
        }
        if world.dice.in_thousand(400) {
            let reference = world.dice.one_of(ASKED);
            push(&mut spec["volumes"], json!({"name": "files", "image": {"reference": reference}}));
        }
    }
}
