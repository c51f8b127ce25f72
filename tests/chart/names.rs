//! The names that the chart reads settings by are those of the program.

use std::collections::BTreeSet;

use berth::dialect::{
    hami,
    schedulers::NAMES,
    vendor::{amd, ascend, biren, cambricon, hygon, iluvatar, row::FamilyResources},
};
use serde_json::{Value, json};

use super::yaml;

fn resources(count: &str, resources: FamilyResources) -> Value {
    let FamilyResources { count: name, memory, cores } = resources;
    let optional = |key: &str, name: Option<String>| name.map(|name| json!({"key": key, "name": name}));
    let first = json!({"key": count, "name": name});
    let others = [optional("resourceMemoryName", memory), optional("resourceCoreName", cores)];
    std::iter::once(first).chain(others.into_iter().flatten()).collect()
}

#[test]
fn the_names_of_the_chart_are_those_of_the_program() {
    use hami::names;
    let names_by_key = [
        ("resourceCountName", names::COUNT),
        ("resourceMemoryName", names::MEMORY),
        ("resourceMemoryPercentageName", names::MEMORY_PERCENTAGE),
        ("resourceCoreName", names::CORES),
        ("resourcePriorityName", names::PRIORITY),
    ];
    let count = "resourceCountName";
    let family = |section: &str, row: berth::dialect::vendor::VendorRow| {
        let hints: Vec<_> = row.hints.all().collect();
        json!({"section": section, "resources": resources(count, row.resources.clone()), "hints": hints})
    };
    let hints = ["hami.io/use-WORD-uuid", "hami.io/no-use-WORD-uuid"];
    let hygon_hints = hygon::row(hygon::resources(), 1).hints;
    let expected = json!({
        "schedulers": NAMES,
        "withoutShares": "default-scheduler",
        "nvidia": names_by_key.map(|(key, name)| json!({"key": key, "name": name})),
        "hygon": resources(count, hygon::resources()),
        "wholeCards": berth::dialect::koordinator::names::WHOLE_CARDS,
        "lastHint": hygon_hints.all().last().unwrap(),
        "families": [
            family("cambricon", cambricon::row(cambricon::resources())),
            family("amd", amd::row(amd::resources())),
            family("biren", biren::row(biren::resources())),
        ],
        "chips": [
            {
                "section": "iluvatars",
                "flag": "enable-iluvatar",
                "words": iluvatar::WORDS,
                "inPairs": [],
                "resources": resources(count, iluvatar::resources("WORD")),
                "hints": hints,
            },
            {
                "section": "vnpus",
                "flag": "enable-ascend",
                "words": ascend::WORDS,
                "inPairs": [ascend::IN_PAIRS],
                "resources": resources("resourceName", ascend::resources("WORD")),
                "hints": hints,
            },
        ],
    });
    assert_eq!(yaml("deploy/helm/berth/names.yaml"), expected);
}

/// A vendor that the program learns must not be forgotten in the chart.
#[test]
fn each_vendor_of_the_settings_is_one_of_the_chart() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_berth")).arg("schema").output().unwrap();
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    let hami = &schema["properties"]["dialects"]["properties"]["hami"]["properties"];
    let of_resources = |section: &Value| section.to_string().contains("\"resourceCountName\"");
    let sections = hami.as_object().unwrap().iter().filter(|(_, section)| of_resources(section));
    let mut sections: BTreeSet<_> = sections.map(|(name, _)| name.clone()).collect();
    assert!(sections.remove("nvidia") && sections.remove("hygon"), "{sections:?}");
    let flags = hami.as_object().unwrap().keys().filter(|key| key.starts_with("enable-")).cloned().collect();
    let names = yaml("deploy/helm/berth/names.yaml");
    let of_the_chart = |list: &str, key: &str| -> BTreeSet<String> {
        let vendors = names[list].as_array().unwrap().iter();
        vendors.map(|vendor| vendor[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((sections, flags), (of_the_chart("families", "section"), of_the_chart("chips", "flag")));
}
