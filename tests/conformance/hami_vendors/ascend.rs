//! Ascend's cards, which are cut by templates: HAMi's table of them, and chips as upstream's tests describe them.
//!
//! Knows nothing of other vendors.

use berth::{
    config::Config,
    device::MiB,
    dialect::{
        Dialect as _,
        vendor::{
            VendorRow, ascend,
            row::{SliceTemplate, Templates},
        },
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    HANDSHAKE, LOCKED, OTHER_TYPE,
    family::{Family, vendor},
    request::{Asked, of_container, requested, wanted},
};
use crate::{
    table::{Case, Verdict},
    upstream::{assignment, list, number, text},
};

const IN_THE_WEBHOOK: &str =
    "upstream rounds to a template in its webhook, before this function; Berth where it reads the request";

#[test]
fn ascend() {
    const PAIRS: &str = "910C is given in pairs, a choice of its own";
    const DENIED: &str = "upstream denies it, and its flag says something else; Berth denies it";
    const OF_THE_BASE: &str = "the test's chip has no templates of its size; Berth's rows have HAMi's";
    let mismatches = numbered("TestDevices_Fit / fit fail: type mismatch", 6);
    let mut differences: Vec<(&str, &str)> =
        mismatches.iter().map(|name| (name.as_str(), OTHER_TYPE)).collect();
    differences.extend([
        (
            "Test_GenerateResourceRequests / resourcename and resourcememoryname set to limits and request",
            "upstream denies a part of several cards in its webhook, before this function; Berth where it reads the request",
        ),
        ("Test_MutateAdmission / resourcememoryname is invalid", DENIED),
        (
            "Test_MutateAdmission_VNPUCoreMode / no vnpu-mode annotation: no postStart, memory trimmed",
            OF_THE_BASE,
        ),
        ("Test_GenerateResourceRequestsFactor / factor 10", IN_THE_WEBHOOK),
        ("Test_GenerateResourceRequestsFactor / factor 100", IN_THE_WEBHOOK),
        ("Test_GenerateResourceRequestsFactor / factor 0", IN_THE_WEBHOOK),
    ]);
    let not_served = [
        ("Test_CheckHealth", HANDSHAKE),
        ("TestDevices_LockNode", LOCKED),
        ("TestDevices_ReleaseNodeLock", LOCKED),
        ("Test_MutateAdmission910C", PAIRS),
        ("TestDevices_Fit_910C", PAIRS),
    ];
    Family { row: chip("Ascend910A") }.check("ascend/", &differences, &not_served);
}

/// `name`, `name (2)` and so on: cases of one name.
fn numbered(name: &str, times: usize) -> Vec<String> {
    let later = (2..=times).map(|time| format!("{name} ({time})"));
    std::iter::once(name.to_owned()).chain(later).collect()
}

pub(crate) fn chip(word: &str) -> VendorRow {
    ascend::row(word, ascend::resources(word), 1, ascend::known(word).unwrap())
}

/// A chip as upstream's `VNPUConfig` has it.
pub(crate) fn configured(config: &Value) -> VendorRow {
    let word = text(config, "CommonWord").to_owned() + text(config, "commonWord");
    let factor = number(config, "MemoryFactor").max(1);
    ascend::row(&word, ascend::resources(&word), factor, templates(config))
}

pub(crate) fn templates(config: &Value) -> Templates {
    let either = |upper: &str, lower: &str| number(config, upper).max(number(config, lower));
    let listed = list(&config["Templates"]).iter().chain(list(&config["templates"]));
    let template = |template: &Value| SliceTemplate {
        name: text(template, "Name").to_owned() + text(template, "name"),
        memory: MiB::new(number(template, "Memory").max(number(template, "memory")).into()),
    };
    Templates {
        sizes: listed.map(template).collect(),
        allocatable: MiB::new(either("MemoryAllocatable", "memoryAllocatable").into()),
        capacity: MiB::new(either("MemoryCapacity", "memoryCapacity").into()),
        ..Templates::default()
    }
}

pub(crate) fn of_ascend(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    let soft = json!({ascend::MODE: ascend::SOFTWARE});
    let memory = |asked: Asked, card: u64| {
        let share = asked.unwrap().unwrap().containers[0].share.unwrap();
        share.memory.of(MiB::new(card)).get()
    };
    match case.test.as_str() {
        "Test_InitDevices" => {
            let families: Vec<_> = list(&expect["want"]).iter().map(keys_wanted).collect();
            Verdict::of(&keys_configured(input), &families)
        }
        "Test_MutateAdmission_NilRequests" => {
            let asked = Family { row: chip("Ascend910A") }.ask(&input["ctr"], &Value::Null);
            Verdict::of(&memory(asked, 32768).to_string(), &text(expect, "wantMemory").to_owned())
        }
        "Test_MutateAdmission_VNPUCoreMode" => {
            let annotations = &input["pod"]["metadata"]["annotations"];
            let asked = Family { row: chip("Ascend910B3") }.ask(&input["ctr"], annotations);
            Verdict::of(&memory(asked, 65536), &number(expect, "wantMem").into())
        }
        "Test_MutateAdmission_HardSplitCoreRejected" => {
            let annotations = if input["hamiCore"] == json!(true) { &soft } else { &Value::Null };
            let asked = Family { row: chip("Ascend910B3") }.ask(&input["ctr"], annotations);
            Verdict::of(&json!(asked.is_err()), &expect["wantErr"])
        }
        "Test_PatchAnnotations_VNPUCoreMode" => {
            let row = chip("Ascend910B3");
            let mut given = assignment(&input["pd"]["Ascend910B3"], 0);
            let carried =
                of_container(&Family { row: row.clone() }.one(), &input["pod"]["metadata"]["annotations"]);
            given.marks = vendor(row.clone())
                .request(&carried, berth::dialect::MissingCount::Refuse)
                .unwrap()
                .unwrap()
                .marks;
            let record = vendor(row).record(&given, "node", Timestamp::UNIX_EPOCH);
            let parsed = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let key = "huawei.com/Ascend910B3";
            Verdict::of(&parsed(&record.annotations[key]), &parsed(text(&expect["want"], key)))
        }
        "Test_GenerateResourceRequests_VNPUCoreMode" => {
            let asked = Family { row: chip("Ascend910B3") }.ask(input, &soft);
            Verdict::of(&requested(asked), &wanted(&expect["want"]))
        }
        "Test_GenerateResourceRequestsFactor" => {
            let row = configured(&input["dev"]["config"]);
            let limits = json!({row.resources.count.as_str(): "1", "huawei.com/Ascend910A-memory": "128"});
            let asked = Family { row }.ask(&json!({"resources": {"limits": limits}}), &Value::Null);
            Verdict::of(&requested(asked), &wanted(&expect["want"]))
        }
        "Test_GenerateResourceRequests_OutOfRangeValues"
        | "Test_GenerateResourceRequests_MemoryFactorOverflow" => {
            let row = configured(&input["dev"]["config"]);
            let asked = Family { row }.ask(&input["args"], &soft);
            Verdict::of(&requested(asked), &wanted(&expect["want"]))
        }
        other => panic!("no adapter for {other}"),
    }
}

/// The keys of the chips of a berth.yaml with this list.
fn keys_configured(input: &Value) -> Vec<[String; 2]> {
    let chips = list(&input["args"]).iter().map(|chip| {
        let sizes = list(&chip["Templates"]).iter();
        let sizes = sizes.map(|size| json!({"name": size["Name"], "memory": size["Memory"], "aiCore": size["AICore"]}));
        json!({
            "chipName": chip["ChipName"], "commonWord": chip["CommonWord"], "resourceName": chip["ResourceName"],
            "resourceMemoryName": chip["ResourceMemoryName"], "memoryAllocatable": chip["MemoryAllocatable"],
            "memoryCapacity": chip["MemoryCapacity"], "aiCore": chip["AICore"],
            "templates": sizes.collect::<Vec<_>>(),
        })
    });
    let settings = json!({"dialects": {"hami": {
        "enable-ascend": input["enableAscend"], "vnpus": chips.collect::<Vec<_>>(),
    }}});
    let (config, _) = Config::parse(&settings.to_string(), "berth.yaml").unwrap();
    let dialects = config.dialects();
    let chips = dialects.iter().filter(|dialect| dialect.name().as_str().starts_with("hami-ascend"));
    chips
        .filter_map(|dialect| dialect.hint_keys())
        .map(|keys| [&keys.use_id, &keys.no_use_id].map(ToString::to_string))
        .collect()
}

fn keys_wanted(device: &Value) -> [String; 2] {
    ["useUUIDAnno", "noUseUUIDAnno"].map(|key| text(device, key).to_owned())
}
