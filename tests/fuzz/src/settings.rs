//! `berth.yaml`: every text is settings or an error with its line, and settings in force read back as themselves.

use berth::config::Config;

/// The text of a file.
pub fn run(data: &[u8]) {
    let Some(text) = super::text(data) else { return };
    let config = match Config::parse(text, "berth.yaml") {
        Ok((config, _)) => config,
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("berth.yaml:") && !message.ends_with('.'), "{message}");
            return;
        }
    };
    let written = serde_saphyr::to_string(&config).expect("settings can be written");
    let (again, _) = Config::parse(&written, "again").unwrap_or_else(|error| panic!("{error} in\n{written}"));
    assert_eq!(again, config, "{written}");
    let modes = config.admission_settings().modes;
    let spoken: std::collections::BTreeSet<_> =
        config.dialects().iter().map(|dialect| dialect.mode().clone()).collect();
    assert_eq!(modes, spoken);
}

/// One file for each section.
pub fn seeds() -> Vec<Vec<u8>> {
    super::owned(&[
        "",
        "schedulerName: berth\nscope: opt-out\nadoptSchedulers: [volcano, hami-scheduler]\nunmanagedPods: deny\n",
        "guards: {neverFits: deny, presetNode: warn, privileged: allow, quota: deny}\n",
        "dialects:\n  hami:\n    defaultMemory: 1000\n    defaultCores: 30\n    gpuCorePolicy: force\n    overwriteEnv: true\n    \
         runtimeClassName: nvidia\n    resourceCountName: example.com/gpu\n",
        "dialects:\n  volcano:\n    arguments:\n      deviceshare.GPUSharingEnable: true\n      deviceshare.NodeLockEnable: true\n      \
         tdm.revocable-zone.rz1: 1:00-4:00\n    timeZone: UTC\n",
        "dialects: {volcano: {arguments: {deviceshare.GPUNumberEnable: \"T\"}}}\n",
        "dialects:\n  volcano:\n    knownMigGeometries:\n    - models: [A100]\n      allowedGeometries:\n      - group: group1\n        \
         geometries:\n        - {name: 1g.5gb, memory: 5120, count: 7}\n",
        "a: b: c\n",
        "&a [*a, *a]\n",
    ])
}
