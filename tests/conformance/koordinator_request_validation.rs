//! What pods ask by Koordinator's resources.

use std::collections::BTreeMap;

use berth::{
    device::{
        DeviceCount, DevicePortion, DeviceType, Exclusive, JointRequest, PartitionChoice, TopologyScope,
        TypedRequest,
    },
    dialect::koordinator::{
        dimension::{amounts, card},
        request,
        shape::{self, CountStrategy},
    },
};
use serde_json::{Value, json};

use super::{
    koordinator::{
        amounts as listed, exact, lacks_a_template, node_of_totals, of, requests, templates as read_templates,
    },
    table::{Case, Table, Verdict},
    upstream::{list, pod_of},
};

const DERIVED: &str =
    "upstream is handed a combination that is not the one of the request; Berth finds it itself";
const UNSERVABLE: &str = "200 percent of one card's compute: upstream admits it, and no node can serve it";

#[test]
fn koordinator_request_validation() {
    let table = Table {
        file: "koordinator_request_validation.json",
        differences: &[("TestValidateDeviceRequest#09", UNSERVABLE)],
        not_served: &[
            ("TestConvertDeviceRequest#02", DERIVED),
            ("cases_reservation_required", "a Reservation is not placed by Berth"),
            (
                "Test_gpuSharedResourceTemplatesCache_findMatchedTemplates#04",
                "a template that is more than what was asked for is never looked for, upstream neither",
            ),
            (
                "Test_gpuSharedResourceTemplatesCache_findMatchedTemplates#05",
                "a template that is more than what was asked for is never looked for, upstream neither",
            ),
            ("TestDefaultDeviceHandler_CalcDesiredRequestsAndCount#02", COUNTED),
            ("TestDefaultDeviceHandler_CalcDesiredRequestsAndCount#03", COUNTED),
            ("TestDefaultDeviceHandler_CalcDesiredRequestsAndCount#04", COUNTED),
            ("TestDefaultDeviceHandler_CalcDesiredRequestsAndCount#05", COUNTED),
        ],
    };
    table.check(judge);
}

const COUNTED: &str = "the number of matching devices is that of a node, which the table leaves out; tests of the allocation count them";

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    match case.test.as_str() {
        "cases_validate" => validate(input),
        "cases_convert" => {
            let converted = shape::converted(&requests(&input["requests"]));
            let wanted = (!input["expect"].is_null()).then(|| requests(&input["expect"]));
            Verdict::of(&converted.ok(), &wanted)
        }
        "cases_memory" => in_memory(input),
        "cases_gpu_requirements" => gpu_requirements(input, &case.context),
        "cases_calc_gpu" => {
            let of = shape::per_device(
                DeviceType::Gpu,
                &requests(&input["podRequests"]),
                CountStrategy::Percentage,
                None,
            );
            let of = of.unwrap();
            let wanted = (count(&input["wantDesiredNumberOfGPUs"]), portion(&input["wantGPUShared"]));
            Verdict::of(
                &(of.each, (of.count, of.portion)),
                &(listed(&input["wantRequestPerInstance"]), wanted),
            )
        }
        "cases_calc_default" => other_devices(input),
        "cases_fill_memory" => fill_memory(input),
        "cases_template_match" => {
            let each = listed(&input["args"]["resources"]);
            let found = exact(&read_templates(&input["infos"]), &each);
            let wanted: BTreeMap<_, _> = read_templates(&input["want"])
                .into_iter()
                .map(|(model, of)| (model, of.keys().cloned().collect()))
                .collect();
            Verdict::of(&found, &wanted)
        }
        other => panic!("no adapter for {other}"),
    }
}

fn validate(input: &Value) -> Verdict {
    let asked = requests(&input["requests"]);
    let kind = asked.keys().find_map(|name| berth::dialect::koordinator::dimension::kind_of(name));
    let converted = shape::converted(&asked);
    let valid = converted.is_ok_and(|converted| {
        shape::per_device(kind.unwrap(), &converted, CountStrategy::Percentage, None).is_ok()
    });
    Verdict::of(&json!(valid), &input["expect"]["valid"])
}

fn count(value: &Value) -> DeviceCount {
    DeviceCount::Exactly(u32::try_from(value.as_u64().unwrap()).unwrap())
}

fn portion(shared: &Value) -> DevicePortion {
    if *shared == json!(true) { DevicePortion::Share } else { DevicePortion::Whole }
}

