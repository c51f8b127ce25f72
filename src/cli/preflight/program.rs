//! Which schedulers and device plugins a workload or a pod runs, by its images, its commands and its labels.
//!
//! It judges nothing. Sources: HAMi v2.10 `charts/hami/templates`, HAMi v2.4's flags, Volcano's Helm chart.

use serde_json::Value;

use super::release::Release;
use crate::dialect::schedulers;

/// Whose program it is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Project {
    /// HAMi, its vendors' plugins included.
    Hami,
    /// Volcano.
    Volcano,
    /// NVIDIA's own plugin, which gives out whole cards.
    Nvidia,
    /// Berth itself.
    Berth,
}

/// What the program does.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Part {
    /// It places pods.
    Scheduler,
    /// It registers cards on nodes and allocates them.
    DevicePlugin,
}

/// A scheduler or a device plugin, and where it runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Program {
    /// Whose it is.
    pub project: Project,
    /// What it does.
    pub part: Part,
    /// The workload's kind, or `Pod`.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its ServiceAccount.
    pub account: String,
    /// How many replicas are wanted, where the kind has a number of them.
    pub replicas: Option<i64>,
    /// Flags in the order of the command line, without dashes.
    pub flags: Vec<(String, String)>,
    /// ConfigMaps that it mounts.
    pub config_maps: Vec<String>,
    /// The release of Helm's that it belongs to.
    pub release: Option<Release>,
}

impl Project {
    /// The project's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hami => "HAMi",
            Self::Volcano => "Volcano",
            Self::Nvidia => "NVIDIA",
            Self::Berth => "Berth",
        }
    }

    /// The name that the pods of its scheduler bear where no flag sets another.
    fn scheduler_name(self) -> &'static str {
        match self {
            Self::Hami => schedulers::HAMI.default_name,
            Self::Volcano => schedulers::VOLCANO.default_name,
            Self::Nvidia | Self::Berth => "berth",
        }
    }
}

impl Part {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::DevicePlugin => "device-plugin",
        }
    }
}

impl Program {
    /// What a workload with a pod template, or a pod, runs; `None`: neither a scheduler of shares nor a device plugin.
    pub fn read(object: &Value) -> Option<Self> {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = text("/kind");
        let template = if kind == "Pod" { object } else { object.pointer("/spec/template")? };
        let containers = template.pointer("/spec/containers").and_then(Value::as_array)?;
        let component = label(template, "app.kubernetes.io/component");
        let name = label(template, "app.kubernetes.io/name");
        let found = containers.iter().map(|container| ContainerMarks::read(container, component, name));
        // Beside HAMi's own scheduler a plain kube-scheduler runs, and beside its plugin a monitor: neither is found by itself.
        let (container, (project, part)) = found
            .filter_map(|one| Some((one.found()?, one)))
            .map(|(found, one)| (one, found))
            .min_by_key(|(_, found)| *found)?;
        Some(Self {
            project,
            part,
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
            account: template
                .pointer("/spec/serviceAccountName")
                .and_then(Value::as_str)
                .filter(|account| !account.is_empty())
                .unwrap_or("default")
                .to_owned(),
            replicas: object.pointer("/spec/replicas").and_then(Value::as_i64).filter(|_| kind != "Pod"),
            flags: flags(&container.words),
            config_maps: config_maps(template),
            release: Release::of(object),
            kind,
        })
    }

    /// The names that its pods bear, for a scheduler.
    pub fn scheduler_names(&self) -> Vec<String> {
        let flags = self.flags.iter().filter(|(flag, _)| flag == "scheduler-name");
        let names: Vec<_> = flags.flat_map(|(_, names)| names.split(',')).map(str::to_owned).collect();
        match (self.part, names.is_empty()) {
            (Part::DevicePlugin, _) => Vec::new(),
            (Part::Scheduler, true) => vec![self.project.scheduler_name().to_owned()],
            (Part::Scheduler, false) => names,
        }
    }

    /// Whether both are one program under one account; a workload and its pods are.
    pub fn is_same(&self, other: &Self) -> bool {
        let key = |one: &Self| (one.project, one.part, one.namespace.clone(), one.account.clone());
        key(self) == key(other)
    }

