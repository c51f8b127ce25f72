//! What the rows say, and what is read and written by them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{row::Sizes, *};
use crate::device::{CoreRequest, Cores, MemoryRequest, MiB, Mode, Percent, ShareRequest};

fn rows() -> Vec<VendorRow> {
    let iluvatar = iluvatar::WORDS.map(|word| iluvatar::row(word, iluvatar::resources(word)));
    let ascend = ascend::WORDS.map(|word| {
        ascend::row(word, ascend::resources(word), 1, ascend::known(word).expect("it is listed"))
    });
    let others = [
        hygon::row(hygon::resources(), 1),
        amd::row(amd::resources()),
        biren::row(biren::resources()),
        cambricon::row(cambricon::resources()),
    ];
    others.into_iter().chain(iluvatar).chain(ascend).collect()
}

fn vendor(row: VendorRow) -> Vendor {
    let settings = VendorSettings {
        node_policy: NodePolicy::Binpack,
        card_policies: vec![CardPolicy::Spread],
        lock_expiry: SignedDuration::from_mins(5),
    };
    Vendor::new(row, settings)
}

fn chip(word: &str) -> Vendor {
    vendor(ascend::row(word, ascend::resources(word), 1, ascend::known(word).unwrap()))
}

fn pod(annotations: &Value, limits: &Value) -> Pod {
    let metadata = json!({"name": "pod", "annotations": annotations});
    let containers = json!([{"name": "main", "resources": {"limits": limits}}]);
    serde_json::from_value(json!({"metadata": metadata, "spec": {"containers": containers}})).unwrap()
}

fn node(annotations: &Value, capacity: &Value) -> Node {
    let metadata = json!({"name": "n", "annotations": annotations});
    serde_json::from_value(json!({"metadata": metadata, "status": {"capacity": capacity}})).unwrap()
}

fn share(vendor: &Vendor, annotations: &Value, limits: &Value) -> Result<ShareRequest, String> {
    let asked = vendor.request(&pod(annotations, limits), MissingCount::Refuse);
    let asked = asked.map_err(|troubles| troubles[0].to_string())?;
    Ok(asked.unwrap().containers[0].share.unwrap())
}

#[test]
fn no_two_rows_share_a_name_a_resource_or_a_key() {
    let mut seen = BTreeSet::new();
    for row in rows() {
        let VendorRow { name, word, keys, hints, resources, .. } = &row;
        let keys = [&keys.to_allocate, &keys.allocated, &*hints.use_id, &*hints.no_use_id];
        let names = [name.as_str(), word].into_iter().chain(keys).chain(resources.all());
        for name in names {
            assert!(seen.insert(name.to_owned()), "{name} is there twice");
        }
    }
}

#[test]
fn templates_grow_and_end_below_a_whole_card() {
    for row in rows() {
        let Sizes::Templates(templates) = row.memory.sizes else { continue };
        let sizes: Vec<_> = templates.sizes.iter().map(|template| template.memory).collect();
        assert!(sizes.is_sorted() && sizes.last() < Some(&templates.allocatable), "{}", row.word);
        assert!(templates.allocatable <= templates.capacity);
        assert_eq!(templates.rounded(templates.capacity + MiB::new(1)), None);
    }
}

#[test]
fn memory_is_asked_for_in_the_vendors_units() {
    let iluvatar = vendor(iluvatar::row("MR-V50", iluvatar::resources("MR-V50")));
    let limits = json!({"iluvatar.ai/MR-V50-vgpu": "1", "iluvatar.ai/MR-V50.vMem": "16"});
    assert_eq!(share(&iluvatar, &json!({}), &limits).unwrap().memory, MemoryRequest::Exact(MiB::new(4096)));
    let bytes = json!({"iluvatar.ai/MR-V50-vgpu": "1", "iluvatar.ai/MR-V50.vMem": "16Gi"});
    let told = share(&iluvatar, &json!({}), &bytes).unwrap_err();
    assert!(told.ends_with("write units of 256 MiB: `64` for 16Gi"), "{told}");
}

