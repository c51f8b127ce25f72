//! What a pod asks of a node's own fields: cordons, taints, labels, names.

use serde_json::{Value, json};

use crate::kube_scheduler::{
    dice::Dice,
    family::Family,
    world::{World, ZONE, push},
};

const KEYS: &[&str] = &["gpu", "dedicated"];
const VALUES: &[&str] = &["", "yes", "no"];
const EFFECTS: &[&str] = &["NoSchedule", "NoExecute", "PreferNoSchedule"];

/// Cordoned nodes, and pods of which some tolerate a cordon.
pub(super) fn cordons(world: &mut World) {
    for node in &mut world.nodes {
        if world.dice.in_thousand(400) {
            node["spec"]["unschedulable"] = json!(true);
        }
    }
    for pod in world.chosen() {
        let toleration = match world.dice.below(5) {
            0 => json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}),
            1 => json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}),
            2 => {
                json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5})
            }
            _ => continue,
        };
        push(&mut world.waiting[pod]["spec"]["tolerations"], toleration);
    }
}

/// Tainted nodes, and pods with tolerations.
pub(super) fn taints(world: &mut World) {
    let dice = &mut world.dice;
    for node in &mut world.nodes {
        for key in KEYS {
            if dice.in_thousand(500) {
                let mut taint = json!({"key": key, "effect": dice.one_of(EFFECTS)});
                if dice.in_thousand(700) {
                    taint["value"] = json!(dice.one_of(VALUES));
                }
                push(&mut node["spec"]["taints"], taint);
            }
        }
    }
    for pod in world.chosen() {
        for _ in 0..world.dice.below(4) {
            let toleration = toleration(&mut world.dice);
            push(&mut world.waiting[pod]["spec"]["tolerations"], toleration);
        }
    }
}

fn toleration(dice: &mut Dice) -> Value {
    let exists = dice.in_thousand(400);
    let mut toleration = json!({});
    if exists {
        toleration["operator"] = json!("Exists");
    } else if dice.in_thousand(500) {
        toleration["operator"] = json!("Equal");
    }
    if !exists || dice.in_thousand(800) {
        toleration["key"] = json!(dice.one_of(KEYS));
    }
    if !exists && dice.in_thousand(800) {
        toleration["value"] = json!(dice.one_of(VALUES));
    }
    if dice.in_thousand(600) {
        let effect = dice.one_of(EFFECTS);
        toleration["effect"] = json!(effect);
        if effect == "NoExecute" && dice.in_thousand(500) {
            toleration["tolerationSeconds"] = json!(60);
        }
    }
    toleration
}

/// Pods with a node selector.
pub(super) fn selectors(world: &mut World) {
    for pod in world.chosen() {
        let dice = &mut world.dice;
        let mut selector = json!({});
        match dice.below(4) {
            0 => selector["disk"] = json!(dice.one_of(&["ssd", "hdd"])),
            1 => selector["gen"] = json!(dice.one_of(&["3", "4"])),
            2 => selector[ZONE] = json!(dice.one_of(&["a", "b"])),
            _ => {
                selector["disk"] = json!("ssd");
                selector["gen"] = json!("4");
            }
        }
        world.waiting[pod]["spec"]["nodeSelector"] = selector;
    }
}

/// Pods with required node affinity: several terms, empty ones too, all operators.
pub(super) fn affinity(world: &mut World) {
    for pod in world.chosen() {
        let terms: Vec<_> = (0..=world.dice.below(3)).map(|_| term(world)).collect();
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        world.waiting[pod]["spec"]["affinity"]["nodeAffinity"][required] =
            json!({"nodeSelectorTerms": terms});
        world.asks(pod, Family::NodeAffinity);
    }
}

pub(super) fn term(world: &mut World) -> Value {
    let mut term = json!({});
    for _ in 0..world.dice.pick(&[(0, 2), (1, 5), (2, 3)]) {
        let requirement = expression(&mut world.dice);
        push(&mut term["matchExpressions"], requirement);
    }
    if world.dice.in_thousand(250) {
        let (operator, name) = (world.dice.one_of(&["In", "NotIn"]), world.any_node_name());
        let requirement = json!({"key": "metadata.name", "operator": operator, "values": [name]});
        push(&mut term["matchFields"], requirement);
    }
    term
}

fn expression(dice: &mut Dice) -> Value {
    let operator = dice.one_of(&["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]);
    let (key, values): (_, &[&str]) = match operator {
        "Gt" | "Lt" => ("gen", &["3", "4", "9", "03"]),
        _ => {
            dice.one_of(&[("disk", &["ssd", "hdd"] as &[_]), ("gen", &["3", "4", "x"]), (ZONE, &["a", "b"])])
        }
    };
    let mut requirement = json!({"key": key, "operator": operator});
    match operator {
        "Exists" | "DoesNotExist" => {}
        "Gt" | "Lt" => requirement["values"] = json!([dice.one_of(values)]),
        _ if dice.in_thousand(500) => requirement["values"] = json!([dice.one_of(values)]),
        _ => requirement["values"] = json!(values),
    }
    requirement
}