    /// How findings name it.
    pub fn called(&self) -> String {
        super::finding::called(&self.kind, &self.namespace, &self.name)
    }
}

/// What of a container tells which program it runs.
struct ContainerMarks<'a> {
    /// The image without registry, tag and digest, and its last part.
    image: String,
    words: Vec<&'a str>,
    component: &'a str,
    application: &'a str,
}

/// Words of the images of HAMi's plugins of other vendors.
const VENDORS: [&str; 10] =
    ["ascend", "dcu", "hygon", "cambricon", "mlu", "iluvatar", "ix-device", "amd", "rocm", "biren"];

impl<'a> ContainerMarks<'a> {
    fn read(container: &'a Value, component: &'a str, application: &'a str) -> Self {
        let list = |key: &str| container.get(key).and_then(Value::as_array).into_iter().flatten();
        let words = list("command").chain(list("args")).filter_map(Value::as_str).collect();
        let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
        Self { image: repository(image), words, component, application }
    }

    fn found(&self) -> Option<(Project, Part)> {
        use Part::{DevicePlugin, Scheduler};
        let base = self.image.rsplit('/').next().unwrap_or_default();
        let program = self.words.first().map_or("", |word| word.rsplit('/').next().unwrap_or_default());
        let flagged =
            |flag: &str| self.words.iter().any(|word| word.trim_start_matches('-').starts_with(flag));
        let of_hami = self.image.contains("projecthami/")
            || self.image.contains("4pdosc/")
            || matches!(base, "hami" | "k8s-vdevice");
        let plugin = base.contains("device-plugin") || program.contains("device-plugin");
        let extends = program == "scheduler" && (flagged("http_bind") || flagged("device-config-file"));
        let of_vendor = VENDORS.iter().any(|vendor| self.image.contains(vendor));
        if extends && (of_hami || self.component == "hami-scheduler") {
            Some((Project::Hami, Scheduler))
        } else if plugin && (base.starts_with("volcano") || program.starts_with("volcano")) {
            Some((Project::Volcano, DevicePlugin))
        } else if plugin && (of_hami || of_vendor || self.component == "hami-device-plugin") {
            Some((Project::Hami, DevicePlugin))
        } else if base == "vc-scheduler" || program == "vc-scheduler" {
            Some((Project::Volcano, Scheduler))
        } else if self.image.contains("nvidia/k8s-device-plugin") || program == "nvidia-device-plugin" {
            Some((Project::Nvidia, DevicePlugin))
        } else if self.application == "berth" && self.words.contains(&"serve") {
            Some((Project::Berth, Scheduler))
        } else {
            None
        }
    }
}

fn label<'a>(template: &'a Value, key: &str) -> &'a str {
    let labels = template.pointer("/metadata/labels");
    labels.and_then(|labels| labels.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The image without its tag and digest.
fn repository(image: &str) -> String {
    let image = image.split('@').next().unwrap_or_default();
    match image.rsplit_once(':') {
        // What follows the last colon may also be a registry's port and a path.
        Some((before, tag)) if !tag.contains('/') => before.to_owned(),
        _ => image.to_owned(),
    }
}

/// `--key=value`, `--key value` and `--key`.
fn flags(words: &[&str]) -> Vec<(String, String)> {
    let mut flags = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix('-') else { continue };
        let flag = flag.trim_start_matches('-');
        let (flag, value) = flag.split_once('=').map_or((flag, None), |(flag, value)| (flag, Some(value)));
        let value = value.or_else(|| words.next_if(|next| !next.starts_with('-')).copied());
        let value = value.unwrap_or("true").to_owned();
        flags.push((flag.to_owned(), value));
    }
    flags
}

