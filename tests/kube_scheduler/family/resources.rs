//! What pods take of a node: whole amounts, amounts finer than Kubernetes counts, and amounts that are being changed in place.

use serde_json::{Map, Value, json};

use crate::kube_scheduler::{
    dice::Dice,
    world::{World, push},
};

/// Resources beside cpu and memory, whose limit must be their request.
const EXACT: &[(&str, &[&str])] = &[("example.com/foo", &["1", "2"]), ("hugepages-2Mi", &["2Mi", "4Mi"])];

/// Small nodes, and pods that ask for whole amounts in every way that a pod has.
pub(super) fn whole(world: &mut World) {
    for node in &mut world.nodes {
        shrink(&mut world.dice, node);
    }
    for pod in &mut world.bound {
        let amounts = amounts(&mut world.dice);
        pod["spec"]["containers"][0]["resources"] = resources(&mut world.dice, &amounts);
    }
    for pod in world.chosen() {
        let mut waiting = world.waiting[pod].take();
        ask(&mut world.dice, &mut waiting);
        world.waiting[pod] = waiting;
    }
}

fn shrink(dice: &mut Dice, node: &mut Value) {
    let mut amounts = json!({
        "cpu": dice.one_of(&["1", "1500m", "2", "4"]), "memory": dice.one_of(&["1Gi", "2Gi", "3Gi"]),
        "pods": dice.one_of(&["2", "4", "8"]), "ephemeral-storage": dice.one_of(&["1Gi", "2Gi"]), "nvidia.com/gpu": "100",
    });
    if dice.in_thousand(700) {
        amounts["example.com/foo"] = json!(dice.one_of(&["0", "1", "3"]));
    }
    if dice.in_thousand(700) {
        amounts["hugepages-2Mi"] = json!(dice.one_of(&["0", "4Mi", "8Mi"]));
    }
    node["status"] = json!({"capacity": amounts, "allocatable": amounts});
}

fn amounts(dice: &mut Dice) -> Map<String, Value> {
    let mut amounts = Map::new();
    amounts.insert("cpu".to_owned(), json!(dice.one_of(&["0", "100m", "250m", "500m"])));
    if dice.in_thousand(700) {
        amounts.insert("memory".to_owned(), json!(dice.one_of(&["64Mi", "128Mi", "512Mi", "100M"])));
    }
    if dice.in_thousand(300) {
        amounts.insert("ephemeral-storage".to_owned(), json!(dice.one_of(&["256Mi", "1Gi"])));
    }
    for (name, values) in EXACT {
        if dice.in_thousand(150) {
            amounts.insert((*name).to_owned(), json!(dice.one_of(values)));
        }
    }
    amounts
}

/// The amounts as requests, as limits, or as both.
fn resources(dice: &mut Dice, amounts: &Map<String, Value>) -> Value {
    let exact: Map<_, _> = amounts
        .iter()
        .filter(|(name, _)| EXACT.iter().any(|(exact, _)| exact == name))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    match dice.below(3) {
        0 => json!({"limits": amounts}),
        1 => json!({"requests": amounts, "limits": amounts}),
        _ => json!({"requests": amounts, "limits": exact}),
    }
}

/// More containers, init containers, overhead, or requests of the pod as a whole.
fn ask(dice: &mut Dice, pod: &mut Value) {
    let asked = amounts(dice);
    let mut first = resources(dice, &asked);
    for (name, amount) in [("nvidia.com/gpu", "1"), ("nvidia.com/gpumem", "1000")] {
        first["limits"][name] = json!(amount);
        if !first["requests"].is_null() {
            first["requests"][name] = json!(amount);
        }
    }
    pod["spec"]["containers"][0]["resources"] = first;
    for (list, name) in [("containers", "second"), ("initContainers", "init"), ("initContainers", "sidecar")]
    {
        if dice.in_thousand(350) {
            let asked = amounts(dice);
            let mut container = json!({"name": name, "image": "none", "resources": resources(dice, &asked)});
            if name == "sidecar" {
                container["restartPolicy"] = json!("Always");
            }
            push(&mut pod["spec"][list], container);
        }
    }
    if dice.in_thousand(200) {
        pod["spec"]["overhead"] = json!({"cpu": "250m", "memory": "100Mi"});
    }
    if dice.in_thousand(200) {
        let (cpu, memory) = (dice.one_of(&["2", "2500m"]), dice.one_of(&["2Gi", "2500Mi"]));
        pod["spec"]["resources"] = json!({"requests": {"cpu": cpu, "memory": memory}});
    }
}

