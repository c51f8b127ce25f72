//! Claims of devices: what drivers publish on nodes and beside them, what claims ask for, and what others hold.

use serde_json::{Value, json};

use crate::kube_scheduler::{
    family::Family,
    world::{World, ZONE, push},
};

pub(crate) const DRIVER: &str = "gpu.example.com";
/// The driver of devices that several nodes can reach.
pub(crate) const FABRIC: &str = "fabric.example.com";
/// The counters of a card whose devices are parts of it.
const SET: &str = "card";

/// What a cluster has or its claims ask for, since kube-scheduler 1.36 answers both together otherwise than its documentation.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Side {
    /// Pools of which slices are missing. A request for all devices fails on every node for the pool of one.
    Incomplete,
    /// Requests for all devices.
    All,
}

/// Classes, slices, claims that hold devices, and claims of waiting pods.
pub(super) fn claims(world: &mut World) {
    if has_classes(world) {
        return;
    }
    world.objects.push(class("gpu", &format!("device.driver == '{DRIVER}'")));
    let big = format!("device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].model == 'big'");
    world.objects.push(class("big", &big));
    world.objects.push(class("fabric", &format!("device.driver == '{FABRIC}'")));
    let side = if world.dice.in_thousand(300) { Side::Incomplete } else { Side::All };
    let devices = publish(world, side);
    hold(world, &devices);
    for pod in world.chosen() {
        for at in 0..world.dice.pick(&[(1, 3), (2, 1)]) {
            let (name, namespace) = (format!("devices-{pod}-{at}"), world.namespace(pod));
            let spec = spec(world, side);
            world.objects.push(claim(&name, &namespace, &spec, &json!({})));
            use_claim(&mut world.waiting[pod], &name);
        }
        world.asks(pod, Family::DeviceClaims);
    }
}

/// Resources for which classes stand, the last of which only by the name of its class.
const EXTENDED: &[&str] =
    &["example.com/gpu", "example.com/link", "example.com/none", "deviceclass.resource.kubernetes.io/big"];

/// Classes that stand for resources, nodes with and without a device plugin for these, and pods whose containers ask for some.
pub(super) fn extended_resources(world: &mut World) {
    if has_classes(world) {
        return;
    }
    stand(world);
    let devices = publish(world, Side::All);
    hold(world, &devices);
    provide(world);
    for pod in world.chosen() {
        let amounts = asked(world);
        let limits = &mut world.waiting[pod]["spec"]["containers"][0]["resources"]["limits"];
        for (resource, amount) in amounts.as_object().expect("amounts") {
            limits[resource] = amount.clone();
        }
        for (list, name) in [("containers", "more"), ("initContainers", "first"), ("initContainers", "next")]
        {
            if !world.dice.in_thousand(350) {
                continue;
            }
            let amounts = asked(world);
            let resources = json!({"limits": amounts, "requests": amounts});
            let mut container = json!({"name": name, "image": "none", "resources": resources});
            if name == "next" && world.dice.in_thousand(500) {
                container["restartPolicy"] = json!("Always");
            }
            push(&mut world.waiting[pod]["spec"][list], container);
        }
        world.asks(pod, Family::ExtendedResources);
    }
}

/// Whether the other of the two families has published devices already: both give their objects the same names.
fn has_classes(world: &World) -> bool {
    world.objects.iter().any(|object| object["kind"] == "DeviceClass")
}

/// Classes, of which the newest of a resource stands for it.
fn stand(world: &mut World) {
    let big = format!("device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].model == 'big'");
    let (any, fabric) = (format!("device.driver == '{DRIVER}'"), format!("device.driver == '{FABRIC}'"));
    for (name, day, expression, resource) in [
        ("gpu", 1, &big, Some(EXTENDED[0])),
        ("gpu-new", 2, &any, Some(EXTENDED[0])),
        ("gpu-twin", 2, &big, Some(EXTENDED[0])),
        ("big", 1, &big, None),
        ("fabric", 1, &fabric, Some(EXTENDED[1])),
    ] {
        let mut class = class(name, expression);
        class["metadata"]["creationTimestamp"] = json!(format!("2026-01-0{day}T00:00:00Z"));
        class["spec"]["extendedResourceName"] = json!(resource);
        world.objects.push(class);
    }
}

