//! `scheduling.pluginConfig`: what is said to single plugins, below the names that kube-scheduler's configuration has for them.

use serde::Serialize;
use serde_json::Value;

use super::{schema::mapping, section::Section, trouble::Trouble};
use crate::scheduling::model::plugin_arguments::PluginArguments;

/// What is said to single plugins.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PluginConfig {}

impl PluginConfig {
    /// The same, for the plugins.
    #[expect(clippy::unused_self, reason = "no plugin has arguments yet")]
    pub fn arguments(&self) -> PluginArguments {
        PluginArguments::default()
    }
}

pub(super) fn read(section: Section) -> Result<PluginConfig, Trouble> {
    section.finish()?;
    Ok(PluginConfig {})
}

/// The schema of the section.
pub(super) fn schema() -> Value {
    mapping([])
}