#[test]
fn what_is_not_said_is_the_vendors_default() {
    let whole = MemoryRequest::Part(Percent::WHOLE);
    for (row, memory, cores) in [
        (hygon::row(hygon::resources(), 1), whole, 100),
        (amd::row(amd::resources()), whole, 100),
        (biren::row(biren::resources()), MemoryRequest::Exact(MiB::new(0)), 0),
        (iluvatar::row("BI-V100", iluvatar::resources("BI-V100")), whole, 0),
    ] {
        let vendor = vendor(row);
        let count = vendor.row().resources.count.clone();
        let share = share(&vendor, &json!({}), &json!({count: "1"})).unwrap();
        assert_eq!((share.memory, share.cores.get()), (memory, cores), "{}", vendor.row().word);
    }
}

#[test]
fn several_iluvatar_cards_are_computed_on_alone() {
    let iluvatar = vendor(iluvatar::row("BI-V150", iluvatar::resources("BI-V150")));
    let limits = json!({"iluvatar.ai/BI-V150-vgpu": "2", "iluvatar.ai/BI-V150.vCore": "30"});
    assert_eq!(share(&iluvatar, &json!({}), &limits).unwrap().cores, CoreRequest::Exact(Cores::WHOLE));
}

#[test]
fn ascend_gives_templates_unless_the_pod_wants_a_share_in_software() {
    let chip = chip("Ascend310P");
    let limits = |core: &str| json!({"huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "4000", "huawei.com/Ascend310P-core": core});
    let soft = json!({ascend::MODE: ascend::SOFTWARE});
    let memory = |share: ShareRequest| share.memory.of(MiB::new(21_527)).get();
    assert_eq!(share(&chip, &json!({}), &limits("0")).map(memory), Ok(6144));
    assert!(share(&chip, &json!({}), &limits("20")).is_err());
    assert_eq!(share(&chip, &soft, &limits("20")).map(memory), Ok(4000));
    let asked = chip.request(&pod(&soft, &limits("20")), MissingCount::Refuse).unwrap().unwrap();
    assert_eq!(asked.selection.modes, Some(vec![Mode::Soft]));
}

#[test]
fn a_node_shares_ascend_cards_as_it_says() {
    let chip = chip("Ascend910B3");
    let register = r#"[{"id":"a","count":4,"devmem":65536,"devcore":20,"health":true}]"#;
    let card = |mode: &str| {
        let annotations = json!({"hami.io/node-register-Ascend910B3": register, "hami-vnpu-core": mode});
        let cards = chip.inventory(&node(&annotations, &json!({}))).unwrap().unwrap();
        (cards.cards()[0].mode, cards.cards()[0].cores.get())
    };
    assert_eq!(card("false"), (Mode::Templates, 20));
    assert_eq!(card("true"), (Mode::Soft, 100));
}

#[test]
fn cards_of_one_network_are_linked() {
    let chip = chip("Ascend910A");
    let card = |id: &str, network: u32| json!({"id": id, "custominfo": {"NetworkID": network}});
    let register = json!([card("a", 0), card("b", 1), card("c", 1)]).to_string();
    let annotations = json!({"hami.io/node-register-Ascend910A": register});
    let cards = chip.inventory(&node(&annotations, &json!({}))).unwrap().unwrap();
    let links = |first: &str, second: &str| cards.links().between(&first.into(), &second.into());
    assert_eq!([links("b", "c"), links("c", "b"), links("a", "b")], [1, 1, 0]);
}

#[test]
fn cambricons_cards_are_reckoned_from_what_the_node_has() {
    let mlu = vendor(cambricon::row(cambricon::resources()));
    let read = |cores: &str, memory: &str| {
        let capacity =
            json!({"cambricon.com/mlu.smlu.vcore": cores, "cambricon.com/mlu.smlu.vmemory": memory});
        mlu.inventory(&node(&json!({}), &capacity))
    };
    let cards = read("200", "192").unwrap().unwrap();
    let cards: Vec<_> = cards.cards().iter().map(|card| (card.id.as_str(), card.memory.get())).collect();
    assert_eq!(cards, [("n-cambricon-mlu-0", 24_576), ("n-cambricon-mlu-1", 24_576)]);
    assert_eq!(read("0", "0"), Ok(None));
    assert!(read("1e30", "1").is_err() && read("-1", "1").is_err() && read("0.5", "1").is_err());
}

#[test]
fn what_a_plugin_would_not_serve_is_refused() {
    let (amd, mlu) = (vendor(amd::row(amd::resources())), vendor(cambricon::row(cambricon::resources())));
    let asks = |vendor: &Vendor, spec: Value| {
        let asked =
            vendor.request(&serde_json::from_value(json!({"spec": spec})).unwrap(), MissingCount::Refuse);
        asked.map(drop).map_err(|troubles| troubles[0].to_string())
    };
    let container = |limits: &Value| json!({"name": "main", "resources": {"limits": limits}});
    let card = container(&json!({"amd.com/gpu": "2"}));
    assert_eq!(asks(&amd, json!({"containers": [{"name": "log"}, card]})), Ok(()));
    assert_eq!(asks(&amd, json!({"initContainers": [card], "containers": [{"name": "main"}]})), Ok(()));
    let told = asks(&amd, json!({"initContainers": [card], "containers": [card]})).unwrap_err();
    assert!(told.starts_with("spec.containers[0].resources.limits[amd.com/gpu]: "), "{told}");
    let part = |count: &str, cores: &str, memory: &str| {
        container(&json!({
            "cambricon.com/vmlu": count, "cambricon.com/mlu.smlu.vcore": cores, "cambricon.com/mlu.smlu.vmemory": memory,
        }))
    };
    let good = part("1", "10", "4");
    assert_eq!(asks(&mlu, json!({"containers": [{"name": "log"}, good]})), Ok(()));
    for (containers, reason) in [
        (json!({"containers": [good, good]}), "one container"),
        (json!({"initContainers": [good]}), "init container"),
        (json!({"containers": [part("2", "10", "4")]}), "one card"),
        (json!({"containers": [part("1", "10", "0")]}), "add `cambricon.com/mlu.smlu.vmemory`"),
        (json!({"containers": [part("1", "0", "4")]}), "add `cambricon.com/mlu.smlu.vcore`"),
    ] {
        let told = asks(&mlu, containers).unwrap_err();
        assert!(told.contains(reason), "{told}");
    }
}

#[test]
fn cambricons_plugin_answers_in_its_own_words() {
    let mlu = vendor(cambricon::row(cambricon::resources()));
    let answer = |annotations: &Value| mlu.answer(&pod(annotations, &json!({})));
    assert_eq!(answer(&json!({"hami.io/bind-phase": "allocating"})), Answer::Awaited);
    assert_eq!(answer(&json!({cambricon::ASSIGNED_AS_OLDER_PLUGINS_SPELL_IT: "true"})), Answer::Succeeded);
}

/// HAMi v2.4 to v2.5.3 writes the blank share for every vendor.
#[test]
fn a_blank_share_beside_a_card_holds_nothing() {
    for row in rows() {
        let (key, word) = (row.keys.allocated.clone(), row.word.clone());
        let vendor = vendor(row);
        let pod = pod(&json!({key: format!("card-0,{word},1000,10:;,,0,0:;")}), &json!({}));
        let Carried { assignment, unread, .. } = vendor.assignment(&pod).unwrap().unwrap();
        assert_eq!((assignment.shares().count(), unread), (1, vec![]), "{word}");
    }
}
