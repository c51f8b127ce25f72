//! Devices that take of their nodes' own resources (KEP-5517): nodes with little left, pods that use claims in several containers or as a whole, claims
//! that hold such devices already, and bound pods whose status says what their claims take.

use serde_json::{Value, json};

use crate::kube_scheduler::{
    dice::Dice,
    family::devices::DRIVER,
    gated::{held, of_kind, use_held},
    world::{Case, push},
};

/// What a node has; a bound pod requests a tenth of a core and 64 MiB.
const NODES: &[(&str, &str)] = &[("2", "1Gi"), ("4", "2Gi"), ("8", "4Gi")];

/// Puts all of it into the cluster.
pub(super) fn put_into(case: &mut Case) {
    let mut dice = Dice::new(case.seed ^ 0x6e6f_6465_7321);
    for slice in of_kind(case, "ResourceSlice").filter(|slice| slice["spec"]["driver"] == DRIVER) {
        take(slice, &mut dice);
    }
    for node in of_kind(case, "Node") {
        let (cpu, memory) = dice.one_of(NODES);
        for amounts in ["capacity", "allocatable"] {
            node["status"][amounts]["cpu"] = json!(cpu);
            node["status"][amounts]["memory"] = json!(memory);
            node["status"][amounts]["hugepages-2Mi"] = json!(dice.pick(&[("0", 1), ("64Mi", 2)]));
        }
    }
    let held = held(case, &mut dice);
    let waiting: Vec<String> = case.waiting.keys().cloned().collect();
    for pod in of_kind(case, "Pod") {
        let name = pod["metadata"]["name"].as_str().expect("a name").to_owned();
        if waiting.contains(&name) {
            request(pod, &held, &mut dice);
        } else if dice.in_thousand(300) {
            state(pod, &mut dice);
        }
    }
}

/// What the devices of a slice take: all the same, since kube-scheduler does not look for a device that takes less.
fn take(slice: &mut Value, dice: &mut Dice) {
    let Some(devices) = slice["spec"]["devices"].as_array_mut().filter(|devices| !devices.is_empty()) else {
        return;
    };
    let is_shared = devices.iter().all(|device| device["allowMultipleAllocations"] == true);
    let mut resources = json!({});
    if dice.in_thousand(500) {
        let amount = dice.one_of(&["500m", "1", "1500m", "3"]);
        resources["cpu"]["mapping"] = json!({"deviceMultiplier": amount});
    }
    if dice.in_thousand(300) {
        resources["cpu"]["overhead"] =
            json!({"perPod": "250m", "perContainer": dice.one_of(&["100m", "700m"])});
    }
    if is_shared && dice.in_thousand(600) {
        // A hundredth of the device's memory, which is some gibibytes.
        let mapping = json!({"capacityKey": "memory", "capacityMultiplier": dice.one_of(&["10m", "20m"])});
        resources["memory"]["mapping"] = mapping;
    }
    if dice.in_thousand(400) {
        let field = dice.one_of(&["perPod", "perContainer"]);
        resources["memory"]["overhead"] = json!({field: dice.one_of(&["100Mi", "600Mi"])});
    }
    if dice.in_thousand(200) {
        resources["hugepages-2Mi"]["overhead"] = json!({"perPod": dice.one_of(&["32Mi", "64Mi", "66Mi"])});
    }
    if resources != json!({}) {
        for device in devices {
            device["nodeAllocatableResources"] = resources.clone();
        }
    }
}

/// A pod that requests something beside its claims, uses one of these that hold devices, and has several containers.
fn request(pod: &mut Value, held: &[String], dice: &mut Dice) {
    use_held(pod, held, dice);
    let entries: Vec<String> = pod["spec"]["resourceClaims"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| entry["name"].as_str().expect("a name").to_owned())
        .collect();
    let amounts = json!({"cpu": dice.one_of(&["100m", "900m"]), "memory": dice.one_of(&["32Mi", "200Mi"])});
    pod["spec"]["containers"][0]["resources"]["requests"] = amounts.clone();
    if dice.in_thousand(300) {
        pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(dice.one_of(&["900m", "2"]));
    }
    for (list, name) in [("containers", "more"), ("initContainers", "first")] {
        if !dice.in_thousand(400) || entries.is_empty() {
            continue;
        }
        let used: Vec<Value> =
            entries.iter().filter(|_| dice.in_thousand(700)).map(|entry| json!({"name": entry})).collect();
        let resources = json!({"requests": amounts, "claims": used});
        push(&mut pod["spec"][list], json!({"name": name, "image": "none", "resources": resources}));
    }
    if dice.in_thousand(250) {
        let cpu = dice.one_of(&["2", "3", "5"]);
        pod["spec"]["resources"] = json!({"requests": {"cpu": cpu}, "limits": {"cpu": cpu}});
    }
}

/// A bound pod whose status says what a claim takes.
fn state(pod: &mut Value, dice: &mut Dice) {
    push(&mut pod["spec"]["resourceClaims"], json!({"name": "own", "resourceClaimName": "own"}));
    let containers: &[&str] = dice.pick(&[(&["main"] as &[&str], 2), (&[], 1)]);
    pod["status"]["nodeAllocatableResourceClaimStatuses"] = json!([{
        "resourceClaimName": "own", "containers": containers,
        "mapping": [{"name": "cpu", "quantity": dice.one_of(&["500m", "1", "2"])}],
        "overhead": [{"name": "memory", "perPod": "100Mi", "perContainer": dice.one_of(&["1Mi", "300Mi"])}],
    }]);
    if !containers.is_empty() {
        push(&mut pod["spec"]["containers"][0]["resources"]["claims"], json!({"name": "own"}));
    }
}