/// Nodes whose device plugins provide some of the resources, or say that they have none.
fn provide(world: &mut World) {
    for at in 0..world.nodes.len() {
        for resource in &EXTENDED[..3] {
            let amount = world.dice.pick(&[(None, 6), (Some("0"), 2), (Some("1"), 1), (Some("4"), 1)]);
            let Some(amount) = amount else { continue };
            for amounts in ["capacity", "allocatable"] {
                world.nodes[at]["status"][amounts][*resource] = json!(amount);
            }
        }
    }
}

fn asked(world: &mut World) -> Value {
    let mut amounts = json!({});
    for _ in 0..world.dice.pick(&[(1, 4), (2, 1)]) {
        let resources = [(EXTENDED[0], 6), (EXTENDED[1], 1), (EXTENDED[2], 1), (EXTENDED[3], 3)];
        let resource = world.dice.pick(&resources);
        amounts[resource] = json!(world.dice.one_of(&["1", "2", "3"]));
    }
    amounts
}

fn class(name: &str, expression: &str) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]}})
}

fn claim(name: &str, namespace: &str, spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{namespace}-{name}")},
        "spec": spec, "status": status})
}

fn use_claim(pod: &mut Value, claim: &str) {
    push(&mut pod["spec"]["resourceClaims"], json!({"name": claim, "resourceClaimName": claim}));
    let resources = &mut pod["spec"]["containers"][0]["resources"];
    push(&mut resources["claims"], json!({"name": claim}));
}

/// Publishes devices of nodes, and of a pool that the nodes of a zone or all nodes reach. Returns the node's devices as pool, name and whether they are
/// shared.
fn publish(world: &mut World, side: Side) -> Vec<(String, String, bool)> {
    let mut published = Vec::new();
    let names: Vec<String> = world
        .nodes
        .iter()
        .map(|node| node["metadata"]["name"].as_str().expect("a name").to_owned())
        .collect();
    for node in names {
        let count = world.dice.pick(&[(0, 2), (1, 3), (2, 3), (4, 2)]);
        let shared = world.dice.in_thousand(300);
        let mut devices: Vec<Value> = (0..count).map(|at| device(world, at, shared)).collect();
        for device in &devices {
            let name = device["name"].as_str().expect("a name").to_owned();
            published.push((node.clone(), name, shared));
        }
        // A pool of which a slice is missing gives nothing.
        let missing = world.dice.in_thousand(300) && side == Side::Incomplete;
        let parts = world.dice.in_thousand(300);
        let slices = 1 + u64::from(parts) + u64::from(missing);
        if parts {
            for device in &mut devices {
                device["consumesCounters"] = consumed(world);
            }
            let mut counters = slice(DRIVER, &node, slices, &json!({"nodeName": node}), &[]);
            counters["metadata"]["name"] = json!(format!("{node}-{DRIVER}-counters"));
            counters["spec"]["sharedCounters"] =
                json!([{"name": SET, "counters": {"parts": {"value": "3"}}}]);
            world.objects.push(counters);
        }
        world.objects.push(slice(DRIVER, &node, slices, &json!({"nodeName": node}), &devices));
    }
    let zone = json!({"key": ZONE, "operator": "In", "values": ["a", "b"]});
    let reach = if world.dice.below(3) == 0 {
        json!({"allNodes": true})
    } else {
        json!({"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}})
    };
    let devices: Vec<Value> =
        (0..world.dice.below(3)).map(|at| json!({"name": format!("link-{at}")})).collect();
    world.objects.push(slice(FABRIC, "fabric", 1, &reach, &devices));
    published
}

/// What a part of a card takes of the card.
fn consumed(world: &mut World) -> Value {
    let parts = world.dice.pick(&[("1", 2), ("2", 1)]);
    json!([{"counterSet": SET, "counters": {"parts": {"value": parts}}}])
}

fn slice(driver: &str, pool: &str, slices: u64, reach: &Value, devices: &[Value]) -> Value {
    let mut slice = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
        "metadata": {"name": format!("{pool}-{driver}")},
        "spec": {"driver": driver, "devices": devices,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": slices}}});
    for (field, value) in reach.as_object().expect("fields") {
        slice["spec"][field] = value.clone();
    }
    slice
}

fn device(world: &mut World, at: u64, shared: bool) -> Value {
    let model = world.dice.pick(&[("big", 1), ("small", 2)]);
    let mut device = json!({
        "name": format!("gpu-{at}"),
        "attributes": {"model": {"string": model}, "minor": {"int": at}, "switch": {"int": at / 2}},
        "capacity": {"memory": {"value": world.dice.pick(&[("40Gi", 1), ("80Gi", 1)])}},
    });
    if shared {
        device["allowMultipleAllocations"] = json!(true);
        device["capacity"]["memory"]["requestPolicy"] =
            json!({"default": "10Gi", "validRange": {"min": "1Gi", "step": "1Gi"}});
    }
    if world.dice.in_thousand(150) {
        device["taints"] = json!([{"key": "broken", "effect": "NoSchedule"}]);
    }
    device
}

/// Claims that hold devices already, each with a pod as its user.
fn hold(world: &mut World, devices: &[(String, String, bool)]) {
    for (at, (pool, device, shared)) in devices.iter().enumerate() {
        if !world.dice.in_thousand(250) {
            continue;
        }
        let mut result = json!({"request": "r", "driver": DRIVER, "pool": pool, "device": device});
        if *shared {
            result["shareID"] = json!(format!("00000000-0000-4000-8000-{at:012}"));
            result["consumedCapacity"] = json!({"memory": world.dice.pick(&[("10Gi", 1), ("30Gi", 1)])});
        }
        let user = json!({"resource": "pods", "name": "user", "uid": format!("user-{at}")});
        let status = json!({"allocation": {"devices": {"results": [result]}}, "reservedFor": [user]});
        let spec = json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}});
        world.objects.push(claim(&format!("held-{at}"), "default", &spec, &status));
    }
}

