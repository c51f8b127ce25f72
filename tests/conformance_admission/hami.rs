//! `hami_webhook.json` and `hami_quota.json`.

use std::{collections::BTreeMap, sync::Arc};

use berth::{
    admission::{AdmissionStage, Facts, NamespaceQuota, Operation, Request, Verdict, review},
    config::Config,
    device::{MemoryRequest, ShareRequest},
    object::Pod,
};
use serde_json::{Value, json};

use super::outcome::{Tally, table};

const NOT_AN_NVIDIA_CARD: &str =
    "other vendors' resources are none of Berth's business: such a pod is left alone";
const SILENT: &str = "HAMi takes what it can't read for another number or for no GPU at all; ours refuses it and names the field";

const WEBHOOK: [(&str, &str); 14] = [
    ("TestGenerateResourceRequests / gpu count + memory percentage above 100 — clamped to 100", SILENT),
    (
        "TestGenerateResourceRequests / gpu count + memory percentage beyond int32 range — clamped to 100 without wrapping",
        SILENT,
    ),
    (
        "TestGenerateResourceRequests / gpu count + memory percentage equal to sentinel 101 — clamped to 100",
        SILENT,
    ),
    ("TestGenerateResourceRequests / negative memory percentage — treated as unset", SILENT),
    ("TestGenerateResourceRequests / byte-scale memory quantity that overflows int32 is rejected", SILENT),
    ("TestGenerateResourceRequests / decimal-form memory request is rejected, not treated as zero", SILENT),
    ("TestFitResourceQuotaNonNvidia / mlu memory over quota", NOT_AN_NVIDIA_CARD),
    ("TestFitResourceQuotaNonNvidia / mlu cores over quota", NOT_AN_NVIDIA_CARD),
    ("TestFitResourceQuotaNonNvidia / dcu memory over quota", NOT_AN_NVIDIA_CARD),
    ("TestPodHasNodeName", "denied as well; the words say what to change"),
    (
        "TestPodHasDifferentScheduler",
        "let in as well; the person who submits the pod is told by a warning, not by a message that nobody prints",
    ),
    (
        "TestEmptyContainersDenied",
        "a pod without containers asks for no share; the API server itself refuses it",
    ),
    ("TestFitResourceQuotaCountsEveryDevice", NOT_AN_NVIDIA_CARD),
    ("TestFitResourceQuotaAscendMemoryFactor / over", NOT_AN_NVIDIA_CARD),
];

fn config(names: &Value) -> Config {
    let mut hami = json!({});
    for (theirs, ours) in [
        ("ResourceCountName", "resourceCountName"),
        ("ResourceMemoryName", "resourceMemoryName"),
        ("ResourceMemoryPercentageName", "resourceMemoryPercentageName"),
        ("ResourceCoreName", "resourceCoreName"),
        ("DefaultGPUNum", "defaultGPUNum"),
    ] {
        if let Some(value) = names.get(theirs) {
            hami[ours] = value.clone();
        }
    }
    let settings = json!({"schedulerName": "hami-scheduler", "dialects": {"hami": hami}});
    Config::parse(&serde_saphyr::to_string(&settings).unwrap(), "case").unwrap().0
}

/// HAMi's tests on whole pods use these names.
fn hami_io() -> Value {
    json!({
        "ResourceCountName": "hami.io/gpu", "ResourceMemoryName": "hami.io/gpumem", "ResourceCoreName": "hami.io/gpucores",
    })
}

fn facts(names: &Value) -> Facts {
    let config = config(names);
    Facts::new(config.admission_settings(), config.dialects())
}

fn of_container(container: &Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"containers": [container]}})
}

fn mutate(pod: &Value, facts: &Facts) -> Verdict {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    let request = Request {
        stage: AdmissionStage::Mutate,
        operation: Operation::Create,
        namespace: "default",
        pod: &pod,
    };
    review(&request, facts)
}

fn patched(pod: &Value, facts: &Facts) -> Value {
    let mut pod = pod.clone();
    if let Verdict::Admitted { patch, .. } = mutate(&pod, facts) {
        json_patch::patch(&mut pod, &patch).unwrap();
    }
    pod
}

/// The request as HAMi's struct shows it: zero fields left out.
fn request(share: Option<ShareRequest>) -> Value {
    let Some(share) = share else { return json!({}) };
    let mut request = json!({"Nums": share.cards.get(), "Type": "NVIDIA"});
    match share.memory {
        MemoryRequest::Exact(amount) => {
            request["Memreq"] = amount.get().into();
            request["MemPercentagereq"] = 101.into();
        }
        MemoryRequest::Part(part) => request["MemPercentagereq"] = part.get().into(),
    }
    if share.cores.get() > 0 {
        request["Coresreq"] = share.cores.get().into();
    }
    request
}

