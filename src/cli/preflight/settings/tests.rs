//! The conversion on settings in the form of HAMi's and Volcano's, and on rubbish.

use serde_json::json;

use super::*;
use crate::cli::preflight::trust::TrustedNamespaces;
use crate::config::AdmissionScope;

/// HAMi v2.10's file, as the settings' own tests have it.
const DEVICE_CONFIG: &str = include_str!("../../../config/device-config.yaml");

fn hami(flags: &[&str], device_config: &str) -> Seen {
    let mut command = vec!["scheduler", "--http_bind=0.0.0.0:443", "--scheduler-name=hami-scheduler"];
    command.extend(flags);
    let mut seen = Seen::default();
    seen.take(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "hami-scheduler"},
        "spec": {"replicas": 1, "template": {"spec": {
            "containers": [{"image": "projecthami/hami:v2.10.0", "command": command}],
            "volumes": [{"configMap": {"name": "hami-scheduler-device"}}],
        }}},
    }));
    seen.take(
        json!({"kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "hami-scheduler-device"},
        "data": {"device-config.yaml": device_config}}),
    );
    seen
}

fn told_of(converted: &Converted, rule: &str) -> String {
    let of_rule = converted.findings.iter().filter(|finding| finding.rule == rule);
    of_rule.map(|finding| format!("{}: {}", finding.object, finding.message)).collect::<Vec<_>>().join("\n")
}

/// The text is read as the settings that the report judges by, and nothing more is to be said of it.
fn assert_accepted(converted: &Converted) {
    let (config, notices) = Config::parse(&converted.text, "berth.yaml")
        .unwrap_or_else(|error| panic!("{error}:\n{}", converted.text));
    assert_eq!(config, converted.config);
    assert!(notices.is_empty(), "{notices:?}");
}

#[test]
fn hamis_file_and_flags_become_settings_that_are_accepted() {
    let flags = [
        "--node-scheduler-policy=spread",
        "--gpu-scheduler-policy=binpack",
        "--node-lock-timeout=2m",
        "-v=4",
        "--novelty=1",
        "--enable-ascend=true",
    ];
    let text =
        DEVICE_CONFIG.replace("resourceCountName: nvidia.com/gpu\n", "resourceCountName: example.com/vgpu\n");
    let converted = convert(&hami(&flags, &text), UnmanagedPods::Warn);
    assert_accepted(&converted);
    let hami = &converted.config.dialects.hami;
    assert_eq!(hami.resource_count_name, "example.com/vgpu");
    assert_eq!(hami.node_locks.expire, jiff::SignedDuration::from_mins(2));
    assert!(hami.vendors.vnpus.is_some() && hami.vendors.amd.is_some());
    assert_eq!(converted.config.adopt_schedulers, ["hami-scheduler"]);
    let written = serde_json::to_value(&converted.config).unwrap();
    assert_eq!(written["dialects"]["hami"]["nodeSchedulerPolicy"], "spread");
    let unused = told_of(&converted, "setting-unused");
    assert!(unused.contains("deviceSplitCount") && unused.contains("metax"), "{unused}");
    let refused = told_of(&converted, "setting-not-carried");
    assert_eq!(refused, "Deployment kube-system/hami-scheduler: novelty: unknown key");
}

#[test]
fn a_value_that_the_settings_refuse_is_left_out_and_named_and_the_rest_stays() {
    let converted = convert(
        &hami(&[], "nvidia:\n  defaultCores: 300\n  defaultMemory: 5\n  novelty: 1\n"),
        UnmanagedPods::Warn,
    );
    assert_accepted(&converted);
    assert_eq!(converted.config.dialects.hami.default_memory, 5);
    let refused = told_of(&converted, "setting-not-carried");
    let object = "ConfigMap kube-system/hami-scheduler-device";
    assert!(refused.contains(&format!("{object}: nvidia.defaultCores: must be a whole number")), "{refused}");
    assert!(refused.contains("nvidia.novelty: unknown key"), "{refused}");
}