/// Nodes that can have few pods, none, or do not say how many.
pub(super) fn pod_counts(world: &mut World) {
    for node in &mut world.nodes {
        let pods = world.dice.one_of(&[None, Some("0"), Some("1"), Some("2"), Some("3")]);
        for amounts in ["capacity", "allocatable"] {
            let amounts = node["status"][amounts].as_object_mut().expect("every node has amounts");
            match pods {
                Some(pods) => amounts.insert("pods".to_owned(), json!(pods)),
                None => amounts.shift_remove("pods"),
            };
        }
    }
}

/// Pods of several containers whose amounts are finer than what is counted, and nodes that can just have them or just not.
pub(super) fn fractions(world: &mut World) {
    for node in &mut world.nodes {
        let (cpu, memory) = world.dice.one_of(&[
            ("301m", "322122547"),
            ("302m", "322122548"),
            ("303m", "322122549"),
            ("302m", "1Gi"),
            ("32", "322122548"),
        ]);
        let amounts = json!({"cpu": cpu, "memory": memory, "pods": "110", "nvidia.com/gpu": "100"});
        node["status"] = json!({"capacity": amounts, "allocatable": amounts});
    }
    for pod in &mut world.bound {
        let requests =
            if world.dice.in_thousand(100) { json!({"cpu": "1500u", "memory": "1500m"}) } else { json!({}) };
        pod["spec"]["containers"][0]["resources"]["requests"] = requests;
    }
    for pod in world.chosen() {
        let cpu = world.dice.one_of(&["100500u", "100.5m", "100m", "0.1003"]);
        let memory = world.dice.one_of(&["0.1Gi", "107374182400m", "102.4Mi", "100Mi"]);
        let requests = json!({"cpu": cpu, "memory": memory});
        let containers = &mut world.waiting[pod]["spec"]["containers"];
        containers[0]["resources"]["requests"]["cpu"] = json!(cpu);
        containers[0]["resources"]["requests"]["memory"] = json!(memory);
        for name in ["second", "third"] {
            push(containers, json!({"name": name, "image": "none", "resources": {"requests": requests}}));
        }
    }
}

/// Small nodes with pods whose status has other amounts than their spec.
pub(super) fn resized(world: &mut World) {
    world.bound.truncate(world.nodes.len());
    for node in &mut world.nodes {
        let amounts = json!({
            "cpu": world.dice.one_of(&["1", "1500m", "2"]), "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "100",
        });
        node["status"] = json!({"capacity": amounts, "allocatable": amounts});
    }
    for pod in &mut world.bound {
        let dice = &mut world.dice;
        let mut one = |of: &[&str]| json!({"requests": {"cpu": dice.one_of(of)}});
        let (spec, actuated) = (one(&["100m", "500m", "1", "1"]), one(&["100m", "500m", "1"]));
        let allocated = one(&["100m", "100m", "500m", "1"]);
        pod["spec"]["containers"][0]["resources"] = spec;
        let mut status = container_status("main");
        if dice.in_thousand(800) {
            status["resources"] = actuated;
        }
        if dice.in_thousand(800) {
            status["allocatedResources"] = allocated["requests"].clone();
        }
        pod["status"]["containerStatuses"] = json!([status]);
        if dice.in_thousand(800) {
            let reason = dice.pick(&[("Infeasible", 3), ("Deferred", 1)]);
            pod["status"]["conditions"] =
                json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
        }
        if dice.in_thousand(250) {
            let mut one = || json!({"cpu": dice.one_of(&["1", "1500m"])});
            let (spec, actuated, allocated) = (one(), one(), one());
            pod["spec"]["resources"] = json!({"requests": spec});
            pod["status"]["resources"] = json!({"requests": actuated});
            pod["status"]["allocatedResources"] = allocated;
        }
    }
    for pod in world.chosen() {
        let cpu = world.dice.one_of(&["400m", "500m", "900m"]);
        world.waiting[pod]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
    }
}

fn container_status(name: &str) -> Value {
    json!({"name": name, "image": "none", "imageID": "", "ready": true, "restartCount": 0, "state": {"running": {}}})
}
