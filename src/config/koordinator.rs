//! Settings of Koordinator's dialect.

use serde::Serialize;

use super::section::{Section, Trouble};

/// Settings of Koordinator's dialect.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KoordinatorConfig {
    /// Whether Berth serves the dialect; otherwise its pods are left to Koordinator's own scheduler.
    pub enabled: bool,
    /// Whether pods that ask for whole cards by their vendors' names (`nvidia.com/gpu`), and for no share, are given Koordinator's devices.
    pub whole_cards: bool,
}

pub(super) fn read(mut section: Section) -> Result<KoordinatorConfig, Trouble> {
    let config = KoordinatorConfig {
        enabled: section.on_unless_off("enabled")?,
        whole_cards: section.off_unless_on("wholeCards")?,
    };
    section.finish()?;
    Ok(config)
}
