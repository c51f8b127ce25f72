//! Constraints that depend on where other pods are: topology spread, affinity and anti-affinity.

use serde_json::{Value, json};

use crate::kube_scheduler::{
    dice::Dice,
    family::Family,
    world::{HOSTNAME, RACK, World, ZONE, push},
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
pub(super) const TOPOLOGIES: &[&str] = &[ZONE, HOSTNAME, RACK];

/// Spread constraints of every shape, on a cluster with pods that are being deleted.
pub(super) fn spread(world: &mut World) {
    for pod in &mut world.bound {
        if world.dice.in_thousand(100) {
            pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            pod["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        }
    }
    if world.dice.in_thousand(300) {
        for node in &mut world.nodes {
            if world.dice.in_thousand(300) {
                push(&mut node["spec"]["taints"], json!({"key": "spread", "effect": "NoSchedule"}));
            }
        }
    }
    for pod in world.chosen() {
        let mut topologies = TOPOLOGIES.to_vec();
        for _ in 0..=world.dice.below(2) {
            let at = usize::try_from(world.dice.below(topologies.len() as u64)).expect("it is below 3");
            let constraint = constraint(&mut world.dice, topologies.swap_remove(at));
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" {
                world.asks(pod, Family::Spread);
            }
            push(&mut world.waiting[pod]["spec"]["topologySpreadConstraints"], constraint);
        }
        if world.dice.in_thousand(300) {
            let zone = world.dice.one_of(&["a", "b"]);
            world.waiting[pod]["spec"]["nodeSelector"][ZONE] = json!(zone);
        }
    }
}

/// Leaves no spread constraint that selects every pod. kube-scheduler counts no pod for such a constraint (`countPodsMatchSelector`), but
/// counts pods that are nominated to a node for it (`updateWithPod`). Berth counts none, so that both would differ.
pub(crate) fn select_some(world: &mut World) {
    for pod in &mut world.waiting {
        for constraint in pod["spec"]["topologySpreadConstraints"].as_array_mut().into_iter().flatten() {
            if constraint["labelSelector"] == json!({}) {
                constraint["labelSelector"] = json!({"matchLabels": {"app": "web"}});
            }
        }
    }
}

fn constraint(dice: &mut Dice, topology: &str) -> Value {
    let hard = dice.in_thousand(850);
    constraint_of(dice, topology, if hard { "DoNotSchedule" } else { "ScheduleAnyway" })
}

/// A constraint of any shape, for a pod that can't be placed as it wants.
pub(super) fn constraint_of(dice: &mut Dice, topology: &str, unsatisfiable: &str) -> Value {
    let hard = unsatisfiable == "DoNotSchedule";
    let mut constraint = json!({
        "maxSkew": 1 + dice.below(2), "topologyKey": topology,
        "whenUnsatisfiable": unsatisfiable,
    });
    if dice.in_thousand(900) {
        constraint["labelSelector"] = selector(dice);
        if dice.in_thousand(300) {
            constraint["matchLabelKeys"] = json!(["tier"]);
        }
    }
    if hard && dice.in_thousand(300) {
        constraint["minDomains"] = json!(1 + dice.below(4));
    }
    for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
        if dice.in_thousand(400) {
            constraint[policy] = json!(dice.one_of(&["Honor", "Ignore"]));
        }
    }
    constraint
}

/// A selector of pods by `app`, which leaves `tier` to label keys.
fn selector(dice: &mut Dice) -> Value {
    let app = dice.one_of(&["web", "db"]);
    match dice.below(5) {
        0 => json!({}),
        1 => json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app]}]}),
        2 => json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
        _ => json!({"matchLabels": {"app": app}}),
    }
}

pub(super) fn term(dice: &mut Dice) -> Value {
    let mut term = json!({"topologyKey": dice.one_of(TOPOLOGIES)});
    if dice.in_thousand(950) {
        term["labelSelector"] = selector(dice);
        if dice.in_thousand(350) {
            term[dice.one_of(&["matchLabelKeys", "mismatchLabelKeys"])] = json!(["tier"]);
        }
    }
    match dice.below(6) {
        0 => term["namespaces"] = json!(["team-a"]),
        1 => term["namespaceSelector"] = json!({}),
        2 => term["namespaceSelector"] = json!({"matchLabels": {"team": "a"}}),
        3 => {
            term["namespaces"] = json!(["default"]);
            term["namespaceSelector"] = json!({"matchLabels": {"team": dice.one_of(&["b", "absent"])}});
        }
        _ => {}
    }
    term
}

/// Required affinity of waiting pods; some are the first pod of their group.
pub(super) fn affinity(world: &mut World) {
    if world.dice.in_thousand(300) {
        world.bound.truncate(2);
    }
    between(world, "podAffinity", Family::PodAffinity);
}

/// Required anti-affinity of waiting pods.
pub(super) fn anti_affinity(world: &mut World) {
    if world.dice.in_thousand(700) {
        world.bound.truncate(5);
    }
    between(world, "podAntiAffinity", Family::PodAntiAffinity);
}

fn between(world: &mut World, kind: &str, family: Family) {
    for pod in world.chosen() {
        for _ in 0..world.dice.pick(&[(1, 3), (2, 1)]) {
            let term = term(&mut world.dice);
            push(&mut world.waiting[pod]["spec"]["affinity"][kind][REQUIRED], term);
        }
        world.asks(pod, family);
    }
}

/// Required anti-affinity of bound pods.
pub(super) fn shunned_by_others(world: &mut World) {
    for pod in &mut world.bound {
        if world.dice.in_thousand(200) {
            let term = term(&mut world.dice);
            push(&mut pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED], term);
        }
    }
}