fn in_memory(input: &Value) -> Verdict {
    let list = |amount: &Value, key: &str| listed(&json!({key: amount}));
    let (bytes, ratio) = ("koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio");
    let (mut given, wanted) = if input["ratio"].is_null() {
        (list(&input["bytes"], bytes), (ratio, &input["expect_ratio"]))
    } else {
        (list(&input["ratio"], ratio), (bytes, &input["expect_bytes"]))
    };
    card().memory.complete(&mut given, &list(&input["total"], bytes));
    let wanted = listed(&json!({wanted.0: wanted.1}));
    let is = wanted.iter().all(|(of, amount)| given.get(of) == Some(amount));
    Verdict::of(&is, &true)
}

fn gpu_requirements(input: &Value, context: &Value) -> Verdict {
    let mut annotations = input["pod_annotations"].clone();
    annotations["scheduling.koordinator.sh/device-allocate-hint"] =
        json!(json!({"gpu": input["gpu_hint"]}).to_string());
    let pod = pod_of(&annotations, &input["device_requests"]["gpu"]);
    let templates = read_templates(&context["gpu_shared_templates"]);
    let lacking = |asked: &Option<JointRequest>| {
        lacks_a_template(asked.as_ref().and_then(|asked| asked.types.get(&DeviceType::Gpu)), &templates)
    };
    let asked = request::request(&pod).ok().filter(|asked| !lacking(asked)).ok_or(());
    let wanted = &input["expect"];
    let Ok(asked) = asked else { return Verdict::of(&json!(true), &input["expect_error"]) };
    let Some(asked) = asked else { return Verdict::of(&Value::Null, wanted) };
    let gpu: &TypedRequest = &asked.types[&DeviceType::Gpu];
    let spec = gpu.partition.map(|spec| (spec.choice, spec.ring_bandwidth.is_some()));
    let restricted = wanted["restrictedGPUPartition"] == json!(true);
    let choice = if restricted { PartitionChoice::Restricted } else { PartitionChoice::BestEffort };
    let honor = wanted["honorGPUPartition"] == json!(true);
    let wanted_spec = honor.then(|| (choice, wanted["ringBusBandwidth"].is_string()));
    let scope = wanted["requiredTopologyScope"].as_str().map(|_| TopologyScope::NumaNode);
    let candidates = if gpu.by_template { exact(&templates, &gpu.each) } else { BTreeMap::new() };
    let wanted_candidates = wanted["candidateGPUSharedResourceTemplates"].as_object().into_iter().flatten();
    let wanted_candidates = wanted_candidates
        .map(|(model, of)| (model.clone(), of.as_object().unwrap().keys().cloned().collect()))
        .collect();
    Verdict::of(
        &(&gpu.each, gpu.count, gpu.portion, spec, gpu.scope, candidates),
        &(
            &listed(&wanted["requestsPerGPU"]),
            count(&wanted["numberOfGPUs"]),
            portion(&wanted["gpuShared"]),
            wanted_spec,
            scope,
            wanted_candidates,
        ),
    )
}

fn other_devices(input: &Value) -> Verdict {
    let strategy = match input["hint"]["allocateStrategy"].as_str() {
        Some("RequestsAsCount") => CountStrategy::RequestsAsCount,
        None => CountStrategy::Percentage,
        Some(other) => panic!("no strategy {other}"),
    };
    let exclusive = (input["hint"]["exclusivePolicy"] == json!("DeviceLevel")).then_some(Exclusive::Device);
    let of =
        shape::per_device(DeviceType::Rdma, &requests(&input["podRequests"]), strategy, exclusive).unwrap();
    Verdict::of(&(of.each, of.count), &(listed(&input["wantRequests"]), count(&input["wantDesiredCount"])))
}

fn fill_memory(input: &Value) -> Verdict {
    let node = node_of_totals(&input["nodeDeviceInfo"]["deviceTotal"]);
    let complete = |allocation: &Value| {
        let mut given = amounts(&of(&allocation["resources"])).unwrap();
        let minor = u32::try_from(allocation["minor"].as_u64().unwrap()).unwrap();
        let whole = &node.device(DeviceType::Gpu, minor).unwrap().total;
        card().memory.complete(&mut given, whole);
        (!whole.is_zero()).then_some(given)
    };
    let completed: Option<Vec<_>> = list(&input["allocations"]["gpu"]).iter().map(complete).collect();
    let wanted = list(&input["wantAllocations"]["gpu"]).iter().map(|of| listed(&of["resources"]));
    let wanted = (input["wantErr"] != json!(true)).then(|| wanted.collect());
    Verdict::of(&completed, &wanted)
}
