//! Where HAMi and Volcano keep their settings: ConfigMaps, flags, and the selectors of webhooks.
//!
//! Sources: HAMi v2.10 `charts/hami/templates/scheduler`, HAMi v2.4 `cmd/scheduler/main.go`; Volcano `installer/helm/chart/volcano/config`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::cli::preflight::{
    finding::{PreflightFinding, called},
    program::{Part, Program, Project},
    rules,
    seen::{Seen, SeenConfigMap},
    trust,
    webhooks::{Covers, webhooks},
};

/// What the keys of HAMi's settings begin with.
const HAMI: &str = "dialects.hami.";
/// What those of Volcano's begin with.
const VOLCANO: &str = "dialects.volcano.";
/// The section of NVIDIA's cards in both device configurations.
const NVIDIA: &str = "nvidia";
/// The key of HAMi's and of Volcano's device configuration.
const DEVICE_CONFIG: &str = "device-config.yaml";
/// The ConfigMap of Volcano's device configuration.
const VOLCANO_DEVICES: &str = "volcano-vgpu-device-config";
/// What the names of Volcano's scheduler configurations end with.
const CONF: &str = ".conf";

/// Flags of its logging library, which are no settings of the scheduler (`k8s.io/klog/v2` `klog.go`).
const LOGGING: [&str; 13] = [
    "add_dir_header",
    "alsologtostderr",
    "log_backtrace_at",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "logtostderr",
    "one_output",
    "skip_headers",
    "skip_log_headers",
    "stderrthreshold",
    "v",
    "vmodule",
];

/// Flags of HAMi up to v2.4, and the keys that have taken their place.
const OLD_FLAGS: [(&str, &str); 8] = [
    ("resource-name", "resourceCountName"),
    ("resource-mem", "resourceMemoryName"),
    ("resource-mem-percentage", "resourceMemoryPercentageName"),
    ("resource-cores", "resourceCoreName"),
    ("resource-priority", "resourcePriorityName"),
    ("default-mem", "defaultMemory"),
    ("default-gpu", "defaultGPUNum"),
    ("default-cores", "defaultCores"),
];

/// The keys of HAMi's policies, by either name, with what it does where they are not set (v2.10 `cmd/scheduler/main.go`): Berth has another default.
const HAMI_POLICIES: [([&str; 2], &str); 2] = [
    (["nodeSchedulerPolicy", "node-scheduler-policy"], "binpack"),
    (["gpuSchedulerPolicy", "gpu-scheduler-policy"], "spread"),
];

/// The same of Volcano's (`pkg/scheduler/plugins/deviceshare`).
const VOLCANO_POLICY: (&str, &str) = ("deviceshare.SchedulePolicy", "binpack");

/// What was found of both.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Keys below `dialects.hami`.
    pub(super) hami: Map<String, Value>,
    /// Keys below `dialects.volcano`.
    pub(super) volcano: Map<String, Value>,
    /// Schedulers whose share pods become Berth's.
    pub(super) adopted: Vec<String>,
    /// Where these run, besides kube-system.
    pub(super) elsewhere: BTreeSet<String>,
    /// `opt-in` or `opt-out`.
    pub(super) scope: &'static str,
    /// By what keys begin with, in which ConfigMap they stood.
    pub(super) origins: BTreeMap<&'static str, String>,
    /// By key, of which program they were flags.
    pub(super) flags: BTreeMap<String, String>,
    /// What could not be read at all.
    pub(super) findings: Vec<PreflightFinding>,
}

pub(super) fn read(seen: &Seen) -> Sources {
    let covers_all = |covers: &Covers| matches!(covers, Covers::AllExcept(_));
    let mut webhooks = webhooks(seen).into_iter().filter(|webhook| webhook.project == Project::Hami);
    let scope = if webhooks.any(|webhook| covers_all(&webhook.covers)) { "opt-out" } else { "opt-in" };
    let mut sources = Sources { scope, ..Sources::default() };
    let scheduler = |project: Project| {
        let is_one = move |program: &&Program| program.part == Part::Scheduler && program.project == project;
        let mut schedulers: Vec<_> = seen.programs.iter().filter(is_one).collect();
        schedulers.sort_by_key(|program| trust::rank(program));
        schedulers
    };
    let all = [Project::Hami, Project::Volcano].into_iter().flat_map(scheduler);
    let elsewhere =
        all.map(|program| &program.namespace).filter(|namespace| *namespace != trust::KUBE_SYSTEM);
    sources.elsewhere = elsewhere.cloned().collect();
    for (at, program) in scheduler(Project::Hami).into_iter().enumerate() {
        sources.adopted.extend(program.scheduler_names());
        if at == 0 {
            sources.read_hami(program, seen);
        } else {
            sources.not_carried(
                program.called(),
                "a second scheduler of HAMi's: only the settings of the first are carried over",
            );
        }
    }
    for program in scheduler(Project::Volcano) {
        sources.read_volcano(program, seen);
    }
    sources.adopted.sort();
    sources.adopted.dedup();
    sources
}

impl Sources {
    fn not_carried(&mut self, object: String, message: impl Into<String>) {
        self.findings.push(PreflightFinding::new(&rules::SETTING_NOT_CARRIED, object, message));
    }

