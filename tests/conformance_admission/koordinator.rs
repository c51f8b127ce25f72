//! `koordinator_webhook_device_resource.json`: what Koordinator's webhook completes and refuses.

use berth::{
    admission::{AdmissionStage, Facts, Operation, Request, Verdict, review},
    config::Config,
    object::Pod,
};
use serde_json::{Value, json};

use super::outcome::{Tally, table};

const TWICE: &str = "upstream completes a request for memory in bytes and in percent, which its scheduler then refuses; here it is refused at once";
const NO_TEMPLATE: &str =
    "upstream's webhook passes over Ascend's shares; its scheduler has no use for AI cores without memory";

const DIFFERENCES: [(&str, &str); 4] = [
    ("TestDeviceResourceSpecMutatingPod#01", TWICE),
    ("TestDeviceResourceSpecMutatingPod#02", TWICE),
    (
        "TestDeviceResourceValidatingPod#05",
        "upstream's gate is off by default; here a request is always judged",
    ),
    ("TestDeviceResourceValidatingPod#08", NO_TEMPLATE),
];

fn ask(stage: AdmissionStage, pod: &Value, config: &Config) -> Verdict {
    let facts = Facts::new(config.admission_settings(), config.dialects());
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    review(&Request { stage, operation: Operation::Create, namespace: "test", pod: &pod }, &facts)
}

/// The container's resources after the mutating call; null where the pod is refused.
fn completed(case: &Value) -> Value {
    let off = case["feature_gates"]["DisableDeviceResourceSpec"] == json!(true);
    let text = if off { "dialects: {koordinator: {enabled: false}}" } else { "" };
    let (config, _) = Config::parse(text, "berth.yaml").unwrap();
    let mut pod = json!({"metadata": {}, "spec": {"containers": [{"resources": case["resources"]}]}});
    match ask(AdmissionStage::Mutate, &pod, &config) {
        Verdict::Admitted { patch, .. } => json_patch::patch(&mut pod, &patch).unwrap(),
        Verdict::Ignored => {}
        Verdict::Denied { .. } => return Value::Null,
    }
    pod["spec"]["containers"][0]["resources"].clone()
}

#[test]
fn the_table_of_device_resources() {
    let Some(table) = table("koordinator_webhook_device_resource.json") else { return };
    let mut tally = Tally::new("koordinator_webhook_device_resource.json", &DIFFERENCES);
    for case in table["cases_mutate"].as_array().unwrap() {
        let unchanged = case["expect_mutated"] == json!(false);
        let theirs = &case[if unchanged { "resources" } else { "expect_resources" }];
        tally.case(case["id"].as_str().unwrap(), theirs, &completed(case));
    }
    for case in table["cases_validate"].as_array().unwrap() {
        let verdict = ask(AdmissionStage::Validate, &case["pod"], &Config::default());
        let allowed = !matches!(verdict, Verdict::Denied { .. });
        tally.case(case["id"].as_str().unwrap(), &case["expect_allowed"], &json!(allowed));
    }
    tally.end();
}