/// What each container asks, or the refusal.
fn requests(pod: &Value, facts: &Facts) -> Result<Vec<Value>, Value> {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    let dialect = facts.dialects.iter().next().unwrap();
    let containers = pod.spec.containers.len();
    match dialect.request(&pod, berth::dialect::MissingCount::Refuse) {
        Ok(Some(asked)) => Ok(asked.containers.iter().map(|container| request(container.share)).collect()),
        Ok(None) => Ok(vec![json!({}); containers]),
        Err(troubles) => Err(json!({"refused": troubles[0].message})),
    }
}

#[test]
fn the_webhook_table() {
    let Some(table) = table("hami_webhook.json") else { return };
    let mut tally = Tally::new("hami_webhook.json", &WEBHOOK);
    for group in table["groups"].as_array().unwrap() {
        for case in group["cases"].as_array().unwrap() {
            let (theirs, ours) = webhook_case(group["test"].as_str().unwrap(), case);
            tally.case(case["name"].as_str().unwrap(), &theirs, &ours);
        }
    }
    tally.end();
}

fn webhook_case(test: &str, case: &Value) -> (Value, Value) {
    let (input, expect) = (&case["input"], &case["expect"]);
    match test {
        "Test_MutateAdmission" => {
            let verdict = mutate(&of_container(input), &facts(&json!({})));
            (expect["want"].clone(), (verdict != Verdict::Ignored).into())
        }
        "Test_MutateAdmission_MemoryPercentageValidation" => {
            let limits =
                json!({"nvidia.com/gpu": "1", "nvidia.com/gpumem-percentage": input["pct"].to_string()});
            let verdict =
                mutate(&of_container(&json!({"resources": {"limits": limits}})), &facts(&json!({})));
            (expect["wantErr"].clone(), matches!(verdict, Verdict::Denied { .. }).into())
        }
        "TestMutateAdmissionDefaultsExclusiveCore" => exclusive(input, expect),
        "TestGenerateResourceRequests" => {
            let ours = requests(&of_container(&input["ctr"]), &facts(&json!({})));
            (expect["want"].clone(), ours.map_or_else(|refused| refused, |mut all| all.remove(0)))
        }
        "Test_Resourcereqs" => {
            let unwrapped = |want: &Value| want.get("NVIDIA").cloned().unwrap_or_else(|| json!({}));
            let theirs: Vec<_> = expect["want"].as_array().unwrap().iter().map(unwrapped).collect();
            (theirs.into(), requests(input, &facts(&hami_io())).map_or_else(|refused| refused, Value::from))
        }
        "TestFitResourceQuota" | "TestFitResourceQuotaNonNvidia" => {
            (expect["fit"].clone(), fits(&input["pod"], (1000, 2000), (200, 400)).into())
        }
        _ => handler(case),
    }
}

fn exclusive(input: &Value, expect: &Value) -> (Value, Value) {
    let names = &input["config"];
    let mut resources = json!({});
    for section in ["limits", "requests"] {
        if !input[section].is_null() {
            resources[section] = input[section].clone();
        }
    }
    let pod = patched(&of_container(&json!({ "resources": resources })), &facts(names));
    let cores =
        pod["spec"]["containers"][0]["resources"]["limits"].get(names["ResourceCoreName"].as_str().unwrap());
    let value = cores.and_then(Value::as_str).map_or(0, |text| text.parse::<u32>().unwrap());
    (expect.clone(), json!({"expectCore": value, "wantCore": cores.is_some()}))
}