fn config_maps(template: &Value) -> Vec<String> {
    let volumes = template.pointer("/spec/volumes").and_then(Value::as_array);
    let name = |volume: &Value| Some(volume.pointer("/configMap/name")?.as_str()?.to_owned());
    volumes.into_iter().flatten().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: &Value) -> Value {
        json!({"kind": "Pod", "metadata": {"namespace": "n", "name": "p"}, "spec": {"containers": containers}})
    }

    fn found(image: &str, command: &[&str]) -> Option<(Project, Part)> {
        let program = Program::read(&pod(&json!([{"image": image, "command": command}])))?;
        Some((program.project, program.part))
    }

    #[test]
    fn programs_are_known_in_any_registry() {
        use Part::{DevicePlugin, Scheduler};
        use Project::{Hami, Nvidia, Volcano};
        let cases: [(&str, &[&str], _); 13] = [
            (
                "docker.io/projecthami/hami:v2.10.0",
                &["scheduler", "--http_bind=0.0.0.0:443"],
                Some((Hami, Scheduler)),
            ),
            (
                "registry:5000/mirror/hami@sha256:00",
                &["scheduler", "--device-config-file=/d"],
                Some((Hami, Scheduler)),
            ),
            (
                "projecthami/hami:v2.10.0",
                &["nvidia-device-plugin", "--config-file=/d"],
                Some((Hami, DevicePlugin)),
            ),
            ("4pdosc/k8s-vdevice:v2.4", &["nvidia-device-plugin"], Some((Hami, DevicePlugin))),
            ("projecthami/ascend-device-plugin:v1", &[], Some((Hami, DevicePlugin))),
            ("registry:5000/cambricon/cambricon-k8s-device-plugin", &[], Some((Hami, DevicePlugin))),
            ("volcanosh/vc-scheduler:v1.12.0", &[], Some((Volcano, Scheduler))),
            ("mirror/volcano-vgpu-device-plugin:v1.11.0", &[], Some((Volcano, DevicePlugin))),
            (
                "nvcr.io/nvidia/k8s-device-plugin:v0.17.0",
                &["nvidia-device-plugin"],
                Some((Nvidia, DevicePlugin)),
            ),
            ("registry.k8s.io/kube-scheduler:v1.36.0", &["kube-scheduler"], None),
            ("projecthami/hami:v2.10.0", &["vGPUmonitor"], None),
            ("team/scheduler:1", &["scheduler"], None),
            ("", &[], None),
        ];
        for (image, command, expected) in cases {
            assert_eq!(found(image, command), expected, "{image} {command:?}");
        }
    }

    #[test]
    fn what_a_program_is_told_is_read_from_its_own_container() {
        let object = json!({
            "kind": "Deployment", "metadata": {"namespace": "kube-system", "name": "hami-scheduler"},
            "spec": {"replicas": 2, "template": {
                "metadata": {"labels": {"app.kubernetes.io/component": "hami-scheduler"}},
                "spec": {
                    "serviceAccountName": "hami-scheduler",
                    "volumes": [{"configMap": {"name": "hami-scheduler-device"}}, {"secret": {"secretName": "tls"}}],
                    "containers": [
                        {"image": "kube-scheduler", "command": ["kube-scheduler", "--scheduler-name=other"]},
                        {"image": "hami", "command": ["scheduler"],
                            "args": ["--http_bind=0.0.0.0:443", "--scheduler-name", "gpu", "-v=4", "--debug", "--enable-ascend=true"]},
                    ],
                },
            }},
        });
        let program = Program::read(&object).unwrap();
        assert_eq!(program.scheduler_names(), ["gpu"]);
        assert_eq!((program.account.as_str(), program.replicas), ("hami-scheduler", Some(2)));
        assert_eq!(program.config_maps, ["hami-scheduler-device"]);
        let flag =
            |name: &str| program.flags.iter().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str());
        assert_eq!(
            (flag("v"), flag("debug"), flag("enable-ascend")),
            (Some("4"), Some("true"), Some("true"))
        );
    }

    #[test]
    fn an_account_that_is_not_named_is_the_namespaces_default() {
        let program = Program::read(&pod(&json!([{"image": "vc-scheduler"}]))).unwrap();
        assert_eq!(
            (program.account.as_str(), program.scheduler_names()),
            ("default", vec!["volcano".to_owned()])
        );
        assert!(Program::read(&json!({"kind": "Deployment"})).is_none(), "no template");
        assert!(Program::read(&json!({"kind": "Pod", "spec": {"containers": "many"}})).is_none());
    }
}