    fn read_hami(&mut self, program: &Program, seen: &Seen) {
        if let Some((map, text)) = mounted(program, seen, DEVICE_CONFIG) {
            let object = called("ConfigMap", &map.namespace, &map.name);
            if let Some(read) = self.mapping(&object, DEVICE_CONFIG, text) {
                self.hami = read;
            }
            self.origins.insert(HAMI, object);
        } else {
            let message = format!(
                "mounts no ConfigMap with {DEVICE_CONFIG} that could be read: its flags alone are carried over"
            );
            self.not_carried(program.called(), message);
        }
        for (flag, value) in &program.flags {
            // The name is carried over as `adoptSchedulers`.
            if flag != "scheduler-name" && !LOGGING.contains(&flag.as_str()) {
                self.read_flag(program, flag, value);
            }
        }
        for (names, policy) in HAMI_POLICIES {
            if !names.iter().any(|name| self.hami.contains_key(*name)) {
                self.hami.insert(names[0].to_owned(), policy.into());
            }
        }
    }

    /// Takes a flag for the key of its name, or for the one that has taken its place, unless the ConfigMap has that.
    fn read_flag(&mut self, program: &Program, flag: &str, value: &str) {
        let new = OLD_FLAGS.iter().find(|(old, _)| *old == flag).map(|(_, key)| *key);
        let key = new.unwrap_or(flag);
        let (section, below) = match (new, self.hami.get_mut(NVIDIA)) {
            (Some(_), Some(Value::Object(nvidia))) => (nvidia, format!("{NVIDIA}.")),
            _ => (&mut self.hami, String::new()),
        };
        if !section.contains_key(key) {
            section.insert(key.to_owned(), scalar(value));
            self.flags.insert(format!("{HAMI}{below}{key}"), program.called());
        }
    }

    fn read_volcano(&mut self, program: &Program, seen: &Seen) {
        let is_conf = |key: &str| key.ends_with(CONF);
        let maps = program.config_maps.iter().filter_map(|name| of_name(seen, &program.namespace, name));
        let conf = maps
            .flat_map(|map| map.data.iter().map(move |(key, text)| (map, key, text)))
            .find(|(_, key, _)| is_conf(key));
        let Some((map, key, text)) = conf else {
            return self.not_carried(
                program.called(),
                format!("mounts no ConfigMap with a key *{CONF} that could be read"),
            );
        };
        let object = called("ConfigMap", &map.namespace, &map.name);
        let Some(conf) = self.mapping(&object, key, text) else { return };
        let mut arguments = arguments(&conf);
        self.origins.insert(VOLCANO, object);
        if arguments.keys().any(|key| key.starts_with("deviceshare.")) {
            self.adopted.extend(program.scheduler_names());
            let (name, policy) = VOLCANO_POLICY;
            arguments.entry(name).or_insert_with(|| policy.into());
        }
        // Volcano's scheduler stays for its other pods, and knows only the bare form.
        if arguments
            .get("deviceshare.NodeLockEnable")
            .is_some_and(|value| matches!(value.to_string().trim_matches('"'), "true"))
        {
            self.volcano.insert("lockValue".to_owned(), "bare".into());
        }
        if !arguments.is_empty() {
            self.volcano.insert("arguments".to_owned(), Value::Object(arguments));
        }
        let own = of_name(seen, &program.namespace, VOLCANO_DEVICES);
        let devices = own.or_else(|| seen.config_maps.iter().find(|map| map.name == VOLCANO_DEVICES));
        let Some((map, text)) = devices.and_then(|map| Some((map, map.data.get(DEVICE_CONFIG)?))) else {
            return;
        };
        let object = called("ConfigMap", &map.namespace, &map.name);
        if let Some(Value::Object(nvidia)) =
            self.mapping(&object, DEVICE_CONFIG, text).and_then(|mut read| read.remove(NVIDIA))
        {
            self.volcano.extend(nvidia);
        }
    }

    /// The text as a mapping; a finding where it is none.
    fn mapping(&mut self, object: &str, key: &str, text: &str) -> Option<Map<String, Value>> {
        match serde_saphyr::from_str::<Value>(text) {
            Ok(Value::Object(read)) => Some(read),
            Ok(Value::Null) => Some(Map::new()),
            Ok(_) => {
                self.not_carried(object.to_owned(), format!("{key}: is no mapping of keys"));
                None
            }
            Err(error) => {
                let error = crate::excerpt::brief(&error.without_snippet());
                self.not_carried(object.to_owned(), format!("{key}: {error}"));
                None
            }
        }
    }
}

/// The ConfigMap with this key that the program mounts, or that HAMi's chart would have made for it.
fn mounted<'a>(program: &Program, seen: &'a Seen, key: &str) -> Option<(&'a SeenConfigMap, &'a String)> {
    let named = program.config_maps.iter().filter_map(|name| of_name(seen, &program.namespace, name));
    let made = seen
        .config_maps
        .iter()
        .filter(|map| map.namespace == program.namespace && map.name.ends_with("-scheduler-device"));
    named.chain(made).find_map(|map| Some((map, map.data.get(key)?)))
}

fn of_name<'a>(seen: &'a Seen, namespace: &str, name: &str) -> Option<&'a SeenConfigMap> {
    seen.config_maps.iter().find(|map| map.namespace == namespace && map.name == name)
}

/// The arguments of `deviceshare` and `tdm`, of whichever plugin they stand under.
fn arguments(conf: &Map<String, Value>) -> Map<String, Value> {
    let below =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let tiers = conf.get("tiers").and_then(Value::as_array).into_iter().flatten();
    let plugins = tiers.flat_map(|tier| below(tier, "plugins"));
    let arguments = plugins.filter_map(|plugin| plugin.get("arguments")?.as_object().cloned()).flatten();
    arguments.filter(|(key, _)| key.starts_with("deviceshare.") || key.starts_with("tdm.")).collect()
}

/// A flag's value, as YAML would read it.
fn scalar(text: &str) -> Value {
    match text {
        "true" => true.into(),
        "false" => false.into(),
        _ => text.parse::<i64>().map_or_else(|_| text.into(), Value::from),
    }
}
