//! HAMi's tables of its other vendors, a vendor at a time; and Volcano's of Ascend, which has the same templates.

use berth::{
    config::Config,
    device::{
        Card, CardPolicy, CardUsage, Health, Inventory, Lock, MiB, Mode, NodePolicy, PodRequest, Quota,
    },
    dialect::{
        Dialect as _, Unreadable,
        vendor::{
            Row, Settings, Vendor, amd, ascend, biren, cambricon, hygon, iluvatar,
            row::{Containers, Resources, Sizes, Template, Templates},
        },
    },
    object::{Node, Pod},
    scheduling::allocate::Held,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    call::{Call, Outcome, links},
    table::{Case, Table, Verdict},
    upstream::{annotations, assignment, card, list, node, number, pod, share, text},
};

const FILE: &str = "hami_vendors.json";
const OTHER_TYPE: &str =
    "upstream's caller asks for another vendor's type; Berth's request has no type of its own";
const HANDSHAKE: &str =
    "handshakes are neither written nor waited for: a card works as its registration says";
const LOCKED: &str =
    "whether the call to the API server is made; Berth's binder takes every lock, by tests of its own";
const IN_THE_WEBHOOK: &str =
    "upstream rounds to a template in its webhook, before this function; Berth where it reads the request";

#[test]
fn hygon() {
    let differences = [("TestDevices_Fit / fit fail: type mismatch", OTHER_TYPE)];
    let not_served = [
        ("Test_CheckHealth", HANDSHAKE),
        ("TestDevices_LockNode", LOCKED),
        ("TestDevices_ReleaseNodeLock", LOCKED),
    ];
    let family = Family { row: hygon::row(hygon::resources(), 1) };
    family.check("hygon/", &differences, &not_served);
}

#[test]
fn iluvatar() {
    let differences = [("Test_Fit / fit fail: type mismatch", OTHER_TYPE)];
    let not_served = [("TestDevices_LockNode", LOCKED), ("TestDevices_ReleaseNodeLock", LOCKED)];
    let family = Family { row: iluvatar::row("MR-V100", iluvatar::resources("MR-V100")) };
    family.check("iluvatar/", &differences, &not_served);
}

#[test]
fn amd() {
    let differences = [
        (
            "Test_MutateAdmission / requests only (limits empty) -> false",
            "upstream overlooks a count that stands in the requests alone; Berth reads it",
        ),
        (
            "TestCheckAMDType / use with only commas rejects card",
            "a list that names nothing is denied when the pod comes in, and constrains nothing afterwards",
        ),
    ];
    let resources = Resources {
        count: "amd.com/gpu".into(),
        memory: Some("amd.com/gpu-mem".into()),
        cores: Some("amd.com/gpu-core-pct".into()),
    };
    Family { row: amd::row(resources) }.check("amd/", &differences, &[]);
}

#[test]
fn biren() {
    let differences = [("TestDevices_Fit / fit fail: type mismatch", OTHER_TYPE)];
    let not_served = [
        ("Test_CheckHealth", HANDSHAKE),
        ("TestDevices_LockNode", LOCKED),
        ("TestDevices_ReleaseNodeLock", LOCKED),
    ];
    Family { row: biren::row(biren::resources()) }.check("biren/", &differences, &not_served);
}

#[test]
fn cambricon() {
    const BOTH: &str = "kubelet asks the plugin for compute and memory, each by itself; a pod that asks for one alone is never served";
    let differences = [
        ("Test_GenerateResourceRequests / resourcememoryname don't set to limits and requests", BOTH),
        ("Test_GenerateResourceRequests / resourcecoresname don't set to limits and requests", BOTH),
        ("TestDevices_Fit / fit fail: type mismatch", OTHER_TYPE),
        (
            "Test_LockNode / invalid lock time format",
            "a lock that nobody can read serves nobody: Berth reports it and takes it over",
        ),
    ];
    let not_served = [
        ("Test_ParseConfig", "Berth has a configuration of its own, with its own tests"),
        ("Test_ReleaseNodeLock", LOCKED),
    ];
    let resources = Resources { count: "cambricon.com/mlu".into(), ..cambricon::resources() };
    Family { row: cambricon::row(resources) }.check("cambricon/", &differences, &not_served);
}

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

