//! HAMi's quota: what a namespace may still take.

use std::sync::Arc;

use berth::{
    cluster::Reader,
    device::{Answer, CardUsage, Cores, Dimension, InitPhase, MiB, ProfileName, Quota},
    dialect::{Dialect, Dialects},
    object::ResourceQuota,
    scheduling::{
        QuotaInfo, QuotaKey, Snapshot,
        world::{ledger::Charge, quota::Bound},
    },
};
use serde_json::{Value, json};

use super::{
    call::{Call, held, links},
    fixtures,
    table::{Case, Table, Verdict},
    upstream::{hami, list, number},
};

const OWN_NAME: &str = "HAMi's test names a core resource `nvidia.com/gpucore` by its own setting; here it is `nvidia.com/gpucores`";

#[test]
fn hami_quota() {
    let table =
        Table { file: "hami_quota.json", differences: &[("TestIsManagedQuota", OWN_NAME)], not_served: &[] };
    table.check(|case| match case.name.as_str() {
        "TestAddUsageAndRmUsage" => Verdict::of(&used(), &case.expect["after_each"]),
        "TestAddQuotaAndDelQuota" => Verdict::of(&made_and_gone(), &case.expect["limits_after_each"]),
        "TestDelQuotaNonLimitsKey" => Verdict::of(&other_keys(&case.input), &case.expect["limit_gpumem"]),
        "TestUpdateQuota" => {
            let (limits, used) = updated();
            Verdict::of(&json!([limits, used]), &json!([case.expect["mem_limit"], case.expect["used_kept"]]))
        }
        "TestIsManagedQuota" => Verdict::of(&managed(&case.input), &case.expect),
        _ => judge(case),
    });
}

fn profile() -> ProfileName {
    hami().name().clone()
}

/// What the binder reads of a ResourceQuota with these keys.
fn bounds(hard: &Value) -> Vec<Bound> {
    let reader = Reader::new(Dialects::new(vec![Arc::new(hami())]), "berth".to_owned());
    let quota = json!({"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}});
    let (info, troubles) = reader.quota(&serde_json::from_value::<ResourceQuota>(quota).unwrap());
    assert_eq!(troubles, []);
    info.bounds
}

fn limit(bounds: &[Bound], dimension: Dimension) -> u64 {
    bounds.iter().find(|bound| bound.dimension == dimension).map_or(0, |bound| bound.hard)
}

/// A cluster whose namespace is bounded so, since only of such the use is counted.
fn cluster(hard: &Value) -> Snapshot {
    let mut snapshot = Snapshot::default();
    set(&mut snapshot, hard);
    snapshot
}

fn set(snapshot: &mut Snapshot, hard: &Value) {
    let key = QuotaKey { namespace: "default".into(), name: "q".into() };
    snapshot.set_quota(QuotaInfo { key, bounds: bounds(hard) });
}

fn usage(snapshot: &Snapshot) -> CardUsage {
    let held = snapshot.quotas().used().get("default");
    held.and_then(|held| held.get(&profile())).copied().unwrap_or_default()
}

fn holding(memory: u64, cores: u32) -> Charge {
    let share = fixtures::share("GPU-1", memory, cores);
    let allocation = fixtures::allocation(profile().as_str(), share, Answer::Succeeded);
    Charge { init: InitPhase::Ahead, ..fixtures::charge("node", vec![allocation]) }
}

fn used() -> Value {
    let mut snapshot = cluster(&json!({"limits.nvidia.com/gpumem": "1"}));
    let mut seen = Vec::new();
    let mut note = |snapshot: &Snapshot| {
        let CardUsage { memory, cores, .. } = usage(snapshot);
        seen.push(json!([memory.get(), cores.get()]));
    };
    snapshot.charge("pod".into(), holding(1000, 100));
    note(&snapshot);
    for _ in 0..2 {
        snapshot.release(&"pod".into());
        note(&snapshot);
    }
    seen.into()
}

fn made_and_gone() -> Value {
    let made = bounds(&json!({"limits.nvidia.com/gpumem": "100", "limits.nvidia.com/gpucores": "10"}));
    let both = |bounds: &[Bound]| json!([limit(bounds, Dimension::Memory), limit(bounds, Dimension::Cores)]);
    let mut snapshot =
        cluster(&json!({"limits.nvidia.com/gpumem": "100", "limits.nvidia.com/gpucores": "10"}));
    snapshot.remove_quota(&QuotaKey { namespace: "default".into(), name: "q".into() });
    assert_eq!(snapshot.quotas().left("default", &profile()), Quota::default());
    json!([both(&made), both(&[])])
}

/// Keys that bound something else take nothing away: quotas are read whole.
fn other_keys(input: &Value) -> Value {
    let mut hard = input["active"].clone();
    for key in list(&input["deleted_quota_keys"]) {
        hard[key.as_str().unwrap()] = json!("1");
    }
    limit(&bounds(&hard), Dimension::Memory).into()
}

fn updated() -> (Value, u64) {
    let steps = [
        json!({"limits.nvidia.com/gpumem": "1000", "limits.nvidia.com/gpucores": "100"}),
        json!({"limits.nvidia.com/gpumem": "2000"}),
        json!({"limits.nvidia.com/gpumem": "3000"}),
    ];
    let mut snapshot = cluster(&steps[0]);
    snapshot.charge("pod".into(), holding(500, 0));
    let mut limits = Vec::new();
    for hard in &steps {
        set(&mut snapshot, hard);
        let left = snapshot.quotas().left("default", &profile());
        limits.push(left.memory.unwrap().get() + usage(&snapshot).memory.get());
    }
    (limits.into(), usage(&snapshot).memory.get())
}

fn managed(input: &Value) -> Value {
    let dialect = hami();
    let counted: Vec<_> = dialect.counted().iter().map(|counted| counted.resource.to_owned()).collect();
    let names = list(&input["names"]).iter().map(|name| name.as_str().unwrap().to_owned());
    names.map(|name| Value::from(counted.contains(&name))).collect()
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
        cores: left(&input["gpucore"], 1).map(Cores::new),
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
