//! The section `guards`: what admission does with a pod that gets round the accounting of cards.

use crate::admission::{Guards, Severity};

use super::{section::Section, trouble::Trouble};

/// The section; guards that it lacks keep their defaults.
pub(super) fn read(mut section: Section) -> Result<Guards, Trouble> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, tests::error};

    #[test]
    fn guards_are_as_hard_as_they_are_set() {
        let config = Config::parse("guards: {neverFits: deny, privileged: allow}", "f").unwrap().0;
        let guards = config.admission_settings().guards;
        assert_eq!((guards.never_fits, guards.privileged), (Severity::Deny, Severity::Allow));
        assert_eq!(guards.quota, Severity::Deny, "what is not stated keeps its default");
        assert!(error("guards: {privileged: maybe}").starts_with("berth.yaml:1: guards.privileged: "));
    }
}
