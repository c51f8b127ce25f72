//! What Koordinator writes for device plugins.

use berth::{
    device::{DeviceAllocations, Lock, NodeDevices},
    dialect::{
        Record,
        koordinator::{adaption, plugin},
    },
    object::Node,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    koordinator::{allocations, node as devices, of},
    table::{Case, Table, Verdict},
};

const NO_NODE: &str = "a node or a Device that is not there: no decision names one";

#[test]
fn koordinator_device_plugin_adapter() {
    let table = Table {
        file: "koordinator_device_plugin_adapter.json",
        differences: &[],
        not_served: &[
            ("TestPlugin_adaptForDevicePlugin#11", NO_NODE),
            ("TestPlugin_adaptForDevicePlugin#12", NO_NODE),
        ],
    };
    table.check(judge);
}

fn now() -> Timestamp {
    "2026-11-21T09:54:07Z".parse().unwrap()
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    // Tests of one adapter name its vendor only in their own names.
    let vendor = ["Huawei", "Cambricon", "MetaX"].into_iter().find(|vendor| case.test.contains(vendor));
    let whole = case.test == "cases_Plugin_adaptForDevicePlugin";
    let node = if whole {
        devices(&input["device"], &Value::Null, &Value::Null)
    } else {
        let model = input["gpuModel"].as_str().map(str::to_owned);
        NodeDevices { vendor: vendor.map(str::to_lowercase), model, ..NodeDevices::default() }
    };
    let (name, given) = if whole {
        (input["args"]["nodeName"].as_str().unwrap(), allocations(&input["args"]["allocationResult"]))
    } else {
        ("test-node", given(&input["args"]["allocation"]))
    };
    let object = &input["args"]["object"]["metadata"];
    let isolation = object["labels"]["koordinator.sh/gpu-isolation-provider"].as_str();
    let record = adaption::record(&given, (name, &node), isolation, now());
    let refused = input["wantErr"] == json!(true);
    if whole {
        let lock = taken(&node, input);
        let wanted_lock = (!refused).then(|| texts(&input["wantNode"]["metadata"]["annotations"]));
        return Verdict::of(&(record.ok(), lock), &(Some(written(input)), wanted_lock));
    }
    Verdict::of(&record.ok().map(|record| part(record, &case.test)), &(!refused).then(|| written(input)))
}

fn given(gpus: &Value) -> DeviceAllocations {
    if gpus.is_null() { DeviceAllocations::new() } else { allocations(&json!({"gpu": gpus})) }
}

/// What the adapter of the test writes of it: the general ones come before those of a vendor.
fn part(mut record: Record, test: &str) -> Record {
    let of_general = test != "cases_GeneralDevicePluginAdapter";
    let of_vendor = of_general && !test.contains("General");
    record.annotations.retain(|key, _| match key.as_str() {
        "scheduling.koordinator.sh/bind-timestamp" => !of_general,
        "scheduling.koordinator.sh/gpu-minors" => !of_vendor,
        _ => true,
    });
    record
}

/// The annotations and labels of the table's pod, without the label that it had.
fn written(input: &Value) -> Record {
    let metadata = &input["wantObject"]["metadata"];
    let mut record =
        Record { annotations: texts(&metadata["annotations"]), labels: texts(&metadata["labels"]) };
    record.labels.remove("koordinator.sh/gpu-isolation-provider");
    record
}

/// Keys and values, with the table's marks for times replaced.
fn texts(map: &Value) -> std::collections::BTreeMap<String, String> {
    let time = |ago: i64| (now() - SignedDuration::from_secs(ago)).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let text = map.to_string();
    let text = text.replace("<now-unix-nano>", &now().as_nanosecond().to_string());
    let text =
        text.replace("<now>", &time(0)).replace("<now-60s>", &time(60)).replace("<now-301s>", &time(301));
    of(&serde_json::from_str(&text).unwrap())
}

/// The node's annotations once the pod has its lock; `None`: another pod has it.
fn taken(node: &NodeDevices, input: &Value) -> Option<std::collections::BTreeMap<String, String>> {
    let mut annotations = texts(&input["node"]["metadata"]["annotations"]);
    let Some(spec) = node.vendor.as_deref().and_then(plugin::lock) else { return Some(annotations) };
    let read: Node = of(&json!({"metadata": {"annotations": annotations}}));
    if let Lock::Held { since, owner } = spec.read(&read) {
        let lives =
            input["existingPod"]["metadata"]["name"].as_str() == owner.as_ref().map(|of| of.name.as_str());
        if lives && now() - spec.expiry <= since {
            return None;
        }
    }
    let pod = berth::device::LockOwner::parse("default", "test-pod").unwrap();
    annotations.insert(spec.key.clone(), spec.value(&pod, now()));
    Some(annotations)
}
