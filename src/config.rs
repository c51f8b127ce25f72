//! `berth.yaml`: the settings with all defaults, and their form for the layers below.
//!
//! It decides nothing about pods and uses no cluster. A key that can't be understood is an error with the key and its line; no key is
//! skipped silently.

pub mod duration;
mod error;
mod hami;
mod layers;
mod scheduling;
mod schema;
mod section;
mod tree;
mod vendors;
mod volcano;
mod workloads;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use serde::Serialize;

use crate::admission::{Guards, Severity};

pub use error::{ConfigError, Notice};
pub use hami::{GpuCorePolicy, HamiConfig, Policy};
pub use scheduling::{PreemptionConfig, SchedulingConfig};
pub use schema::schema;
pub use vendors::{ChipConfig, FamilyConfig, TemplateConfig, VendorsConfig, VnpuConfig, VnpusConfig};
pub use volcano::{DeviceShare, LockValue, Modes, Tdm, VolcanoConfig};
pub use workloads::{WorkloadConfig, WorkloadTemplate};

use section::{Field, Section, Trouble};
use tree::Node;

/// The file name in errors about settings without a file.
const BUILT_IN: &str = "built-in settings";

/// The longest settings file, in bytes; a ConfigMap holds no more.
const LIMIT: u64 = 1024 * 1024;

/// The name that the API server gives to pods that name no scheduler.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// The settings in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Berth's scheduler name, as in `spec.schedulerName`.
    pub scheduler_name: String,
    /// The namespaces whose pods the webhook judges.
    pub scope: Scope,
    /// Schedulers whose share pods become Berth's.
    pub adopt_schedulers: Vec<String>,
    /// What to do with share pods that no known scheduler of shares will serve.
    pub unmanaged_pods: UnmanagedPods,
    /// The action of the policies on a write to assignments, locks and card lists by an account without the right.
    pub protection: Protection,
    /// The actions of the guards.
    pub guards: Guards,
    /// How nodes are compared, and which pods are preempted.
    pub scheduling: SchedulingConfig,
    /// Kinds of workloads beside the built-in ones.
    pub workloads: Vec<WorkloadConfig>,
    /// What `/metrics` shows beside the series that are always there.
    pub metrics: MetricsConfig,
    /// What is spoken with the nodes.
    pub dialects: DialectsConfig,
}

/// What `/metrics` shows beside the series that are always there.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsConfig {
    /// Whether the metrics of HAMi's scheduler are exported too, under its names and labels.
    pub hami_names: bool,
    /// Whether there is a series for each pod and card; without, there are those of namespaces.
    pub pods: bool,
}

/// The namespaces whose pods the webhook judges.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Namespaces with the label `berth.dev/admission: enabled`.
    OptIn,
    /// All namespaces without the label `berth.dev/admission: ignore`.
    OptOut,
}

/// What to do with a share pod, in any namespace, that no known scheduler of shares will serve.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmanagedPods {
    /// Admit it with a warning.
    Warn,
    /// Deny it.
    Deny,
    /// Admit it.
    Allow,
}

/// What the protection policies do with a write by an account without the right to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Allow it, with a warning to the writer and an entry in the audit log.
    Warn,
    /// Deny it.
    Deny,
}

/// The dialects' settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DialectsConfig {
    /// HAMi's.
    pub hami: HamiConfig,
    /// Volcano's.
    pub volcano: VolcanoConfig,
}

impl Config {
    /// Reads a file; without one, the defaults.
    pub fn load(path: Option<&Path>) -> Result<(Self, Vec<Notice>), ConfigError> {
        let Some(path) = path else {
            return Self::parse("", BUILT_IN);
        };
        Self::parse(&text(path)?, &path.display().to_string())
    }

    /// Reads the text of a file of this name.
    pub fn parse(text: &str, file: &str) -> Result<(Self, Vec<Notice>), ConfigError> {
        let root = tree::parse(text).map_err(|(line, message)| ConfigError::Yaml {
            file: file.to_owned(),
            line,
            message,
        })?;
        let mut notices = Vec::new();
        let config = match read(&Field::root(root.clone()), &mut notices) {
            Ok(config) => config,
            Err(first) => return Err(ConfigError::of(troubles(root, first), file)),
        };
        for notice in &mut notices {
            file.clone_into(&mut notice.file);
        }
        notices.sort_by_key(|notice| notice.line);
        Ok((config, notices))
    }
}