/// What a claim asks for.
fn spec(world: &mut World, side: Side) -> Value {
    let mut requests: Vec<Value> =
        (0..world.dice.pick(&[(1, 3), (2, 2)])).map(|at| request(world, at, side)).collect();
    let mut spec = json!({"devices": {}});
    let attribute = format!("{DRIVER}/{}", world.dice.one_of(&["model", "switch"]));
    match world.dice.below(6) {
        0 => requests.push(json!({"name": "link", "exactly": {"deviceClassName": "fabric"}})),
        1 | 3 => spec["devices"]["constraints"] = json!([{"matchAttribute": attribute}]),
        // kube-scheduler 1.36 compares a device with the last of each request alone, which 1.37 has mended: each request is for
        // one device.
        2 => {
            let one = |at: u64| json!({"name": format!("d{at}"), "exactly": {"deviceClassName": "gpu"}});
            requests = (0..=world.dice.below(3)).map(one).collect();
            spec["devices"]["constraints"] = json!([{"distinctAttribute": attribute}]);
        }
        _ => {}
    }
    spec["devices"]["requests"] = json!(requests);
    spec
}

fn request(world: &mut World, at: u64, side: Side) -> Value {
    let name = format!("r{at}");
    if world.dice.in_thousand(150) {
        let big = json!({"name": "big", "deviceClassName": "big", "count": 2});
        return json!({"name": name, "firstAvailable": [big, {"name": "any", "deviceClassName": "gpu"}]});
    }
    let class = world.dice.pick(&[("gpu", 3), ("big", 1)]);
    let mut exactly = json!({"deviceClassName": class});
    match world.dice.below(7) {
        0 | 1 if side == Side::All => exactly["allocationMode"] = json!("All"),
        1 | 2 => exactly["count"] = json!(2),
        3 => {
            let expression = format!("device.attributes['{DRIVER}'].minor > 0");
            exactly["selectors"] = json!([{"cel": {"expression": expression}}]);
        }
        4 => {
            let expression = format!("device.capacity['{DRIVER}'].memory.compareTo(quantity('60Gi')) > 0");
            exactly["selectors"] = json!([{"cel": {"expression": expression}}]);
        }
        5 => {
            exactly["capacity"] =
                json!({"requests": {"memory": world.dice.pick(&[("20Gi", 1), ("50Gi", 1)])}});
        }
        _ => {}
    }
    if world.dice.in_thousand(200) {
        exactly["tolerations"] = json!([{"key": "broken", "operator": "Exists"}]);
    }
    json!({"name": name, "exactly": exactly})
}
