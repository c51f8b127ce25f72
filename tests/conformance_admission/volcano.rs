//! `volcano_admission_pods_unit.json`, and what of `volcano_admission_misc_unit.json` is about pods.

use berth::{
    admission::{AdmissionStage, Facts, Operation, Request, Verdict, review},
    config::Config,
    object::Pod,
};
use serde_json::{Value, json};

use super::outcome::{Tally, table};

const RESOURCE_GROUP: &str =
    "Volcano's resource groups send pods to nodes by an administrator's table; that is no business of shares";

const PODS: [(&str, &str); 3] =
    [("test-1", RESOURCE_GROUP), ("test-2", RESOURCE_GROUP), ("test-3", RESOURCE_GROUP)];

fn ask(stage: AdmissionStage, pod: &Value) -> Verdict {
    let config = Config::default();
    let facts = Facts::new(config.admission_settings(), config.dialects());
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    review(&Request { stage, operation: Operation::Create, namespace: "test", pod: &pod }, &facts)
}

fn patch(verdict: Verdict) -> Value {
    match verdict {
        Verdict::Admitted { patch, .. } if !patch.is_empty() => serde_json::to_value(patch).unwrap(),
        _ => Value::Null,
    }
}

#[test]
fn the_pods_table() {
    let Some(table) = table("volcano_admission_pods_unit.json") else { return };
    let mut tally = Tally::new("volcano_admission_pods_unit.json", &PODS);
    for test in table["tests"].as_array().unwrap() {
        for case in test["cases"].as_array().unwrap() {
            let name = case["case"].as_str().unwrap();
            let data = &case["data"];
            if test["test"] == "TestMutatePods" {
                tally.case(name, &data["expect"], &patch(ask(AdmissionStage::Mutate, &data["Pod"])));
            } else {
                let allowed = !matches!(ask(AdmissionStage::Validate, &data["Pod"]), Verdict::Denied { .. });
                tally.case(name, &data["reviewResponse"], &json!({ "allowed": allowed }));
            }
        }
    }
    tally.end();
}

#[test]
fn the_misc_table_is_about_other_kinds() {
    let Some(table) = table("volcano_admission_misc_unit.json") else { return };
    let mut tally = Tally::new("volcano_admission_misc_unit.json", &[]);
    for test in table["tests"].as_array().unwrap() {
        let about_pods = test["function_under_test"].as_str().unwrap().to_lowercase().contains("pod");
        assert!(!about_pods, "{} is about pods and has no adapter", test["test"]);
        for _ in test["cases"].as_array().unwrap() {
            tally.not_ours();
        }
    }
    tally.end();
}
