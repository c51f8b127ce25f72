//! Files as a whole: errors, notices, and settings that are written out and read back.

use super::*;

/// What is wrong with the text of `berth.yaml`.
pub(super) fn error(text: &str) -> String {
    Config::parse(text, "berth.yaml").unwrap_err().to_string()
}

#[test]
fn settings_in_force_read_back_as_themselves() {
    let config = Config::default();
    let text = serde_saphyr::to_string(&config).unwrap();
    assert_eq!(Config::parse(&text, "again").unwrap().0, config, "{text}");
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
    let message = error("schedulerName: berth\ndialects:\n  hami:\n    defaultCore: 3\n");
    assert_eq!(
        message,
        "berth.yaml:4: dialects.hami.defaultCore: unknown key; the nearest known one is `defaultCores`"
    );
    let message = error("dialects:\n  volcano:\n    arguments:\n      deviceshare.VGPUEnabled: true\n");
    assert_eq!(
        message,
        "berth.yaml:4: dialects.volcano.arguments.deviceshare.VGPUEnabled: unknown key; \
         the nearest known one is `deviceshare.VGPUEnable`"
    );
    let message = error("scop: opt-in\n");
    assert_eq!(message, "berth.yaml:1: scop: unknown key; the nearest known one is `scope`");
}

#[test]
fn everything_that_is_wrong_is_reported_at_once_and_by_line() {
    let text = "scop: opt-in\nadoptSchedulers: [Bad_, volcano, Worse_]\nprotection: never\nworkloads:\n- {kind: 3, templates: [{path: spec.template}]}\n\
                dialects:\n  hami:\n    defaultCores: 101\n    nodeLockExpire: soon\n  volcano: {arguments: {deviceshare.VGPUEnabled: true}}\n";
    let ConfigError::Several(errors) = Config::parse(text, "berth.yaml").unwrap_err() else {
        panic!("there are several")
    };
    let places: Vec<_> = errors
        .iter()
        .map(|error| error.to_string().splitn(4, ':').take(3).collect::<Vec<_>>().join(":"))
        .collect();
    let expected = [
        "berth.yaml:1: scop",
        "berth.yaml:2: adoptSchedulers[0]",
        "berth.yaml:2: adoptSchedulers[2]",
        "berth.yaml:3: protection",
        "berth.yaml:5: workloads[0].kind",
        "berth.yaml:8: dialects.hami.defaultCores",
        "berth.yaml:9: dialects.hami.nodeLockExpire",
        "berth.yaml:10: dialects.volcano.arguments.deviceshare.VGPUEnabled",
    ];
    assert_eq!(places, expected);
    assert_eq!(error(text).matches("; berth.yaml:").count(), 7, "the log has them on one line");
    let many = (0..100).map(|at| format!("unknown{at}: 1")).collect::<Vec<_>>().join("\n");
    assert_eq!(error(&many).matches("berth.yaml:").count(), MOST_TROUBLES);
}

#[test]
fn a_wrong_type_is_named_with_its_line() {
    let message = error("dialects:\n  hami:\n    enabled: maybe\n");
    assert_eq!(message, "berth.yaml:3: dialects.hami.enabled: must be true or false, not the text `maybe`");
    let message = error("dialects:\n  hami:\n    defaultCores: 101\n");
    assert_eq!(
        message,
        "berth.yaml:3: dialects.hami.defaultCores: must be a whole number from 0 to 100, not `101`"
    );
    let message = error("dialects: [hami]\n");
    assert_eq!(message, "berth.yaml:1: dialects: must be a mapping of keys, not a list");
    let message = error("a: b: c\n");
    assert!(message.starts_with("berth.yaml:1: "), "{message}");
}

#[test]
fn a_resource_is_of_one_mode_and_the_key_that_says_otherwise_is_named() {
    let message = error("dialects:\n  hami:\n    resourceCountName: volcano.sh/vgpu-number\n");
    assert_eq!(
        message,
        "berth.yaml:3: dialects.hami.resourceCountName: `volcano.sh/vgpu-number` would be a resource of both hami and vgpu"
    );
    let message = error("dialects:\n  hami:\n    amd: {resourceCountName: nvidia.com/gpu}\n");
    assert_eq!(
        message,
        "berth.yaml:3: dialects.hami.amd.resourceCountName: `nvidia.com/gpu` would be a resource of both hami and hami-amd"
    );
    let message = error(
        "dialects:\n  hami:\n    enable-iluvatar: true\n    iluvatars:\n    - {commonWord: A, resourceCountName: hygon.com/dcunum, \
         resourceMemoryName: a.b/m, resourceCoreName: a.b/c}\n",
    );
    assert!(message.starts_with("berth.yaml:5: dialects.hami.iluvatars[0].resourceCountName: "), "{message}");
    let unserved = "dialects: {hami: {resourceCountName: volcano.sh/vgpu-number}, volcano: {enabled: false}}";
    assert!(Config::parse(unserved, "f").is_ok(), "a dialect that is switched off has no resources");
}

#[test]
fn the_scheduler_name_of_pods_that_name_none_is_refused() {
    let message = error("schedulerName: default-scheduler\n");
    assert!(message.starts_with("berth.yaml:1: schedulerName: `default-scheduler` is kube-scheduler's"));
    assert!(Config::parse("adoptSchedulers: [default-scheduler]", "f").is_ok());
}

#[test]
fn the_error_on_a_section_in_the_wrong_place_names_the_right_one() {
    let message = error("scope: opt-in\nnvidia: {resourceCountName: nvidia.com/gpu}\n");
    assert_eq!(
        message,
        "berth.yaml:2: nvidia: a section of HAMi's file, which belongs below `dialects.hami`"
    );
    let message = error("dialects:\n  hami:\n    nvidia: {defaultMemory: 1}\n    defaultCores: 1\n");
    assert_eq!(
        message,
        "berth.yaml:4: dialects.hami.defaultCores: is set beside the section `nvidia:`; move it into that section"
    );
}

#[test]
fn each_key_without_effect_is_reported_once() {
    let text = "dialects:\n  hami:\n    deviceSplitCount: 10\n    http_bind: x\n  volcano:\n    arguments:\n      \
                deviceshare.KnownGeometriesCMName: x\n";
    let (_, notices) = Config::parse(text, "f").unwrap();
    let keys: Vec<_> = notices.iter().map(|notice| (notice.line, notice.key.as_str())).collect();
    let expected = [
        (3, "dialects.hami.deviceSplitCount"),
        (4, "dialects.hami.http_bind"),
        (7, "dialects.volcano.arguments.deviceshare.KnownGeometriesCMName"),
    ];
    assert_eq!(keys, expected);
}
