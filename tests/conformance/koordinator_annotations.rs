//! Koordinator's annotations on pods and Devices.

use berth::{
    device::{PartitionChoice, PartitionPolicy, PartitionTable},
    dialect::koordinator::{dimension::whole, names, partitions, record, request},
    object::{Metadata, Quantity},
};
use serde_json::{Value, json};

use super::{
    koordinator::{allocations, of},
    table::{Case, Table, Verdict},
    upstream::{list, pod},
};

#[test]
fn koordinator_annotations() {
    let table = Table { file: "koordinator_annotations.json", differences: &[], not_served: &[] };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    match case.test.as_str() {
        "cases_Test_GetDeviceAllocations" => {
            let carried = record::carried(&pod(&input["pod"]));
            let wanted = (!input["want"].is_null()).then(|| allocations(&input["want"]));
            let wanted = if input["wantErr"] == json!(true) { None } else { Some(wanted) };
            Verdict::of(&carried.ok(), &wanted)
        }
        "cases_Test_SetDeviceAllocations" => {
            let written = record::encode(&allocations(&input["allocations"]));
            Verdict::of(&json!(written), &input["wantAnnotation"])
        }
        "cases_TestGetGPUPartitionSpec" => partition_spec(input),
        "cases_TestGetGPUPartitionTable" => table(input),
        "cases_TestGetNodeLevelGPUAllocatePolicy" => {
            let policy = match partitions::policy(&of(&input["node"]["metadata"])) {
                PartitionPolicy::Honor => "Honor",
                PartitionPolicy::Prefer => "Prefer",
            };
            Verdict::of(&json!(policy), &input["expected"])
        }
        other => panic!("no adapter for {other}"),
    }
}

fn partition_spec(input: &Value) -> Verdict {
    let metadata: Metadata = of(&json!({"annotations": input["args"]["annotations"]}));
    let spec = request::partition_spec(&metadata).unwrap().map(|spec| (spec.choice, spec.ring_bandwidth));
    let wanted = &input["want"];
    let choice = match wanted["allocatePolicy"].as_str() {
        Some("Restricted") => PartitionChoice::Restricted,
        _ => PartitionChoice::BestEffort,
    };
    Verdict::of(&spec, &wanted.is_object().then(|| (choice, bandwidth(wanted))))
}

fn bandwidth(value: &Value) -> Option<u64> {
    value["ringBusBandwidth"].as_str().map(|text| whole(&Quantity::from(text)).unwrap())
}

fn table(input: &Value) -> Verdict {
    let metadata: Metadata = of(&input["device"]["metadata"]);
    assert_eq!(metadata.annotation(names::PARTITIONS).is_some(), input["device"]["metadata"].is_object());
    let read = partitions::annotated(&metadata).ok().map(|table| {
        let partitions = table.iter().flat_map(PartitionTable::iter);
        let minors = |(count, one): (u32, &berth::device::Partition)| {
            (count, one.minors.iter().copied().collect::<Vec<_>>(), one.score, one.ring_bandwidth)
        };
        partitions.map(minors).collect::<Vec<_>>()
    });
    let wanted = (input["wantErr"] == json!("NoError")).then(|| {
        let counts = input["want"].as_object().into_iter().flatten();
        let of_count = |(count, partitions): (&String, &Value)| {
            let one = |one: &Value| {
                (count.parse().unwrap(), of(&one["minors"]), of(&one["allocationScore"]), bandwidth(one))
            };
            list(partitions).iter().map(one).collect::<Vec<_>>()
        };
        counts.flat_map(of_count).collect()
    });
    Verdict::of(&read, &wanted)
}