#[test]
fn left_to_others() {
    let table = Table { file: FILE, differences: &[], not_served: &[] };
    for (folder, reason) in [
        ("awsneuron/", "chooses by a mask of cores and a graph of its own"),
        ("enflame/", "chooses a profile in a way of its own"),
        ("kunlun/", "chooses by groups of its own"),
        ("metax/", "scores nodes and cards by a topology of its own"),
        ("mthreads/", "binds a pod's containers to one card by a rule of its own"),
        ("vastai/", "chooses by the dies of a card"),
    ] {
        table.leave_folder(folder, reason);
    }
}

#[test]
fn volcano_ascend_hami_unit() {
    let table = Table {
        file: "volcano_ascend_hami_unit.json",
        differences: &[],
        not_served: &[("TestCalScore", "Volcano's own score; a node of Ascend cards scores as HAMi's do")],
    };
    table.check(|case| {
        let (data, config) = (&case.input, &case.context["config"]);
        match case.test.as_str() {
            "Test_trimMemory" => {
                let rounded = templates(config).rounded(MiB::new(number(data, "inputMem").into()));
                Verdict::of(&rounded.map_or(0, MiB::get), &number(data, "wantMem").into())
            }
            "Test_verifyReq" => {
                let family = Family { row: configured(config) };
                let request = &data["req"];
                let limits = json!({
                    "huawei.com/Ascend310P": number(request, "Nums").to_string(),
                    "huawei.com/Ascend310P-memory": number(request, "Memreq").to_string(),
                });
                let asked = family.ask(&json!({"resources": {"limits": limits}}), &Value::Null);
                Verdict::of(&json!(asked.is_ok()), &data["pass"])
            }
            "TestAscendDevice_GetNodeDevices_HAMiVnpuCore" => {
                let vendor = Family { row: chip("Ascend910A") }.vendor();
                let cards = vendor.inventory(&node(&data["annotations"])).unwrap().unwrap();
                Verdict::of(&json!(cards.cards()[0].mode == Mode::Soft), &data["expectSupport"])
            }
            other => panic!("no adapter for {other}"),
        }
    });
}

/// `name`, `name (2)` and so on: cases of one name.
fn numbered(name: &str, times: usize) -> Vec<String> {
    let later = (2..=times).map(|time| format!("{name} ({time})"));
    std::iter::once(name.to_owned()).chain(later).collect()
}

fn chip(word: &str) -> Row {
    ascend::row(word, ascend::resources(word), 1, ascend::known(word).unwrap())
}

/// A chip as upstream's `VNPUConfig` has it.
fn configured(config: &Value) -> Row {
    let word = text(config, "CommonWord").to_owned() + text(config, "commonWord");
    let factor = number(config, "MemoryFactor").max(1);
    ascend::row(&word, ascend::resources(&word), factor, templates(config))
}

