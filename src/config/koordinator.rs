//! Settings of Koordinator's dialect.

use serde::Serialize;

use super::section::{Section, Trouble};

/// Settings of Koordinator's dialect.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KoordinatorConfig {
    /// Whether Berth serves the dialect; otherwise its pods are left to Koordinator's own scheduler.
    pub enabled: bool,
}

pub(super) fn read(mut section: Section) -> Result<KoordinatorConfig, Trouble> {
    let enabled = section.on_unless_off("enabled")?;
    section.finish()?;
    Ok(KoordinatorConfig { enabled })
}