#[test]
fn rubbish_is_named_and_ends_nothing() {
    for text in ["{[", "- a\n- b\n", "nvidia: 3", "nvidia: [1, {a: b}]", "\u{0}", "a: *b"] {
        let converted = convert(&hami(&["--scheduler-name=Bad_Name"], text), UnmanagedPods::Warn);
        assert_accepted(&converted);
        assert!(!told_of(&converted, "setting-not-carried").is_empty(), "{text}");
        assert_eq!(
            converted.config.adopt_schedulers,
            ["hami-scheduler"],
            "a name that no scheduler can have is left out"
        );
    }
}

#[test]
fn flags_of_the_first_releases_are_known() {
    let converted = convert(
        &hami(&["--resource-name=a.b/gpu", "--default-mem=100", "--default-cores", "7"], ""),
        UnmanagedPods::Warn,
    );
    assert_accepted(&converted);
    let hami = &converted.config.dialects.hami;
    assert_eq!(
        (hami.resource_count_name.as_str(), hami.default_memory, hami.default_cores),
        ("a.b/gpu", 100, 7)
    );
}

#[test]
fn the_scope_follows_hamis_webhook() {
    let webhook = |selector: serde_json::Value| {
        json!({"kind": "MutatingWebhookConfiguration", "metadata": {"name": "w"}, "webhooks": [
            {"name": "vgpu.hami.io", "rules": [{"resources": ["pods"]}], "namespaceSelector": selector}]})
    };
    let scope = |selector| {
        let mut seen = hami(&[], "");
        seen.take(webhook(selector));
        convert(&seen, UnmanagedPods::Deny).config.scope
    };
    assert_eq!(scope(json!({})), AdmissionScope::OptOut);
    assert_eq!(scope(json!({"matchLabels": {"gpu": "on"}})), AdmissionScope::OptIn);
    let none = convert(&Seen::default(), UnmanagedPods::Deny);
    assert_accepted(&none);
    assert_eq!((none.config.scope, none.config.unmanaged_pods), (AdmissionScope::OptIn, UnmanagedPods::Deny));
    assert!(none.findings.is_empty());
}

#[test]
fn volcanos_arguments_are_carried_over() {
    let trust = TrustedNamespaces::new("berth-system", ["volcano-system".to_owned()]);
    let mut seen = Seen { trust, ..Seen::default() };
    seen.take(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "volcano-system", "name": "volcano-scheduler"},
        "spec": {"template": {"spec": {
            "containers": [{"image": "volcanosh/vc-scheduler:v1.12.0", "args": ["--scheduler-name=volcano"]}],
            "volumes": [{"configMap": {"name": "volcano-scheduler-configmap"}}],
        }}},
    }));
    let conf = "actions: \"enqueue, allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n    arguments:\n      predicate.CacheEnable: true\n\
        - plugins:\n  - name: deviceshare\n    arguments:\n      deviceshare.VGPUEnable: true\n      deviceshare.NodeLockEnable: true\n      \
        deviceshare.SchedulePolicy: spread\n      deviceshare.KnownGeometriesCMName: x\n";
    let data = json!({"volcano-scheduler.conf": conf});
    seen.take(json!({"kind": "ConfigMap", "metadata": {"namespace": "volcano-system", "name": "volcano-scheduler-configmap"}, "data": data}));
    let devices = json!({"device-config.yaml": "nvidia:\n  gpuMemoryFactor: 10\n  resourceCountName: volcano.sh/vgpu-number\n"});
    seen.take(json!({"kind": "ConfigMap", "metadata": {"namespace": "kube-system", "name": "volcano-vgpu-device-config"}, "data": devices}));
    let converted = convert(&seen, UnmanagedPods::Warn);
    assert_accepted(&converted);
    let volcano = &converted.config.dialects.volcano;
    assert!(volcano.arguments.modes.vgpu && volcano.arguments.node_lock);
    assert_eq!(volcano.gpu_memory_factor, 10);
    assert_eq!(volcano.lock_value, crate::config::LockValue::Bare);
    assert_eq!(converted.config.adopt_schedulers, ["volcano"]);
    assert_eq!(converted.config.scheduler_namespaces, ["kube-system", "volcano-system"]);
    let unused = told_of(&converted, "setting-unused");
    assert!(unused.contains("arguments.deviceshare.KnownGeometriesCMName"), "{unused}");
}
