//! HAMi's node lock: who holds it, by its value.

use berth::{
    device::{Lock, LockOwner},
    dialect::{Dialect as _, LockForm, hami::names},
};
use serde_json::{Value, json};

use super::{
    table::{Case, Table, Verdict},
    upstream::{hami, lock, node, pod, text},
};

const STEPS: &str =
    "the steps of taking and giving back are tested where they are done, against an API server";

#[test]
fn hami_nodelock() {
    let table = Table {
        file: "hami_nodelock.json",
        differences: &[],
        not_served: &[
            ("Test_LockNode / node not found", STEPS),
            ("TestReleaseNodeLock / node not found", STEPS),
            ("scripted tests", STEPS),
            ("TestGeneratePodNamespaceName", "text that only upstream's value has"),
            (
                "TestSetupNodeLockTimeout",
                "an environment variable; Berth has a key for it, tested with the configuration",
            ),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let (input, expect) = (&case.input, &case.expect);
    if input["pod"].is_object() {
        // Upstream's lock hangs on the same question as ours: whether the pod asks.
        let asks =
            hami().request(&pod(&input["pod"]), berth::dialect::MissingCount::Refuse).unwrap().is_some();
        let before = case.test == "TestReleaseNodeLock";
        return Verdict::of(&json!(asks != before), &expect["hasLock"]);
    }
    let (namespace, name) = text(input, "pod").split_once('/').unwrap();
    let owner = LockOwner { namespace: namespace.to_owned(), name: name.to_owned() };
    let state = state(&input["lock_before"]);
    match case.test.as_str() {
        "Test_LockNode" => {
            let barred = match state {
                Lock::Free => false,
                Lock::Held { owner: held, .. } => held.as_ref() != Some(&owner),
                Lock::Malformed { .. } => true,
            };
            Verdict::of(&json!(barred), &expect["wantErr"])
        }
        "TestReleaseNodeLock" => {
            let ours = matches!(&state, Lock::Held { owner: held, .. } if held.as_ref().is_none_or(|held| *held == owner));
            let freed = ours || state == Lock::Free;
            Verdict::of(&json!(freed), &json!(expect["lock_after"].is_null()))
        }
        other => panic!("no adapter for {other}"),
    }
}

fn state(value: &Value) -> Lock {
    let value = value.as_str().map(|value| value.replace("{now}", "2026-11-21T00:00:00Z"));
    let annotations = value.map_or_else(|| json!({}), |value| json!({names::LOCK: value}));
    lock(names::LOCK, LockForm::Comma).read(&node(&annotations))
}
