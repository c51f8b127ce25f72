//! HAMi's encodings of cards and assignments.

use berth::{
    device::{Assignment, Card},
    dialect::{Dialect as _, hami::names},
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    table::{Case, Table, Verdict},
    upstream::{annotations, assignment, card, hami, list, node, number, pod, shares, text},
};

#[test]
fn hami_codec() {
    let table = Table {
        file: "hami_codec.json",
        differences: &[
            (
                "TestExtractMigTemplatesFromUUID / Invalid template index",
                "Volcano names its geometries, and both forms are read by one reader; the position must be a number",
            ),
            (
                "Test_PatchAnnotations / no device",
                "a pod without shares is never recorded, so there is no empty form",
            ),
        ],
        not_served: &[("TestEncodeContainerDeviceType", "a writer for other vendors' plugins")],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    match case.test.as_str() {
        "Test_DecodeNodeDevices" => {
            let want = &expect["want"];
            Verdict::of(&cards(text(input, "value")), &expected(&want["di"], !want["err"].is_null()))
        }
        "Test_EncodeNodeDevices" => {
            Verdict::of(&cards(text(expect, "want")), &expected(&input["value"], false))
        }
        "TestMarshalNodeDevices" => {
            Verdict::of(&cards(text(expect, "want")), &expected(&input["dlist"], false))
        }
        "TestEncodeDecodeNodeDevicesRoundtrip" => {
            let devices = list(&input["dlist"]);
            let written: String = devices.iter().map(comma_fields).collect();
            Verdict::of(&cards(&written), &expected(&input["dlist"], false))
        }
        "TestUnMarshalNodeDevices" => Verdict::of(
            &cards(text(input, "str")),
            &expected(&expect["want"], expect["wantErr"] == json!(true)),
        ),
        "Test_GetNodeDevices" => {
            let known = hami().inventory(&node(&input["metadata"]["annotations"])).unwrap();
            let known = known.map(|inventory| inventory.cards().to_vec()).unwrap_or_default();
            Verdict::of(&Some(known), &expected(&expect["want"], false))
        }
        "TestPodDevicesCoding" => {
            let given = assignment(&input["NVIDIA"], 0);
            let wanted = assignment(&expect["want"]["NVIDIA"], 0);
            Verdict::of(&shares(&read_back(&given)), &shares(&wanted))
        }
        "Test_DecodePodDevices" => {
            let read = read(&input["annos"], 2).map(|assignment| shares(&assignment)).unwrap_or_default();
            Verdict::of(&read, &shares(&assignment(&expect["want"]["NVIDIA"], 0)))
        }
        "Test_PatchAnnotations" => {
            let record = hami().record(&assignment(&input["pd"]["NVIDIA"], 0), "node", Timestamp::UNIX_EPOCH);
            let written = annotations(&record.annotations);
            let devices: serde_json::Map<String, Value> = [names::ALLOCATED, names::TO_ALLOCATE]
                .map(|key| (key.to_owned(), written[key].clone()))
                .into_iter()
                .collect();
            Verdict::of(&Value::Object(devices), &expect["want"])
        }
        "TestExtractMigTemplatesFromUUID" => template(input, expect),
        "TestDecodeMigAllocations*, TestEncodeDecodeMigAllocations" => slices(input, expect),
        other => panic!("no adapter for {other}"),
    }
}

/// The cards of a register annotation by number, or nothing where it can't be read.
fn cards(register: &str) -> Option<Vec<Card>> {
    let inventory = hami().inventory(&node(&json!({names::REGISTER: register}))).ok()??;
    Some(inventory.cards().to_vec())
}

fn expected(devices: &Value, error: bool) -> Option<Vec<Card>> {
    (!error).then(|| list(devices).iter().map(card).collect())
}

/// A card in the nine fields of v2.5 to v2.7.
fn comma_fields(device: &Value) -> String {
    let fields = [
        text(device, "ID").to_owned(),
        number(device, "Count").to_string(),
        number(device, "Devmem").to_string(),
        number(device, "Devcore").to_string(),
        text(device, "Type").to_owned(),
        number(device, "Numa").to_string(),
        device["Health"].as_bool().unwrap_or(false).to_string(),
        number(device, "Index").to_string(),
        text(device, "Mode").to_owned(),
    ];
    fields.join(",") + ":"
}

fn read(annotations: &Value, containers: usize) -> Result<Assignment, String> {
    let limits = json!({"limits": {names::COUNT: "1"}});
    let containers: Vec<_> =
        (0..containers).map(|at| json!({"name": at.to_string(), "resources": limits})).collect();
    let pod = pod(&json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}}));
    let carried = hami().assignment(&pod).map_err(|trouble| trouble.to_string())?;
    let carried = carried.ok_or_else(|| "none".to_owned())?;
    // What upstream refuses as a whole is told here beside what can be read of it.
    carried.unread.first().map_or(Ok(carried.assignment), |trouble| Err(trouble.to_string()))
}

fn read_back(given: &Assignment) -> Assignment {
    let record = hami().record(given, "node", Timestamp::UNIX_EPOCH);
    read(&annotations(&record.annotations), given.containers.len()).unwrap()
}

fn template(input: &Value, expect: &Value) -> Verdict {
    let value = format!("{},NVIDIA,1,1:;", text(input, "uuid"));
    let read = read(&json!({names::ALLOCATED: value}), 1).ok();
    let slice = read.and_then(|read| read.shares().next().and_then(|share| share.slice.clone()));
    let wanted = format!("{}-{}", expect["expectedTmpID"], expect["expectedPos"]);
    let wanted = (expect["expectError"] == json!(false)).then_some(wanted);
    Verdict::of(&slice.map(|slice| slice.to_string()), &wanted)
}

fn slices(input: &Value, expect: &Value) -> Verdict {
    if let Some(devices) = input.get("pod_devices") {
        let given = assignment(devices, 0);
        let record = hami().record(&given, "node", Timestamp::UNIX_EPOCH);
        let written: Value = serde_json::from_str(&record.annotations[names::MIG]).unwrap();
        let back = shares(&read_back(&given)) == shares(&given);
        return Verdict::of(&(written, back), &(expect["annotation"].clone(), true));
    }
    let annotations = json!({names::ALLOCATED: "GPU-a,NVIDIA,10240,28:;", names::MIG: input["value"]});
    let read = read(&annotations, 1).map(|read| read.shares().count());
    let wanted = if expect["error"] == json!(true) { None } else { expect["count"].as_u64() };
    Verdict::of(&read.ok().map(|count| count as u64), &wanted)
}