/// The tests that are no tables. HAMi's short form of a container has the limits at its top.
fn handler(case: &Value) -> (Value, Value) {
    let (input, expect) = (&case["input"], &case["expect"]);
    if let Some(limits) = input.get("pod_limits") {
        let pod = of_container(&json!({"resources": {"limits": limits}}));
        return (expect["fit"].clone(), (mutate(&pod, &facts(&json!({}))) == Verdict::Ignored).into());
    }
    let mut pod = input["pod"].clone();
    pod["metadata"] = json!({"name": "p"});
    for container in pod["spec"]["containers"].as_array_mut().unwrap() {
        *container = json!({"name": "c", "resources": {"limits": container["limits"]}});
    }
    let ours = match mutate(&pod, &facts(&hami_io())) {
        Verdict::Denied { violations, .. } => json!({"allowed": false, "message": violations[0].message}),
        verdict => {
            json!({"allowed": true, "message": verdict.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")})
        }
    };
    (expect.clone(), ours)
}

/// Whether a pod fits quotas of memory and cores, each as used and limit.
fn fits(pod: &Value, memory: (u64, u64), cores: (u64, u64)) -> bool {
    let mut facts = facts(&json!({}));
    let hard = [("limits.nvidia.com/gpumem", memory.1), ("limits.nvidia.com/gpucores", cores.1)];
    let used = [("nvidia.com/gpumem", memory.0), ("nvidia.com/gpucores", cores.0)];
    facts.quotas = Arc::new(BTreeMap::from([("default".to_owned(), quota(&hard, &used))]));
    !matches!(mutate(pod, &facts), Verdict::Denied { .. })
}

fn quota(hard: &[(&str, u64)], used: &[(&str, u64)]) -> NamespaceQuota {
    let mut quota = NamespaceQuota::default();
    let hard: BTreeMap<_, _> = hard.iter().map(|(key, units)| (*key, units.to_string())).collect();
    let object = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    quota.limit(&serde_json::from_value(object).unwrap(), &facts(&json!({})).dialects);
    quota.charge(&used.iter().map(|(name, units)| ((*name).to_owned(), *units)).collect());
    quota
}

const QUOTA: [(&str, &str); 1] = [(
    "TestIsManagedQuota",
    "HAMi's test names a core resource `nvidia.com/gpucore` by its own setting; here it is `nvidia.com/gpucores`",
)];

#[test]
fn the_quota_table() {
    let Some(table) = table("hami_quota.json") else { return };
    let mut tally = Tally::new("hami_quota.json", &QUOTA);
    for case in table["groups"][0]["cases"].as_array().unwrap() {
        let (input, expect) = (&case["input"], &case["expect"]);
        let name = case["name"].as_str().unwrap();
        let (theirs, ours) = match name {
            "TestAddUsageAndRmUsage" => (expect["after_each"][0].clone(), charged()),
            "TestAddQuotaAndDelQuota" => (expect["limits_after_each"].clone(), made_and_gone()),
            "TestDelQuotaNonLimitsKey" => (expect["limit_gpumem"].clone(), other_keys(input)),
            "TestUpdateQuota" => (expect["mem_limit"].clone(), updated()),
            "TestIsManagedQuota" => (expect.clone(), managed(input)),
            _ => (expect.clone(), fit_quota(input).into()),
        };
        tally.case(name, &theirs, &ours);
    }
    tally.end();
}

/// HAMi's books are in MiB and its limits in units of the factor; ours are both in units.
fn fit_quota(input: &Value) -> bool {
    let elsewhere = input.get("namespace_has_no_quota").is_some() || input.get("vendor").is_some();
    let number = |path: &str| input.pointer(path).and_then(Value::as_u64);
    let factor = number("/factor").unwrap_or(1);
    let hard = input.pointer("/hard/limits.nvidia.com~1gpumem").and_then(Value::as_str);
    let memory = (
        number("/gpumem/used").unwrap_or(0) / factor,
        hard.map_or_else(|| number("/gpumem/limit"), |hard| hard.parse().ok()).unwrap_or(u64::MAX >> 1),
    );
    let cores = (number("/gpucore/used").unwrap_or(0), number("/gpucore/limit").unwrap_or(u64::MAX >> 1));
    // 300 percent of one card can't be asked for: as many cards as it takes, each whole.
    let asked = number("/cores").unwrap_or(0);
    let cards = asked.div_ceil(100).max(1);
    let units = number("/mem").unwrap_or(0) / factor / cards;
    let limits = json!({
        "nvidia.com/gpu": cards.to_string(), "nvidia.com/gpumem": units.to_string(),
        "nvidia.com/gpucores": (asked / cards).to_string(),
    });
    let pod = of_container(&json!({"resources": {"limits": limits}}));
    elsewhere || fits(&pod, memory, cores)
}

fn charged() -> Value {
    let quota = quota(&[], &[("nvidia.com/gpumem", 1000), ("nvidia.com/gpucores", 100)]);
    json!([quota.used["nvidia.com/gpumem"], quota.used["nvidia.com/gpucores"]])
}

fn units(quota: &NamespaceQuota, resource: &str) -> u64 {
    quota.limits.get(resource).map_or(0, |limit| limit.units)
}

fn made_and_gone() -> Value {
    let quotas = [
        quota(&[("limits.nvidia.com/gpumem", 100), ("limits.nvidia.com/gpucores", 10)], &[]),
        NamespaceQuota::default(),
    ];
    let both = |quota: &NamespaceQuota| {
        json!([units(quota, "nvidia.com/gpumem"), units(quota, "nvidia.com/gpucores")])
    };
    quotas.iter().map(both).collect()
}

fn other_keys(input: &Value) -> Value {
    let active = input["active"]["limits.nvidia.com/gpumem"].as_u64().unwrap();
    let others = input["deleted_quota_keys"].as_array().unwrap().iter().map(|key| (key.as_str().unwrap(), 1));
    let hard: Vec<_> = others.chain([("limits.nvidia.com/gpumem", active)]).collect();
    units(&quota(&hard, &[]), "nvidia.com/gpumem").into()
}

fn updated() -> Value {
    let limit = |units_of_memory| {
        units(&quota(&[("limits.nvidia.com/gpumem", units_of_memory)], &[]), "nvidia.com/gpumem")
    };
    json!([limit(1000), limit(2000), limit(3000)])
}

fn managed(input: &Value) -> Value {
    let facts = facts(&json!({}));
    let known = |name: &Value| {
        let name = name.as_str().unwrap();
        facts.settings.resources.values().any(|names| names.memory == name || names.cores == name)
    };
    input["names"].as_array().unwrap().iter().map(|name| Value::from(known(name))).collect()
}
