//! The section `dialects.hami`: values of its keys, vendors, and a pasted file of HAMi.

use std::collections::BTreeMap;

use crate::{
    config::{Config, tests::error},
    device::LockNeed,
};

/// HAMi v2.10's `device-config.yaml` as its chart renders it, shortened in its lists.
const PASTED: &str = include_str!("../device-config.yaml");

#[test]
fn hamis_device_config_can_be_pasted() {
    let indented = format!("    {}\n", PASTED.trim_end().replace('\n', "\n    "));
    let (config, notices) = Config::parse(&format!("dialects:\n  hami:\n{indented}"), "f").unwrap();
    let modes: Vec<_> = config.dialects().iter().map(|dialect| dialect.mode().to_string()).collect();
    assert_eq!(modes, ["hami", "hami-dcu", "hami-mlu", "hami-amd", "hami-biren", "vgpu", "koordinator"]);
    let reported: Vec<_> =
        notices.iter().map(|notice| notice.key.trim_start_matches("dialects.hami.")).collect();
    for key in ["iluvatars", "vnpus", "metax", "kunlun", "vnpus.configs[2]"] {
        assert!(reported.contains(&key), "{key} is not among {reported:?}");
    }
    let flagged =
        format!("dialects:\n  hami:\n    enable-ascend: true\n    enable-iluvatar: true\n{indented}");
    let (config, _) = Config::parse(&flagged, "f").unwrap();
    let modes: Vec<_> = config.dialects().iter().map(|dialect| dialect.mode().to_string()).collect();
    for mode in ["hami-ascend910a", "hami-ascend310p", "hami-mr-v100"] {
        assert!(modes.iter().any(|known| known == mode), "{mode} is not among {modes:?}");
    }
    let text = serde_saphyr::to_string(&config).unwrap();
    assert_eq!(Config::parse(&text, "again").unwrap().0, config, "{text}");
}

#[test]
fn a_card_policy_may_be_a_list_of_different_known_ones() {
    let policy = |value: &str| format!("dialects:\n  hami:\n    gpuSchedulerPolicy: {value}\n");
    let (config, _) = Config::parse(&policy("\"binpack, topology-aware\""), "f").unwrap();
    let written = serde_json::to_value(&config).unwrap();
    assert_eq!(written["dialects"]["hami"]["gpuSchedulerPolicy"], "binpack,topology-aware");
    for (value, words) in [
        (
            "binpack,best",
            "must be `least-waste`, `binpack`, `spread`, `mutex`, `numa`, `topology-aware`, or several",
        ),
        ("\"binpack,\"", "must be `least-waste`"),
        ("spread,spread", "`spread` is given twice"),
    ] {
        let message = error(&policy(value));
        assert!(message.starts_with("berth.yaml:3: dialects.hami.gpuSchedulerPolicy: "), "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn a_vendor_is_named_where_it_is_wrong() {
    let hami = |rest: &str| error(&format!("dialects:\n  hami:\n{rest}"));
    let message = hami("    hygon: {resourceCoutName: a.b/c}\n");
    assert_eq!(
        message,
        "berth.yaml:3: dialects.hami.hygon.resourceCoutName: unknown key; the nearest known one is `resourceCountName`"
    );
    let message = hami("    hygn: {}\n");
    assert!(message.ends_with("unknown key; the nearest known one is `hygon`"), "{message}");
    let message = hami(
        "    vnpus:\n    - {commonWord: A, memoryAllocatable: 1}\n    - {commonWord: a, memoryAllocatable: 1}\n",
    );
    assert_eq!(
        message,
        "berth.yaml:5: dialects.hami.vnpus[1].commonWord: `a` is already the word of another family"
    );
    let message = hami("    vnpus: [{commonWord: A b}]\n");
    assert!(message.contains("is not a word of"), "{message}");
    let message = hami("    amd: {resourceCoreName: amd.com/gpu}\n");
    assert!(message.contains("already the name of another resource"), "{message}");
}

#[test]
fn the_error_on_a_duration_without_a_unit_names_the_form() {
    let message = error("dialects: {hami: {nodeLockExpire: 5}}\n");
    assert_eq!(
        message,
        "berth.yaml:1: dialects.hami.nodeLockExpire: must be a positive duration such as `5m` or `1m30s`, not `5`"
    );
}

#[test]
fn the_node_lock_is_left_out_where_the_settings_say_so_and_only_that_of_nvidias_plugin() {
    let needs = |text: &str| -> BTreeMap<String, LockNeed> {
        let (config, _) = Config::parse(text, "berth.yaml").unwrap();
        let dialects = config.dialects();
        let locks = dialects
            .iter()
            .flat_map(|one| one.locks().iter().map(|lock| (one.name().to_string(), lock.need)));
        locks.collect()
    };
    let of = |needs: &BTreeMap<String, LockNeed>, need| -> Vec<String> {
        needs.iter().filter(|(_, of)| **of == need).map(|(name, _)| name.clone()).collect()
    };
    let plain = needs("");
    assert_eq!(of(&plain, LockNeed::WhereContested), [""; 0]);
    let auto = needs(
        "dialects: {hami: {nodeLock: auto}, volcano: {arguments: {deviceshare.NodeLockEnable: true}}}\n",
    );
    assert_eq!(of(&auto, LockNeed::WhereContested), ["hami-nvidia"]);
    assert!(of(&auto, LockNeed::Always).len() > plain.len() - 1, "{auto:?}");
    let message = error("dialects: {hami: {nodeLock: never}}\n");
    assert_eq!(
        message,
        "berth.yaml:1: dialects.hami.nodeLock: must be `always` or `auto`, not the text `never`"
    );
}
