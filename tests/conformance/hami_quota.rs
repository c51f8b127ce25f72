//! HAMi's quota: what a namespace may still take.

use berth::device::{MiB, Percent, Quota};
use serde_json::{Value, json};

use super::{
    call::{Call, held, links},
    table::{Case, Table, Verdict},
    upstream::number,
};

const BOOKS: &str = "books of quota are not kept yet: what is left is a fact given to the allocator";

#[test]
fn hami_quota() {
    let table = Table {
        file: "hami_quota.json",
        differences: &[],
        not_served: &[
            ("TestAddUsageAndRmUsage", BOOKS),
            ("TestAddQuotaAndDelQuota", BOOKS),
            ("TestDelQuotaNonLimitsKey", BOOKS),
            ("TestUpdateQuota", BOOKS),
            ("TestIsManagedQuota", BOOKS),
        ],
    };
    table.check(judge);
}

fn judge(case: &Case) -> Verdict {
    let input = &case.input;
    let factor = number(input, "factor");
    let left = |state: &Value, factor: u32| {
        state.is_object().then(|| (number(state, "limit") * factor).saturating_sub(number(state, "used")))
    };
    let explicit_zero = (input["hard"]["limits.nvidia.com/gpumem"] == json!("0")).then_some(0);
    let quota = Quota {
        memory: left(&input["gpumem"], factor).or(explicit_zero).map(|left| MiB::new(left.into())),
        cores: left(&input["gpucore"], 1).map(Percent::new),
        ..Quota::default()
    };
    let device = json!({"ID": "gpu", "Count": 10, "Totalmem": 100_000, "Totalcore": 1000, "Health": true});
    // Percentages above 100 stand for several cards together; one card with room for them does here.
    let cores = number(input, "cores");
    let request = json!({"Nums": 1, "Memreq": number(input, "mem"), "Coresreq": cores.min(100)});
    let before = json!({"NVIDIA": [[{"UUID": "other", "Usedcores": cores.saturating_sub(100)}]]});
    let call = Call {
        devices: vec![&device],
        request: &request,
        annotations: &Value::Null,
        node: &Value::Null,
        links: links(&[]),
        quota,
        held: held(&before, 0),
    };
    Verdict::of(&json!(call.outcome().is_ok()), &case.expect)
}
