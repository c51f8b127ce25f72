//! `berth.yaml`: the settings with all defaults, and their form for the layers below.
//!
//! It decides nothing about pods and uses no cluster. A key that can't be understood is an error with the key and its line; no key is
//! skipped silently.

pub mod duration;
mod error;
mod guards;
mod hami;
mod koordinator;
mod layers;
mod messages;
mod metrics;
mod plugin_config;
mod root;
mod scheduling;
mod schema;
mod section;
mod tree;
mod trouble;
mod vendors;
mod volcano;
mod workloads;

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use serde::Serialize;

use crate::{admission::Guards, scheduling::model::kube_scheduler::KubeScheduler};

pub use error::{ConfigError, Notice};
pub use hami::{GpuCorePolicy, HamiConfig, NodeLockConfig, NodeLockPolicy, SchedulerPolicy};
pub use koordinator::KoordinatorConfig;
pub use messages::MessagesConfig;
pub use metrics::{Authentication, MetricsConfig};
pub use plugin_config::PluginConfig;
pub use scheduling::{PreemptionConfig, SchedulingConfig};
pub use schema::schema;
pub use vendors::{ChipConfig, FamilyConfig, TemplateConfig, VendorsConfig, VnpuConfig, VnpusConfig};
pub use volcano::{DeviceShare, LockValue, Modes, TdmArguments, VolcanoConfig};
pub use workloads::{WorkloadConfig, WorkloadTemplate};

use section::Field;
use tree::TreeNode;
use trouble::Trouble;

/// The file name in errors about settings without a file.
const BUILT_IN: &str = "built-in settings";

/// The longest settings file, in bytes; a ConfigMap holds no more.
const LIMIT: u64 = 1024 * 1024;

/// The settings in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    /// Berth's scheduler name, as in `spec.schedulerName`.
    pub scheduler_name: String,
    /// The namespaces whose pods the webhook judges.
    pub scope: AdmissionScope,
    /// Schedulers whose share pods become Berth's.
    pub adopt_schedulers: Vec<String>,
    /// The namespaces in which schedulers of HAMi and Volcano run: a pod that looks like one anywhere else is none.
    pub scheduler_namespaces: Vec<String>,
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
    /// What the users of a namespace are told.
    pub messages: MessagesConfig,
    /// What is spoken with the nodes.
    pub dialects: DialectsConfig,
}

/// The namespaces whose pods the webhook judges.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionScope {
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
    /// Deny it where the manifests give the accounts of device plugins the right, and else warn.
    Auto,
}

/// The dialects' settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DialectsConfig {
    /// HAMi's.
    pub hami: HamiConfig,
    /// Volcano's.
    pub volcano: VolcanoConfig,
    /// Koordinator's.
    pub koordinator: KoordinatorConfig,
}

impl Config {
    /// These settings beside an API server of this release; `None`: it is not known.
    #[must_use]
    pub fn beside(mut self, api_server: Option<KubeScheduler>) -> Self {
        self.scheduling.api_server = api_server;
        self
    }

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
        let config = match root::read(&Field::root(root.clone()), &mut notices) {
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

/// The most errors of one file that are reported.
const MOST_TROUBLES: usize = 20;

/// Everything that is wrong with a file, by line: what was found wrong is left out, and the rest is read again. What is wrong only
/// because something was left out is not reported.
fn troubles(mut root: TreeNode, first: Trouble) -> Vec<Trouble> {
    let mut reported = vec![first.clone()];
    let mut last = first;
    while reported.len() < MOST_TROUBLES && section::leave_out(&mut root, "", last.key()) {
        let Err(next) = root::read(&Field::root(root.clone()), &mut Vec::new()) else { break };
        if !reported.iter().any(|trouble| next.is_above(trouble)) {
            reported.push(next.clone());
        }
        last = next;
    }
    reported.sort_by_key(Trouble::line);
    reported
}

#[cfg(test)]
mod tests;