fn templates(config: &Value) -> Templates {
    let either = |upper: &str, lower: &str| number(config, upper).max(number(config, lower));
    let listed = list(&config["Templates"]).iter().chain(list(&config["templates"]));
    let template = |template: &Value| Template {
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

/// What asks for one card, or for the least part of one where it must be a part.
fn one(row: &Row) -> Value {
    let parts = row.resources.shares().filter(|_| row.containers == Containers::OneStatingBoth);
    let names = std::iter::once(row.resources.count.as_str()).chain(parts);
    names.map(|name| (name.to_owned(), json!("1"))).collect::<Map<_, _>>().into()
}

/// One family of cards, held against its table.
struct Family {
    row: Row,
}

type Asked = Result<Option<PodRequest>, Vec<Unreadable>>;

impl Family {
    fn check(&self, folder: &str, differences: &[(&str, &str)], not_served: &[(&str, &str)]) {
        Table { file: FILE, differences, not_served }.check_folder(folder, |case| self.judge(case));
    }

    fn vendor(&self) -> Vendor {
        vendor(self.row.clone())
    }

    /// What a pod of this container asks.
    fn ask(&self, container: &Value, annotations: &Value) -> Asked {
        self.vendor().request(&of_container(container, annotations))
    }

    fn judge(&self, case: &Case) -> Verdict {
        let (input, expect) = (&case.input, &case.expect);
        match case.test.as_str() {
            "Test_MutateAdmission" => {
                let asked = self.ask(&input["ctr"], &Value::Null);
                match (text(expect, "wantErr"), asked) {
                    (why, Err(_)) if !why.is_empty() => Verdict::Equal,
                    (_, asked) => Verdict::of(&json!(!matches!(asked, Ok(None))), &expect["want"]),
                }
            }
            "Test_GenerateResourceRequests" if !input["resource"].is_null() => {
                let value = |key: &str| (key.to_owned(), json!(input["value"].to_string()));
                let limits: Map<String, Value> =
                    [(self.row.resources.count.clone(), json!("1")), value(text(input, "resource"))]
                        .into_iter()
                        .collect();
                let asked = self.ask(&json!({"resources": {"limits": limits}}), &Value::Null);
                Verdict::of(&matches!(asked, Ok(Some(_))), &false)
            }
            "Test_GenerateResourceRequests" | "Test_GenerateResourceRequests_OutOfRangeValues"
                if input["args"].is_null() =>
            {
                Verdict::of(&requested(self.ask(input, &Value::Null)), &wanted(&expect["want"]))
            }
            "Test_checkDCUtype" | "TestCheckAMDType" => {
                let admits = self.admits(&input["annos"], text(input, "cardtype"), text(input, "cardType"));
                Verdict::of(&json!(admits), &expect["want"])
            }
            "Test_checkType" => {
                let admits = self.admits(&input["annos"], text(&input["d"], "Type"), "");
                let ours = text(&input["n"], "Type") == self.row.word && admits;
                let expected = if expect["want"].is_null() { &expect["want2"] } else { &expect["want"] };
                Verdict::of(&json!(ours), expected)
            }
            "Test_GetNodeDevices" | "TestGetNodeDevices" => {
                Verdict::of(&self.registered(input), &list(&expect["want"]).iter().map(described).collect())
            }
            "Test_PatchAnnotations" => {
                Verdict::of(&self.recorded(&input["pd"]), &self.named(&expect["want"]))
            }
            "TestPatchAnnotations" => {
                Verdict::of(&self.recorded(&input["podDevices"]), &self.named(&expect["expected"]))
            }
            "TestDevices_AddResourceUsage" => Verdict::of(&used(input), &usage_of(&expect["wantUsage"])),
            "TestDevices_Fit" | "Test_Fit" => Verdict::of(&chosen(self.fit(input)), &fits(expect)),
            "Test_LockNode" => Verdict::of(
                &json!(self.is_locked(text(&input["annotations"], self.row.lock.key))),
                &expect["wantErr"],
            ),
            _ => of_ascend(case),
        }
    }

    fn admits(&self, annotations: &Value, model: &str, or: &str) -> bool {
        let pod = of_container(&self.one(), annotations);
        let asked = self.vendor().request(&pod).unwrap().unwrap();
        asked.selection.models.admits(&format!("{model}{or}"))
    }

    /// A container that asks for one card.
    fn one(&self) -> Value {
        json!({"resources": {"limits": one(&self.row)}})
    }

    /// Upstream's instrument writes the key that a test made of its word as an empty one.
    fn registered(&self, input: &Value) -> Vec<(String, u32, u64, u32, bool)> {
        let mut object = input.clone();
        if let berth::dialect::vendor::row::Cards::Registered { key, .. } = &self.row.cards
            && let Some(annotations) = object["metadata"]["annotations"].as_object_mut()
            && let Some(value) = annotations.remove("")
        {
            annotations.insert(key.to_owned(), value);
        }
        let node: Node = serde_json::from_value(object).unwrap();
        let inventory = self.vendor().inventory(&node).ok().flatten().unwrap_or_default();
        inventory.cards().iter().map(plain).collect()
    }

    /// What is written for this pod's devices, without what is written for every vendor.
    fn recorded(&self, devices: &Value) -> Map<String, Value> {
        let Some(containers) = devices.get(&self.row.word) else { return Map::new() };
        let now = Timestamp::from_second(1_795_236_948).unwrap();
        let record = self.vendor().record(&assignment(containers, 0), "node", now);
        let mut own = annotations(&record.annotations).as_object().unwrap().clone();
        own.retain(|key, _| !key.starts_with("hami.io/vgpu-") && !key.starts_with("hami.io/bind-"));
        // Written beside upstream's spelling, since the plugin reads no other.
        own.remove(cambricon::ASSIGNED_AS_OLDER_PLUGINS_SPELL_IT);
        if let Some(time) = own.get_mut(ascend::TIME) {
            *time = json!("{now}");
        }
        own
    }

    /// Upstream's annotations, with the family's word for the type that a test made up, and both keys for an empty one.
    fn named(&self, expected: &Value) -> Map<String, Value> {
        let mut named = Map::new();
        for (key, value) in expected.as_object().unwrap() {
            let value = json!(value.as_str().unwrap().replace(",Ascend,", &format!(",{},", self.row.word)));
            match key.as_str() {
                "" => {
                    named.insert(self.row.keys.to_allocate.clone(), value.clone());
                    named.insert(self.row.keys.allocated.clone(), value);
                }
                ascend::TIME => drop(named.insert(key.clone(), json!("{now}"))),
                _ => drop(named.insert(key.clone(), value)),
            }
        }
        named
    }

    fn fit(&self, input: &Value) -> Outcome {
        let mut hinted = input["annos"].as_object().into_iter().flatten();
        let word = hinted.find_map(|(key, _)| key.strip_prefix("hami.io/")?.strip_suffix("-uuid"));
        let word = word.map(|key| key.trim_start_matches("no-use-").trim_start_matches("use-"));
        // Upstream runs its table once for each chip, and tells them apart by the keys of hints alone.
        let row = match (&self.row.memory.sizes, word) {
            (Sizes::Templates(_), Some(word)) => chip(word),
            _ => self.row.clone(),
        };
        let vendor = vendor(row);
        let devices: Vec<_> = list(&input["devices"]).iter().collect();
        let inventory = inventory(&vendor, &devices, &input["nodeAnnotation"]);
        let call = Call {
            devices,
            request: &input["request"],
            annotations: &input["annos"],
            node: &Value::Null,
            links: links(&[]),
            quota: Quota::default(),
            held: Held::default(),
        };
        call.outcome_on(&vendor, &one(vendor.row()), &inventory)
    }

    /// Whether somebody else may hold the lock.
    fn is_locked(&self, value: &str) -> bool {
        let now: Timestamp = "2026-11-21T09:54:07Z".parse().unwrap();
        let held = match value {
            "" => json!({}),
            "{now-60s}" => json!({self.row.lock.key: (now - SignedDuration::from_secs(60)).to_string()}),
            "{now-1h}" => json!({self.row.lock.key: (now - SignedDuration::from_hours(1)).to_string()}),
            other => json!({self.row.lock.key: other}),
        };
        let vendor = self.vendor();
        let lock = vendor.lock().unwrap();
        match lock.read(&node(&held)) {
            Lock::Held { since, .. } => now.duration_since(since) < lock.expiry,
            _ => false,
        }
    }
}

fn vendor(row: Row) -> Vendor {
    let settings = Settings {
        node_policy: NodePolicy::Binpack,
        card_policies: vec![CardPolicy::Spread],
        lock_expiry: SignedDuration::from_mins(5),
    };
    Vendor::new(row, settings)
}

/// The cards as the plugin would have registered them, read back; those of a node that has no registration, as they are.
fn inventory(vendor: &Vendor, devices: &[&Value], annotations: &Value) -> Inventory {
    let berth::dialect::vendor::row::Cards::Registered { key, .. } = &vendor.row().cards else {
        return Inventory::new(devices.iter().map(|device| card(device)).collect());
    };
    let entries: Vec<_> = devices.iter().map(|device| entry(device)).collect();
    let written = if key.contains("-dcu-") || key.ends_with("V100-register") {
        entries.iter().map(fields).collect::<String>()
    } else {
        json!(entries).to_string()
    };
    let mut on_node = annotations.as_object().cloned().unwrap_or_default();
    on_node.insert(key.to_owned(), json!(written));
    vendor.inventory(&node(&Value::Object(on_node))).unwrap().unwrap()
}

fn entry(device: &Value) -> Value {
    json!({
        "id": device["ID"], "index": number(device, "Index"), "count": number(device, "Count"),
        "devmem": number(device, "Totalmem"), "devcore": number(device, "Totalcore"), "type": text(device, "Type"),
        "numa": number(device, "Numa"), "health": device["Health"] == json!(true), "custominfo": device["CustomInfo"],
    })
}

fn fields(entry: &Value) -> String {
    let number = |key: &str| number(entry, key);
    format!(
        "{},{},{},{},{},{},{}:",
        text(entry, "id"),
        number("count"),
        number("devmem"),
        number("devcore"),
        text(entry, "type"),
        number("numa"),
        entry["health"]
    )
}

/// The cards of an outcome; upstream's tables say nothing of amounts.
fn chosen(outcome: Outcome) -> Result<Vec<String>, String> {
    outcome.map(|shares| shares.into_iter().map(|(card, _, _)| card).collect())
}

fn fits(expect: &Value) -> Result<Vec<String>, String> {
    if [&expect["wantFit"], &expect["wantOK"]].into_iter().any(|fits| *fits == json!(true)) {
        return Ok(list(&expect["wantDevIDs"]).iter().map(|id| id.as_str().unwrap().to_owned()).collect());
    }
    Err(text(expect, "wantReason").to_owned())
}

fn of_container(container: &Value, annotations: &Value) -> Pod {
    pod(&json!({
        "metadata": {"name": "pod", "namespace": "default", "annotations": annotations},
        "spec": {"containers": [container]},
    }))
}

/// Cards, MiB or percent of memory, percent of compute; nothing where nothing is asked or what is asked is refused.
fn requested(asked: Asked) -> Option<(u32, MemoryOf, u32)> {
    use berth::device::MemoryRequest;
    let share = asked.ok().flatten()?.containers[0].share?;
    let memory = match share.memory {
        MemoryRequest::Exact(memory) if memory == MiB::default() => MemoryOf::Part(100),
        MemoryRequest::Exact(memory) => MemoryOf::Exact(memory.get()),
        MemoryRequest::Part(part) => MemoryOf::Part(part.get()),
    };
    Some((share.cards.get(), memory, share.cores.get()))
}

#[derive(Debug, PartialEq)]
enum MemoryOf {
    Exact(u64),
    Part(u32),
}

fn wanted(request: &Value) -> Option<(u32, MemoryOf, u32)> {
    let cards = Some(number(request, "Nums")).filter(|&cards| cards > 0)?;
    let memory = match number(request, "Memreq") {
        0 => MemoryOf::Part(number(request, "MemPercentagereq")),
        memory => MemoryOf::Exact(memory.into()),
    };
    Some((cards, memory, number(request, "Coresreq")))
}

fn plain(card: &Card) -> (String, u32, u64, u32, bool) {
    (card.id.to_string(), card.slots, card.memory.get(), card.cores.get(), card.health == Health::Healthy)
}

fn described(device: &Value) -> (String, u32, u64, u32, bool) {
    plain(&card(device))
}

fn used(input: &Value) -> CardUsage {
    usage_of(&input["deviceUsage"]).with(&share(&input["ctr"]))
}

fn usage_of(device: &Value) -> CardUsage {
    super::upstream::usage(std::slice::from_ref(device)).card(&text(device, "ID").into())
}

fn of_ascend(case: &Case) -> Verdict {
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
            given.marks = vendor(row.clone()).request(&carried).unwrap().unwrap().marks;
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
        .map(|dialect| [&dialect.hint_keys().use_id, &dialect.hint_keys().no_use_id].map(ToString::to_string))
        .collect()
}

fn keys_wanted(device: &Value) -> [String; 2] {
    ["useUUIDAnno", "noUseUUIDAnno"].map(|key| text(device, key).to_owned())
}
