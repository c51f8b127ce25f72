//! What pods ask beside volumes and each other's company: gates, host ports, features of the node, room that is kept for a nominated pod.

use serde_json::{Value, json};

use crate::kube_scheduler::{
    dice::Dice,
    family::Family,
    world::{World, push},
};

/// Pods that gates hold back.
pub(super) fn gates(world: &mut World) {
    for pod in world.chosen() {
        if world.dice.in_thousand(500) {
            world.waiting[pod]["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
            world.asks(pod, Family::Gates);
        }
    }
}

/// Host ports of waiting and of bound pods, from a small set.
pub(super) fn ports(world: &mut World) {
    for pod in &mut world.bound {
        if world.dice.in_thousand(500) {
            open_ports(&mut world.dice, pod);
        }
    }
    for pod in world.chosen() {
        open_ports(&mut world.dice, &mut world.waiting[pod]);
        world.asks(pod, Family::Ports);
    }
}

fn open_ports(dice: &mut Dice, pod: &mut Value) {
    let number = dice.one_of(&[8080, 8081]);
    let mut port = json!({"containerPort": number});
    if dice.in_thousand(200) {
        pod["spec"]["hostNetwork"] = json!(true);
    } else {
        port["hostPort"] = json!(number);
        if dice.in_thousand(500) {
            port["hostIP"] = json!(dice.one_of(&["0.0.0.0", "127.0.0.1", "10.0.0.1"]));
        }
    }
    if dice.in_thousand(600) {
        port["protocol"] = json!(dice.one_of(&["TCP", "UDP"]));
    }
    match dice.below(5) {
        0 => push(
            &mut pod["spec"]["initContainers"],
            json!({"name": "open", "image": "none", "restartPolicy": "Always", "ports": [port]}),
        ),
        1 => {
            push(&mut pod["spec"]["containers"], json!({"name": "open", "image": "none", "ports": [port]}));
        }
        _ => push(&mut pod["spec"]["containers"][0]["ports"], port),
    }
}

/// Nodes of which some declare a feature, and pods that need it.
pub(super) fn node_features(world: &mut World) {
    const RESTART: &str = "RestartAllContainersOnContainerExits";
    for node in &mut world.nodes {
        node["status"]["declaredFeatures"] = match world.dice.below(3) {
            0 => json!([]),
            1 => json!([RESTART]),
            _ => json!(["AnotherFeature", RESTART]),
        };
    }
    for pod in world.chosen() {
        let action = world.dice.pick(&[("RestartAllContainers", 4), ("Restart", 1)]);
        let rule = json!({"action": action, "exitCodes": {"operator": "In", "values": [42]}});
        let container = &mut world.waiting[pod]["spec"]["containers"][0];
        container["restartPolicy"] = json!("Never");
        container["restartPolicyRules"] = json!([rule]);
        if action == "RestartAllContainers" {
            world.asks(pod, Family::NodeFeatures);
        }
    }
}

/// Pods that wait for no share and are nominated to nodes with little room.
pub(super) fn nominated(world: &mut World) {
    for node in &mut world.nodes {
        let cpu = world.dice.one_of(&["3", "4", "5"]);
        node["status"]["allocatable"]["cpu"] = json!(cpu);
        node["status"]["capacity"]["cpu"] = json!(cpu);
    }
    for at in 0..2 + world.dice.below(4) {
        let node = world.any_node_name();
        let priority = world.dice.one_of(&[-5, 0, 5, 10]);
        let cpu = world.dice.one_of(&["2", "3"]);
        world.objects.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("nominated-{at}"), "namespace": "default", "uid": format!("uid-nominated-{at}")},
            "spec": {
                "priority": priority,
                "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
            },
            "status": {"phase": "Pending", "nominatedNodeName": node},
        }));
    }
    for pod in world.chosen() {
        let (priority, cpu) = (world.dice.one_of(&[0, 5]), world.dice.one_of(&["1", "2"]));
        let spec = &mut world.waiting[pod]["spec"];
        spec["priority"] = json!(priority);
        spec["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
    }
}
