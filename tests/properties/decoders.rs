//! No text makes a decoder panic, and what is not refused is within its bounds.

use berth::{
    dialect::{Dialect as _, hami, lock, volcano},
    object::Node,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::records;

fn node(key: &str, text: &str) -> Node {
    serde_json::from_value(json!({"metadata": {"name": "node", "annotations": {key: text}}})).unwrap()
}

/// Text of the letters that the encodings are made of, and any other.
fn text() -> impl Strategy<Value = String> {
    let alike = "(GPU-[0-9a-f]{1,3}(\\[[a-z0-9]{0,3}-?[0-9]{0,11}\\]?)?|[0-9-]{0,12}|NVIDIA|true|false|mig|hami-core|[,:;]){0,40}";
    prop_oneof![alike, ".{0,60}"]
}

/// JSON with the keys of registrations and slices, and values of any kind.
fn document() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        any::<i64>().prop_map(|number| json!(number)),
        any::<bool>().prop_map(|truth| json!(truth)),
        "[a-z0-9-]{0,6}".prop_map(|text| json!(text)),
        Just(Value::Null),
        any::<i64>().prop_map(|network| json!({"NetworkID": network})),
        Just(json!([{"start": 0, "size": 1, "name": "1g", "memoryMB": -1}])),
        Just(json!({"start": 4_294_967_295_u32, "size": 4_294_967_295_u32})),
    ];
    let keys = prop::sample::select(vec![
        "id",
        "index",
        "count",
        "devmem",
        "devcore",
        "type",
        "numa",
        "mode",
        "health",
        "migProfiles",
        "containerIndex",
        "deviceIndex",
        "gpuUUID",
        "profile",
        "placement",
        "uuid",
        "score",
        "custominfo",
    ]);
    let entry = prop::collection::btree_map(keys, value, 0..10).prop_map(|entry| json!(entry));
    prop::collection::vec(entry, 0..3).prop_map(|entries| json!(entries).to_string())
}

proptest! {
    #[test]
    fn registrations(text in prop_oneof![text(), document()]) {
        for key in [hami::names::REGISTER, hami::names::LINKS] {
            if let Ok(Some(inventory)) = records::hami().inventory(&node(key, &text)) {
                prop_assert!(inventory.duplicate().is_none());
            }
        }
        if let Ok(Some(inventory)) = records::volcano().inventory(&node(volcano::names::REGISTER, &text)) {
            prop_assert!(inventory.duplicate().is_none());
        }
    }

    #[test]
    fn registrations_of_every_vendor(
        text in prop_oneof![text(), document()],
        amounts in prop::collection::vec(prop_oneof!["[0-9]{1,20}", "[0-9.]{1,6}(m|k|Ki|E)?", text()], 2),
    ) {
        for vendor in records::vendors() {
            let keys = ["hami.io/node-dcu-register", "hami.io/node-amd-register", "hami.io/node-register-Ascend910B3"];
            let annotations: serde_json::Map<_, _> = keys.map(|key| (key.to_owned(), json!(text))).into_iter().collect();
            let resources = vendor.resources();
            let capacity: serde_json::Map<_, _> =
                resources.iter().skip(1).zip(&amounts).map(|(name, amount)| ((*name).to_owned(), json!(amount))).collect();
            let object = json!({"metadata": {"name": "node", "annotations": annotations}, "status": {"capacity": capacity}});
            if let Ok(Some(inventory)) = vendor.inventory(&serde_json::from_value(object).unwrap()) {
                prop_assert!(inventory.duplicate().is_none() && inventory.cards().len() <= 1024);
            }
        }
    }

    #[test]
    fn assignments(text in text(), slices in prop_oneof![text(), document()]) {
        let annotations = json!({
            hami::names::ALLOCATED: text, hami::names::MIG: slices, volcano::names::IDS: text, volcano::names::GPU_INDEX: text,
        });
        let pod = serde_json::from_value(json!({"metadata": {"name": "pod", "annotations": annotations}})).unwrap();
        let vendors = records::vendors().into_iter().map(|vendor| {
            let record = vendor.record(&berth::device::Assignment::default(), "node", jiff::Timestamp::UNIX_EPOCH);
            let annotations: std::collections::BTreeMap<_, _> =
                record.annotations.into_keys().map(|key| (key, text.clone())).collect();
            let pod = serde_json::from_value(json!({"metadata": {"name": "pod", "annotations": annotations}})).unwrap();
            vendor.assignment(&pod)
        });
        let known = [records::hami().assignment(&pod), records::volcano().assignment(&pod)];
        for read in known.into_iter().chain(vendors).flatten().flatten() {
            prop_assert!(read.assignment.shares().all(|share| share.cores.get() <= i32::MAX.unsigned_abs()));
        }
    }

    #[test]
    fn locks(text in text()) {
        lock::parse(&text);
    }
}
