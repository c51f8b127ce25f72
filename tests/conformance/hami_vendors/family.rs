//! One vendor's family of cards, held against its table.
//!
//! Knows nothing of a vendor by name but where its plugin writes in a way of its own.

use berth::{
    device::{CardPolicy, Lock, NodePolicy, Quota},
    dialect::{
        Dialect as _,
        vendor::{
            Vendor, VendorRow, VendorSettings, ascend, cambricon,
            row::{Cards, Sizes},
        },
    },
    object::Node,
    scheduling::plugin::allocate::HeldByPod,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    FILE,
    ascend::{chip, of_ascend},
    cards::{chosen, described, fits, inventory, plain, usage_of, used},
    request::{Asked, of_container, one, requested, wanted},
};
use crate::{
    call::{Call, Outcome, links},
    table::{Case, Table, Verdict},
    upstream::{annotations, assignment, list, node, text},
};

/// One family of cards, held against its table.
pub(crate) struct Family {
    pub(crate) row: VendorRow,
}

impl Family {
    pub(crate) fn check(&self, folder: &str, differences: &[(&str, &str)], not_served: &[(&str, &str)]) {
        Table { file: FILE, differences, not_served }.check_folder(folder, |case| self.judge(case));
    }

    pub(crate) fn vendor(&self) -> Vendor {
        vendor(self.row.clone())
    }

    /// What a pod of this container asks.
    pub(crate) fn ask(&self, container: &Value, annotations: &Value) -> Asked {
        self.vendor().request(&of_container(container, annotations), berth::dialect::MissingCount::Refuse)
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
        let asked = self.vendor().request(&pod, berth::dialect::MissingCount::Refuse).unwrap().unwrap();
        asked.selection.models.admits(&format!("{model}{or}"))
    }

    /// A container that asks for one card.
    pub(crate) fn one(&self) -> Value {
        json!({"resources": {"limits": one(&self.row)}})
    }

    /// Upstream's instrument writes the key that a test made of its word as an empty one.
    fn registered(&self, input: &Value) -> Vec<(String, u32, u64, u32, bool)> {
        let mut object = input.clone();
        if let Cards::Registered { key, .. } = &self.row.cards
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
            held: HeldByPod::default(),
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
        let lock = &vendor.locks()[0];
        match lock.read(&node(&held)) {
            Lock::Held { since, .. } => now.duration_since(since) < lock.expiry,
            _ => false,
        }
    }
}

pub(crate) fn vendor(row: VendorRow) -> Vendor {
    let settings = VendorSettings {
        node_policy: NodePolicy::Binpack,
        card_policies: vec![CardPolicy::Spread],
        lock_expiry: SignedDuration::from_mins(5),
    };
    Vendor::new(row, settings)
}
