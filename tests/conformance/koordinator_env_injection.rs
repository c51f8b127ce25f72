//! `koordinator_env_injection.json`: what koordlet's hook puts into a container, which the simulated node does too.

use std::collections::BTreeMap;

use berth_sandbox::agent::koordlet::hooks;
use serde_json::{Value, json};

use super::table::{Case, Table, Verdict};

const TABLE: Table<'_> = Table {
    file: "koordinator_env_injection.json",
    differences: &[(
        "Test_InjectContainerGPUEnv#04",
        "upstream's monitor is off by default, and so is the cache that it reads",
    )],
    not_served: &[("Test_InjectContainerGPUEnv#01", "there is always a container")],
};

fn texts(value: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(value.clone()).unwrap_or_default()
}

fn injected(case: &Case) -> Verdict {
    let container = &case.input["container"];
    let environment =
        hooks::environment(&texts(&container["podAnnotations"]), &texts(&container["podLabels"]));
    let environment = environment.map_or_else(Value::from, |variables| json!(variables));
    let expected =
        if case.expect["expect_env"].is_null() { json!({}) } else { case.expect["expect_env"].clone() };
    Verdict::of(&environment, &expected)
}

#[test]
fn koordinator_env_injection() {
    TABLE.check(injected);
}
