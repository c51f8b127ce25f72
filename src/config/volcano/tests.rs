//! The section `dialects.volcano`: arguments of deviceshare and tdm.

use crate::config::{Config, tests::error};

#[test]
fn sharing_modes_of_volcano_that_exclude_each_other_are_refused() {
    let arguments = |lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| format!("      deviceshare.{line}\n")).collect();
        Config::parse(&format!("dialects:\n  volcano:\n    arguments:\n{}", lines.concat()), "f")
    };
    assert!(arguments(&["GPUSharingEnable: true", "GPUNumberEnable: true"]).is_err());
    assert!(arguments(&["GPUSharingEnable: true", "VGPUEnable: true"]).is_err());
    assert!(arguments(&["GPUNumberEnable: \"T\"", "VGPUEnable: \"1\""]).is_err());
    let (config, notices) = arguments(&["GPUSharingEnable: true"]).unwrap();
    assert!(
        !config.dialects.volcano.arguments.modes.vgpu,
        "vGPU is the default only where no other mode is on"
    );
    assert!(notices.is_empty(), "{notices:?}");
    let modes: Vec<_> = config.dialects().iter().map(|dialect| dialect.mode().clone()).collect();
    let dcu = crate::dialect::SharingMode::Vendor(crate::dialect::vendor::row::name("DCU"));
    let koordinator = crate::dialect::koordinator::Koordinator::sharing_mode();
    let [hami, gpushare] = [crate::dialect::SharingMode::Hami, crate::dialect::SharingMode::GpuShare];
    assert_eq!(modes, [hami, dcu, gpushare, koordinator]);
}

#[test]
fn every_argument_of_deviceshare_has_an_effect_or_is_reported_to_have_none() {
    let text = "dialects: {volcano: {arguments: {\n\
        deviceshare.GPUSharingEnable: false, deviceshare.GPUNumberEnable: false, deviceshare.VGPUEnable: true,\n\
        deviceshare.NodeLockEnable: true, deviceshare.SchedulePolicy: spread, deviceshare.ScheduleWeight: 3,\n\
        deviceshare.GPUExclusiveRules: [{app: a}],\n\
        deviceshare.AscendMindClusterVNPUEnable: true, deviceshare.AscendHAMiVNPUEnable: true,\n\
        deviceshare.KnownGeometriesCMName: x, deviceshare.KnownGeometriesCMNamespace: y}}}";
    let (config, notices) = Config::parse(text, "f").unwrap();
    let reported: Vec<_> = notices.iter().filter_map(|notice| notice.key.rsplit('.').next()).collect();
    let unused = [
        "AscendMindClusterVNPUEnable",
        "AscendHAMiVNPUEnable",
        "KnownGeometriesCMName",
        "KnownGeometriesCMNamespace",
    ];
    assert_eq!(reported, unused);
    let settings = config.dialects.volcano.settings();
    assert_eq!(
        (settings.card_policy, settings.node_policy),
        (crate::device::CardPolicy::Spread, crate::device::NodePolicy::Spread)
    );
    assert_eq!((settings.exclusive_rules.len(), settings.lock.is_some()), (1, true));
    let weighing = |weight: u32| {
        let text = format!("dialects: {{volcano: {{arguments: {{deviceshare.ScheduleWeight: {weight}}}}}}}");
        Config::parse(&text, "f").unwrap().0.dialects.volcano.settings()
    };
    assert_eq!(weighing(0).node_policy, crate::device::NodePolicy::Indifferent);
    assert_eq!(weighing(1), weighing(1000), "there is no other score of cards to weigh it against");
}

#[test]
fn a_revocable_zone_has_a_window_and_the_time_zone_exists() {
    let zone = |value: &str| {
        Config::parse(
            &format!("dialects:\n  volcano:\n    arguments:\n      tdm.revocable-zone.rz1: {value}\n"),
            "f",
        )
    };
    for (written, windows) in [
        ("1:00-4:00", "1:00-4:00"),
        ("22:00-6:00", "22:00-6:00"),
        ("08:30-24:00", "8:30-24:00"),
        ("1:00-4:00, 12:00-13:30", "1:00-4:00,12:00-13:30"),
        ("[1:00-4:00, '12:00-13:30']", "1:00-4:00,12:00-13:30"),
    ] {
        let (config, notices) = zone(written).unwrap();
        assert!(notices.is_empty(), "{notices:?}");
        let arguments = &serde_json::to_value(&config).unwrap()["dialects"]["volcano"]["arguments"];
        assert_eq!(arguments["tdm.revocable-zone.rz1"], windows);
        assert!(!config.revocable_zones().is_off());
    }
    for window in [
        "24:00-4:00",
        "1:0-4:00",
        "1:00",
        "1:00-4:00-5:00",
        "1:00 - 4:00",
        "a:00-4:00",
        "100",
        "[]",
        "''",
        "{}",
    ] {
        assert!(zone(window).is_err(), "{window}");
    }
    let zone = "dialects: {volcano: {timeZone: Europe/Nowhere}}";
    assert!(error(zone).starts_with("berth.yaml:1: dialects.volcano.timeZone: "));
    let grace = |grace: &str| {
        let zone = "tdm.revocable-zone.rz1: 1:00-4:00\n      tdm.revocable-zone.rz2: 22:00-22:30";
        let file = format!(
            "dialects:\n  volcano:\n    arguments:\n      {zone}\n      tdm.evict.grace-period: {grace}\n"
        );
        Config::parse(&file, "berth.yaml").map(|(config, _)| config.revocable_zones().grace)
    };
    assert_eq!(grace("10m").unwrap(), jiff::SignedDuration::from_mins(10));
    assert_eq!(grace("0s").unwrap(), jiff::SignedDuration::ZERO);
    assert_eq!(
        grace("30m").unwrap_err().to_string(),
        "berth.yaml:6: dialects.volcano.arguments.tdm.evict.grace-period: is as long as the window 22:00-22:30 of zone rz2 or longer"
    );
    assert!(grace("-1m").is_err());
    assert!(Config::default().revocable_zones().is_off());
}
