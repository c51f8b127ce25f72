//! What Koordinator's plugin answers in the phases of scheduling: before nodes are looked at, for one node, and for the node that is taken.

use std::collections::BTreeMap;

use berth::{
    device::{DeviceAllocation, DeviceAllocations, DeviceCount, DeviceType, DevicesUsed, ModelTemplates},
    dialect::koordinator::{node, record, request},
    object::{Metadata, Pod},
    scheduling::model::devices::{
        AllocatePolicy, AllocationSettings, ReservedDevices, allocate, allocate_within,
    },
};
use serde_json::{Value, json};

use super::{
    koordinator::{
        allocations, amounts, comparable, default_scoring, lacks_a_template, merged, node_of_totals, of,
        per_minor, templates,
    },
    table::{Case, Table, Verdict},
    upstream::pod_of,
};

const NOT_CACHED: &str = "about upstream's own cache of nodes and of the pod's state";
const DESIGNATED: &str =
    "about an allocation that another of upstream's plugins has designated; Berth decides by itself";
const NODE_LABEL: &str = "the plugin of isolation and its label has tests of its own; upstream answers with an error of the scheduler";
const UNSHARED: &str = "a list of models in upstream's settings; Berth has none";
const LEDGER: &str = "Berth's ledger is a fold over pods, of which nothing is taken back";
const WRITTEN: &str =
    "what is written into the Binding is held by the tables of annotations and of the device plugins";

