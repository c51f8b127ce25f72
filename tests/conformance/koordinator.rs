//! Koordinator's Go structs, as its tables have them, as Berth's values.

use std::{collections::BTreeMap, sync::Arc};

use berth::{
    device::{
        Amounts, DeviceAllocations, DeviceType, Health, JointRequest, Minor, ModelTemplates, NodeDevice,
        NodeDevices, ShareTemplates, TypedRequest, node_devices::matching,
    },
    dialect::koordinator::{dimension, node, record, request, shape::Requests},
    object::{Device, Metadata},
    scheduling::model::devices::{Scoring, Strategy},
};
use serde_json::{Value, json};

use super::upstream::{list, pod_of, text};

/// A value as its JSON has it; nothing: the default.
pub(crate) fn of<T: Default + serde::de::DeserializeOwned>(value: &Value) -> T {
    if value.is_null() { T::default() } else { serde_json::from_value(value.clone()).unwrap() }
}

/// A resource list.
pub(crate) fn amounts(list: &Value) -> Amounts {
    dimension::amounts(&of(list)).unwrap()
}

/// A resource list of a pod.
pub(crate) fn requests(list: &Value) -> Requests {
    amounts(list).iter().map(|(of, amount)| (of.name().to_owned(), amount)).collect()
}

/// `DeviceAllocations`.
pub(crate) fn allocations(value: &Value) -> DeviceAllocations {
    record::decode(&value.to_string()).unwrap()
}

/// By type and minor; what is zero is left out.
pub(crate) type PerMinor = BTreeMap<(DeviceType, Minor), Amounts>;

/// A map from device type to a map from minor to a resource list.
pub(crate) fn per_minor(value: &Value) -> PerMinor {
    let mut found = PerMinor::new();
    for (kind, minors) in value.as_object().into_iter().flatten() {
        for (minor, list) in minors.as_object().into_iter().flatten() {
            let key = (DeviceType::named(kind).unwrap(), minor.parse().unwrap());
            found.insert(key, amounts(list));
        }
    }
    found.retain(|_, amounts| !amounts.is_zero());
    found
}

/// A node with devices of these totals, without topology.
pub(crate) fn node_of_totals(total: &Value) -> NodeDevices {
    let mut node = NodeDevices::default();
    for (kind, minors) in total.as_object().into_iter().flatten() {
        for (minor, list) in minors.as_object().into_iter().flatten() {
            let device = NodeDevice {
                id: format!("{kind}-{minor}"),
                health: Health::Healthy,
                labels: BTreeMap::new(),
                total: amounts(list),
                topology: None,
                functions: Vec::new(),
            };
            let of_type = node.devices.entry(DeviceType::named(kind).unwrap()).or_default();
            of_type.insert(minor.parse().unwrap(), device);
        }
    }
    node
}

/// The devices of a Device and a node with these labels; a fixture is looked up by its name.
pub(crate) fn node(device: &Value, labels: &Value, fixtures: &Value) -> NodeDevices {
    let fixture = device["fixture"].as_str().map_or(device, |name| &fixtures[name]);
    let device: Device = of(fixture);
    let labels: Metadata = of(&json!({"labels": labels}));
    node::devices(&device).unwrap().on(&node::traits(&labels))
}

/// Templates of shares, by vendor and model.
pub(crate) fn templates(value: &Value) -> ModelTemplates {
    let of_model = |templates: &Value| {
        let templates = templates.as_object().into_iter().flatten();
        let templates: ShareTemplates = templates.map(|(name, list)| (name.clone(), amounts(list))).collect();
        Arc::new(templates)
    };
    value.as_object().into_iter().flatten().map(|(model, of)| (model.clone(), of_model(of))).collect()
}

/// By vendor and model, the templates that are exactly so much of a card; models without one are left out.
pub(crate) fn exact(templates: &ModelTemplates, each: &Amounts) -> BTreeMap<String, Vec<String>> {
    let of_model = |of: &ShareTemplates| matching(of, each).map(str::to_owned).collect::<Vec<_>>();
    let by_model = templates.iter().map(|(model, of)| (model.clone(), of_model(of)));
    by_model.filter(|(_, names)| !names.is_empty()).collect()
}

/// Whether the pod needs a template and there is none on any node, which upstream finds before it looks at nodes.
pub(crate) fn lacks_a_template(gpu: Option<&TypedRequest>, templates: &ModelTemplates) -> bool {
    gpu.is_some_and(|gpu| gpu.by_template && exact(templates, &gpu.each).is_empty())
}

/// What a pod with these resources and annotations asks for.
pub(crate) fn asked(resources: &Value, annotations: &Value) -> JointRequest {
    let texts = annotations.as_object().into_iter().flatten().map(|(key, value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (key.clone(), json!(text))
    });
    let pod = pod_of(&Value::Object(texts.collect()), resources);
    request::request(&pod).unwrap().unwrap()
}

/// The resources of all device types of a list by type.
pub(crate) fn merged(by_type: &Value) -> Value {
    let lists = by_type.as_object().into_iter().flatten().flat_map(|(_, list)| list.as_object().unwrap());
    Value::Object(lists.map(|(name, amount)| (name.clone(), amount.clone())).collect())
}

/// A scorer of devices; none: they are told apart by their number.
pub(crate) fn scoring(scorer: &Value) -> Option<Scoring> {
    let strategy = match scorer["type"].as_str()? {
        "LeastAllocated" => Strategy::LeastAllocated,
        "MostAllocated" => Strategy::MostAllocated,
        other => panic!("no strategy {other}"),
    };
    let weight = |of: &Value| (dimension::dimension(text(of, "name")), of["weight"].as_u64().unwrap());
    Some(Scoring { strategy, weights: list(&scorer["resources"]).iter().map(weight).collect() })
}

/// A scorer by its name, with the default weights.
pub(crate) fn default_scoring(strategy: &Value) -> Scoring {
    let weight = |name: &str| json!({"name": format!("koordinator.sh/{name}"), "weight": 1});
    let strategy = strategy.as_str().filter(|name| !name.is_empty()).unwrap_or("LeastAllocated");
    let resources: Vec<_> = ["gpu-memory-ratio", "gpu-memory", "rdma", "fpga"].map(weight).into();
    scoring(&json!({"type": strategy, "resources": resources})).unwrap()
}

/// What the tables compare of an allocation: minors, amounts, virtual functions and templates.
pub(crate) fn comparable(mut allocations: DeviceAllocations) -> DeviceAllocations {
    for device in allocations.values_mut().flatten() {
        (device.id, device.exclusive) = (None, None);
    }
    for devices in allocations.values_mut() {
        devices.sort_by_key(|device| device.minor);
    }
    allocations.retain(|_, devices| !devices.is_empty());
    allocations
}