/// The text of a settings file, of at most 1 MiB, so that reading an endless file such as `/dev/zero` ends.
pub fn text(path: &Path) -> Result<String, ConfigError> {
    let file = || path.display().to_string();
    let unreadable = |reason| ConfigError::Unreadable { file: file(), reason };
    let mut bytes = Vec::new();
    let opened = File::open(path).map_err(unreadable)?;
    let length = opened.take(LIMIT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(length).is_ok_and(|length| length > LIMIT) {
        return Err(ConfigError::TooLarge { file: file(), limit: LIMIT });
    }
    let no_text = |error| unreadable(io::Error::new(io::ErrorKind::InvalidData, error));
    String::from_utf8(bytes).map_err(no_text)
}

impl Default for Config {
    fn default() -> Self {
        let (config, _) = Self::parse("", BUILT_IN).expect("an empty file is valid");
        config
    }
}

/// Errors of one file that are told.
const MOST_TROUBLES: usize = 20;

/// Everything that is wrong with a file, by line: what was found wrong is left out, and the rest is read again. What is wrong only
/// because something was left out is not told.
fn troubles(mut root: Node, first: Trouble) -> Vec<Trouble> {
    let mut told = vec![first.clone()];
    let mut last = first;
    while told.len() < MOST_TROUBLES && section::leave_out(&mut root, "", last.key()) {
        let Err(next) = read(&Field::root(root.clone()), &mut Vec::new()) else { break };
        if !told.iter().any(|trouble| next.is_above(trouble)) {
            told.push(next.clone());
        }
        last = next;
    }
    told.sort_by_key(Trouble::line);
    told
}

fn read(file: &Field, notices: &mut Vec<Notice>) -> Result<Config, Trouble> {
    let mut root = Section::of(file)?;
    let scheduler_name = match root.take("schedulerName") {
        Some(field) => own_name(&field)?,
        None => "berth".to_owned(),
    };
    let scope =
        root.choice("scope", Scope::OptIn, &[("opt-in", Scope::OptIn), ("opt-out", Scope::OptOut)])?;
    let adopt_schedulers = match root.take("adoptSchedulers") {
        Some(field) => field.list()?.iter().map(dns_name).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    let choices =
        [("warn", UnmanagedPods::Warn), ("deny", UnmanagedPods::Deny), ("allow", UnmanagedPods::Allow)];
    let unmanaged_pods = root.choice("unmanagedPods", UnmanagedPods::Warn, &choices)?;
    let modes = [("warn", Protection::Warn), ("deny", Protection::Deny)];
    let protection = root.choice("protection", Protection::Warn, &modes)?;
    let guards = guards(root.section("guards")?)?;
    let scheduling = scheduling::read(root.section("scheduling")?)?;
    let workloads = workloads::read(root.take("workloads"))?;
    let metrics = metrics(root.section("metrics")?)?;
    let mut dialects = root.section("dialects")?;
    let config = DialectsConfig {
        hami: hami::read(dialects.section("hami")?, notices)?,
        volcano: volcano::read(dialects.section("volcano")?, notices)?,
    };
    dialects.finish()?;
    root.none_of(&hami::SECTIONS, "a section of HAMi's file, which belongs below `dialects.hami`")?;
    root.finish()?;
    let config = Config {
        scheduler_name,
        scope,
        adopt_schedulers,
        unmanaged_pods,
        protection,
        guards,
        scheduling,
        workloads,
        metrics,
        dialects: config,
    };
    each_resource_is_of_one_mode(&config, file)?;
    Ok(config)
}

/// By its resources it is told which mode a pod asks in.
fn each_resource_is_of_one_mode(config: &Config, file: &Field) -> Result<(), Trouble> {
    let dialects = config.dialects();
    let mut modes = BTreeMap::new();
    for dialect in dialects.iter() {
        for name in dialect.resources() {
            let other = modes.insert(name, dialect.mode()).filter(|other| *other != dialect.mode());
            if let Some(other) = other {
                let message = format!("`{name}` would be a resource of both {other} and {}", dialect.mode());
                return Err(file.saying(name).unwrap_or_else(|| file.clone()).trouble(message));
            }
        }
    }
    Ok(())
}

fn metrics(mut section: Section) -> Result<MetricsConfig, Trouble> {
    let metrics = MetricsConfig {
        hami_names: section.off_unless_on("hamiNames")?,
        pods: section.on_unless_off("pods")?,
    };
    section.finish()?;
    Ok(metrics)
}

fn guards(mut section: Section) -> Result<Guards, Trouble> {
    let choices = [("deny", Severity::Deny), ("warn", Severity::Warn), ("allow", Severity::Allow)];
    let default = Guards::default();
    let mut choice = |key: &str, default: Severity| section.choice(key, default, &choices);
    let guards = Guards {
        never_fits: choice("neverFits", default.never_fits)?,
        preset_node: choice("presetNode", default.preset_node)?,
        privileged: choice("privileged", default.privileged)?,
        device_mounts: choice("deviceMounts", default.device_mounts)?,
        visible_devices: choice("visibleDevices", default.visible_devices)?,
        quota: choice("quota", default.quota)?,
    };
    section.finish()?;
    Ok(guards)
}

/// A name under which Berth is asked for no pod but those that mean it.
fn own_name(field: &Field) -> Result<String, Trouble> {
    match dns_name(field)?.as_str() {
        DEFAULT_SCHEDULER => Err(field.trouble(format!(
            "`{DEFAULT_SCHEDULER}` is kube-scheduler's, whose pods Berth can't serve all; take a name of its own"
        ))),
        name => Ok(name.to_owned()),
    }
}

/// A scheduler's name: what the API server takes in `spec.schedulerName` is not checked there, but leases and events of that name are.
fn dns_name(field: &Field) -> Result<String, Trouble> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if text.chars().all(fits) && text.starts_with(ends) && text.ends_with(ends) && text.len() <= 253 {
        return Ok(text);
    }
    Err(field.trouble(format!("`{text}` is not a scheduler's name: lower case letters, digits, `-` and `.`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Config::parse(text, "berth.yaml").unwrap_err().to_string()
    }

    #[test]
    fn settings_in_force_read_back_as_themselves() {
        let config = Config::default();
        let text = serde_saphyr::to_string(&config).unwrap();
        assert_eq!(Config::parse(&text, "again").unwrap().0, config, "{text}");
    }

    #[test]
    fn guards_are_as_hard_as_they_are_set() {
        let config = Config::parse("guards: {neverFits: deny, privileged: allow}", "f").unwrap().0;
        let guards = config.admission_settings().guards;
        assert_eq!((guards.never_fits, guards.privileged), (Severity::Deny, Severity::Allow));
        assert_eq!(guards.quota, Severity::Deny, "what is not stated keeps its default");
        assert!(error("guards: {privileged: maybe}").starts_with("berth.yaml:1: guards.privileged: "));
    }

    #[test]
    fn metrics_are_those_that_are_set() {
        let metrics = |text: &str| Config::parse(text, "f").unwrap().0.metrics;
        assert_eq!(metrics(""), MetricsConfig { hami_names: false, pods: true });
        let set = metrics("metrics: {hamiNames: true, pods: false}");
        assert_eq!(set, MetricsConfig { hami_names: true, pods: false });
        assert_eq!(
            error("metrics:\n  hamiName: true\n"),
            "berth.yaml:2: metrics.hamiName: unknown key; the nearest known one is `hamiNames`"
        );
        assert!(
            error("metrics: {hamiNames: 1}")
                .starts_with("berth.yaml:1: metrics.hamiNames: must be true or false")
        );
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
    fn everything_that_is_wrong_is_told_at_once_and_by_line() {
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
        assert_eq!(
            message,
            "berth.yaml:3: dialects.hami.enabled: must be true or false, not the text `maybe`"
        );
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
        assert!(
            message.starts_with("berth.yaml:5: dialects.hami.iluvatars[0].resourceCountName: "),
            "{message}"
        );
        let unserved =
            "dialects: {hami: {resourceCountName: volcano.sh/vgpu-number}, volcano: {enabled: false}}";
        assert!(Config::parse(unserved, "f").is_ok(), "what nobody speaks is nobody's");
    }

    #[test]
    fn berth_takes_no_name_that_pods_bear_which_name_nobody() {
        let message = error("schedulerName: default-scheduler\n");
        assert!(message.starts_with("berth.yaml:1: schedulerName: `default-scheduler` is kube-scheduler's"));
        assert!(Config::parse("adoptSchedulers: [default-scheduler]", "f").is_ok());
    }

    #[test]
    fn a_section_that_is_pasted_in_the_wrong_place_is_told_where_it_belongs() {
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
    fn a_duration_without_its_unit_is_told_what_it_lacks() {
        let message = error("dialects: {hami: {nodeLockExpire: 5}}\n");
        assert_eq!(
            message,
            "berth.yaml:1: dialects.hami.nodeLockExpire: must be a positive duration such as `5m` or `1m30s`, not `5`"
        );
    }

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
        assert_eq!(modes, [crate::dialect::SharingMode::Hami, dcu, crate::dialect::SharingMode::GpuShare]);
    }

    #[test]
    fn a_card_policy_may_be_a_list_of_different_known_ones() {
        let policy = |value: &str| format!("dialects:\n  hami:\n    gpuSchedulerPolicy: {value}\n");
        let (config, _) = Config::parse(&policy("\"binpack, topology-aware\""), "f").unwrap();
        let written = serde_json::to_value(&config).unwrap();
        assert_eq!(written["dialects"]["hami"]["gpuSchedulerPolicy"], "binpack,topology-aware");
        for (value, words) in [
            ("binpack,best", "must be `binpack`, `spread`, `mutex`, `numa`, `topology-aware`, or several"),
            ("\"binpack,\"", "must be `binpack`"),
            ("spread,spread", "`spread` is given twice"),
        ] {
            let message = error(&policy(value));
            assert!(message.starts_with("berth.yaml:3: dialects.hami.gpuSchedulerPolicy: "), "{message}");
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn every_argument_of_deviceshare_has_an_effect_or_is_told_to_have_none() {
        let text = "dialects: {volcano: {arguments: {\n\
            deviceshare.GPUSharingEnable: false, deviceshare.GPUNumberEnable: false, deviceshare.VGPUEnable: true,\n\
            deviceshare.NodeLockEnable: true, deviceshare.SchedulePolicy: spread, deviceshare.ScheduleWeight: 3,\n\
            deviceshare.GPUExclusiveRules: [{app: a}],\n\
            deviceshare.AscendMindClusterVNPUEnable: true, deviceshare.AscendHAMiVNPUEnable: true,\n\
            deviceshare.KnownGeometriesCMName: x, deviceshare.KnownGeometriesCMNamespace: y}}}";
        let (config, notices) = Config::parse(text, "f").unwrap();
        let told: Vec<_> = notices.iter().filter_map(|notice| notice.key.rsplit('.').next()).collect();
        let unused = [
            "AscendMindClusterVNPUEnable",
            "AscendHAMiVNPUEnable",
            "KnownGeometriesCMName",
            "KnownGeometriesCMNamespace",
        ];
        assert_eq!(told, unused);
        let settings = config.dialects.volcano.settings();
        assert_eq!(
            (settings.card_policy, settings.node_policy),
            (crate::device::CardPolicy::Spread, crate::device::NodePolicy::Spread)
        );
        assert_eq!((settings.exclusive_rules.len(), settings.lock.is_some()), (1, true));
        let weighing = |weight: u32| {
            let text =
                format!("dialects: {{volcano: {{arguments: {{deviceshare.ScheduleWeight: {weight}}}}}}}");
            Config::parse(&text, "f").unwrap().0.dialects.volcano.settings()
        };
        assert_eq!(weighing(0).node_policy, crate::device::NodePolicy::Indifferent);
        assert_eq!(weighing(1), weighing(1000), "there is no other score of cards to weigh it against");
    }

    #[test]
    fn keys_without_use_are_told_once_each() {
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

    /// HAMi v2.10's `device-config.yaml` as its chart renders it, shortened in its lists.
    const PASTED: &str = include_str!("config/device-config.yaml");

    #[test]
    fn hamis_device_config_can_be_pasted() {
        let indented = format!("    {}\n", PASTED.trim_end().replace('\n', "\n    "));
        let (config, notices) = Config::parse(&format!("dialects:\n  hami:\n{indented}"), "f").unwrap();
        let modes: Vec<_> = config.dialects().iter().map(|dialect| dialect.mode().to_string()).collect();
        assert_eq!(modes, ["hami", "hami-dcu", "hami-mlu", "hami-amd", "hami-biren", "vgpu"]);
        let told: Vec<_> =
            notices.iter().map(|notice| notice.key.trim_start_matches("dialects.hami.")).collect();
        for key in ["iluvatars", "vnpus", "metax", "kunlun", "vnpus.configs[2]"] {
            assert!(told.contains(&key), "{key} is not among {told:?}");
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
}