#[test]
fn koordinator_phases() {
    let table = Table {
        file: "koordinator_phases.json",
        differences: &[],
        not_served: &[
            ("Test_Plugin_Filter#01", NOT_CACHED),
            ("Test_Plugin_Filter#22", NODE_LABEL),
            ("Test_Plugin_Filter#23", NODE_LABEL),
            ("Test_Plugin_Filter#24", UNSHARED),
            ("Test_Plugin_Reserve#01", NOT_CACHED),
            ("cases_unreserve", LEDGER),
            ("cases_prebind", WRITTEN),
            ("Test_Plugin_Filter#25", DESIGNATED),
            ("Test_Plugin_Filter#26", DESIGNATED),
            ("Test_Plugin_Filter#27", DESIGNATED),
            ("Test_Plugin_Filter#28", DESIGNATED),
            ("Test_Plugin_Reserve#19", DESIGNATED),
            ("Test_Plugin_Reserve#20", DESIGNATED),
            ("Test_Plugin_Reserve#21", DESIGNATED),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    match case.test.as_str() {
        "cases_prefilter" => before_nodes(input),
        "cases_filter" => {
            let cache = &input["nodeDeviceCache"];
            on_a_node(&input["state"], (cache, &input["nodeInfo"]["node"]), (None, &input["reserved"]))
                .map_or_else(|verdict| verdict, |given| Verdict::of(&given.is_ok(), &input["want"].is_null()))
        }
        "cases_reserve" => {
            let args = &input["args"];
            let node = (&args["nodeDeviceCache"], &args["node"]);
            on_a_node(&args["state"], node, (Some(""), &args["reserved"])).map_or_else(
                |verdict| verdict,
                |given| {
                    let fails = !input["wants"]["status"].is_null();
                    let wanted =
                        (!fails).then(|| comparable(allocations(&input["wants"]["allocationResult"])));
                    let given = given.ok().map(comparable);
                    Verdict::of(&given.as_ref().map(record::encode), &wanted.as_ref().map(record::encode))
                },
            )
        }
        other => panic!("no adapter for {other}"),
    }
}

/// Whether the pod is passed over, refused, or asks for so much of so many GPUs.
fn before_nodes(input: &Value) -> Verdict {
    let pod: Pod = of(&input["pod"]);
    let asked = request::request(&pod);
    let templates = listed_templates();
    match (input["wantStatus"]["status"].as_str(), asked) {
        (Some("UnschedulableAndUnresolvable"), Ok(Some(asked)))
            if lacks_a_template(asked.types.get(&DeviceType::Gpu), &templates) =>
        {
            Verdict::Equal
        }
        (Some("Skip"), Ok(None)) | (Some("UnschedulableAndUnresolvable"), Err(_)) => Verdict::Equal,
        (None, Ok(Some(asked))) => {
            let wanted = &input["wantState"]["gpuRequirements"];
            let gpu = asked.types.get(&DeviceType::Gpu).filter(|_| !wanted.is_null());
            let (Some(gpu), false) = (gpu, wanted.is_null()) else { return Verdict::Equal };
            let cards = u32::try_from(wanted["numberOfGPUs"].as_u64().unwrap()).unwrap();
            let wanted = (DeviceCount::Exactly(cards), amounts(&wanted["requestsPerGPU"]));
            Verdict::of(&(gpu.count, gpu.each.clone()), &wanted)
        }
        (wanted, asked) => Verdict::Differs(format!("berth {asked:?}, upstream {wanted:?}")),
    }
}

/// What a pod of this state is given on the node of this cache; a verdict where nothing is asked or the node has no devices, which upstream
/// passes over.
fn on_a_node(
    state: &Value,
    (cache, object): (&Value, &Value),
    (strategy, reserved): (Option<&str>, &Value),
) -> Result<Result<DeviceAllocations, Vec<String>>, Verdict> {
    let requests = merged(&state["podRequests"]);
    let cache = &cache["nodeDeviceInfos"]["test-node"];
    if list_is_empty(&requests) || cache.is_null() {
        return Err(Verdict::Equal);
    }
    let hints = match &state["hints"] {
        Value::Null => json!({}),
        hints => json!({"scheduling.koordinator.sh/device-allocate-hint": hints.to_string()}),
    };
    let asked = request::request(&pod_of(&hints, &requests));
    let request = match asked {
        Ok(asked) => asked.unwrap(),
        Err(refused) => return Err(Verdict::Differs(format!("refused: {refused:?}"))),
    };
    let labels: Metadata = of(&object["metadata"]);
    let node = node_of_totals(&cache["deviceTotal"]).on(&node::traits(&labels)).dividing(&listed_templates());
    let gone = per_minor(&state["preemptibleDevices"]["test-node"]);
    let held: Vec<_> = per_minor(&cache["deviceUsed"])
        .into_iter()
        .map(|((kind, minor), used)| {
            let amounts = gone.get(&(kind, minor)).map_or_else(|| used.clone(), |gone| used.left(gone));
            BTreeMap::from([(kind, vec![DeviceAllocation { minor, amounts, ..DeviceAllocation::default() }])])
        })
        .collect();
    let scoring = strategy.map(|name| default_scoring(&name.into()));
    let (used, settings) = (DevicesUsed::of(&held), AllocationSettings { scoring, numa: None });
    let given = if reserved.is_null() {
        allocate(&node, &used, &request, &settings)
    } else {
        let left = (&reserved_devices(reserved), AllocatePolicy::Aligned);
        allocate_within(&node, &used, &request, &settings, left)
    };
    Ok(given.map_err(|shortfalls| shortfalls.iter().map(ToString::to_string).collect()))
}

/// What upstream's tests list in the ConfigMap, as far as the table names it.
fn listed_templates() -> ModelTemplates {
    let template = |core: u32, cpu: u32, dvpp: u32, memory: &str| {
        json!({
            "huawei.com/npu-core": core, "huawei.com/npu-cpu": cpu, "huawei.com/npu-dvpp": dvpp,
            "koordinator.sh/gpu-memory": memory,
        })
    };
    templates(&json!({"huawei-Ascend-310P": {
        "vir02": template(2, 2, 25, "6Gi"),
        "vir02_1c": template(2, 1, 25, "6Gi"),
        "vir04": template(4, 4, 50, "12Gi"),
    }}))
}

/// What is left of a Reservation that holds these devices.
fn reserved_devices(held: &Value) -> ReservedDevices {
    let of_type = |devices: Vec<DeviceAllocation>| {
        devices.into_iter().map(|device| (device.minor, device.amounts)).collect()
    };
    allocations(held).into_iter().map(|(kind, devices)| (kind, of_type(devices))).collect()
}

fn list_is_empty(requests: &Value) -> bool {
    requests.as_object().is_none_or(serde_json::Map::is_empty)
}
