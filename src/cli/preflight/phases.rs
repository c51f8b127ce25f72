//! The phases of a take-over, as changes of single lines of one settings file.
//!
//! Each change is a text and a command: what it makes of the file, and how a shell makes it. It must not know what runs in a cluster.

use serde_json::{Value, json};

use crate::config::{AdmissionScope, Config, UnmanagedPods};

/// The keys that phases change. In the converted settings each has a line of its own.
pub const KEYS: [&str; 4] = [SCOPE, ADOPTED, UNMANAGED, PROTECTION];

const SCOPE: &str = "scope";
const ADOPTED: &str = "adoptSchedulers";
const UNMANAGED: &str = "unmanagedPods";
const PROTECTION: &str = "protection";

/// New values for some of the keys.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Edit(Vec<(&'static str, String)>);

/// What each phase changes, and what undoes it.
#[derive(Clone, Debug)]
pub struct Phases {
    /// Berth runs beside the old scheduler, and serves the namespaces that are labelled.
    pub beside: Edit,
    /// Berth serves what the old scheduler has served, and the pods that bear its name.
    pub switch: Edit,
    /// The policies deny what they have warned of.
    pub protect: Edit,
    /// The policies warn again.
    pub unprotect: Edit,
    /// The old scheduler has its name back.
    pub give_back: Edit,
    /// Only labelled namespaces are served again.
    pub withdraw: Edit,
}

impl Phases {
    /// The way to these settings, and back.
    pub fn to(config: &Config) -> Self {
        let all = config.scope == AdmissionScope::OptOut;
        let deny = config.unmanaged_pods == UnmanagedPods::Deny;
        let edit = |changes: &[(&'static str, Option<&str>)]| {
            let changed = changes.iter().filter_map(|(key, value)| Some((*key, (*value)?.to_owned())));
            Edit(changed.collect())
        };
        let adopted = flow(&json!(config.adopt_schedulers));
        let warn = [(UNMANAGED, Some("warn")), (PROTECTION, Some("warn"))];
        Self {
            beside: edit(&[(SCOPE, Some("opt-in")), (ADOPTED, Some("[]")), warn[0], warn[1]]),
            switch: edit(&[(SCOPE, all.then_some("opt-out")), (ADOPTED, Some(&adopted))]),
            protect: edit(&[(UNMANAGED, deny.then_some("deny")), (PROTECTION, Some("deny"))]),
            unprotect: edit(&[(UNMANAGED, deny.then_some("warn")), warn[1]]),
            give_back: edit(&[(ADOPTED, Some("[]"))]),
            withdraw: edit(&[(SCOPE, all.then_some("opt-in"))]),
        }
    }
}

impl Edit {
    /// Lets the policies on assignments and nodes deny, and nothing else.
    pub fn protection(action: &str) -> Self {
        Self(vec![(PROTECTION, action.to_owned())])
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with the new values; lines of other keys stay as they are.
    pub fn applied(&self, text: &str) -> String {
        let line = |line: &str| {
            let new = self
                .0
                .iter()
                .find(|(key, _)| line.strip_prefix(*key).is_some_and(|rest| rest.starts_with(": ")));
            new.map_or_else(|| format!("{line}\n"), |(key, value)| format!("{key}: {value}\n"))
        };
        text.lines().map(line).collect()
    }

    /// The command that does the same to a file, which is a word of a shell.
    pub fn command(&self, file: &str) -> String {
        let edits = self.0.iter().map(|(key, value)| format!(" -e 's/^{key}: .*/{key}: {value}/'"));
        format!("sed{} {file} > {file}.new && mv {file}.new {file}", edits.collect::<String>())
    }
}

/// A value as YAML writes it within one line.
pub fn flow(value: &Value) -> String {
    let plain = |text: &str| {
        let keyword = matches!(text, "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n");
        let name = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
        name && text.starts_with(|c: char| c.is_ascii_lowercase()) && !keyword
    };
    match value {
        Value::String(text) if plain(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const TARGET: &str = "# Of the site.\nscope: opt-out\nadoptSchedulers: [hami-scheduler]\nunmanagedPods: deny\nprotection: warn\ndialects:\n  \
        hami:\n    scope: kept\n";

    fn config(text: &str) -> Config {
        Config::parse(text, "f").unwrap().0
    }

    #[test]
    fn each_phase_changes_its_own_lines_and_is_undone_by_the_way_back() {
        let target = TARGET.replace("    scope: kept\n", "    enabled: true\n");
        let Phases { beside, switch, protect, unprotect, give_back, withdraw } = Phases::to(&config(&target));
        let first = beside.applied(TARGET);
        assert!(
            first.contains("\nscope: opt-in\nadoptSchedulers: []\nunmanagedPods: warn\nprotection: warn\n"),
            "{first}"
        );
        assert!(first.starts_with("# Of the site.\n") && first.ends_with("    scope: kept\n"), "{first}");
        let third = switch.applied(&first);
        assert!(
            third.contains("\nscope: opt-out\nadoptSchedulers: [hami-scheduler]\nunmanagedPods: warn\n"),
            "{third}"
        );
        let fifth = protect.applied(&third);
        assert!(fifth.contains("\nunmanagedPods: deny\nprotection: deny\n"), "{fifth}");
        assert_eq!(unprotect.applied(&fifth), third);
        assert_eq!(withdraw.applied(&give_back.applied(&third)), first);
    }

    #[test]
    fn a_phase_that_changes_nothing_has_no_edit() {
        let phases = Phases::to(&config("adoptSchedulers: [volcano]"));
        assert!(phases.withdraw.is_empty() && !phases.switch.is_empty());
        assert_eq!(
            phases.protect,
            Edit::protection("deny"),
            "unmanaged pods are warned of, as the settings say"
        );
    }

    /// sed is on every machine that runs these tests.
    #[test]
    fn the_command_makes_the_same_change_as_the_text() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("berth.yaml"), TARGET).unwrap();
        let edit = Phases::to(&config("scope: opt-out\nadoptSchedulers: [volcano, \"true\"]")).switch;
        let ran =
            Command::new("sh").args(["-c", &edit.command("berth.yaml")]).current_dir(folder.path()).status();
        assert!(ran.unwrap().success());
        let text = std::fs::read_to_string(folder.path().join("berth.yaml")).unwrap();
        assert_eq!(text, edit.applied(TARGET));
        assert!(text.contains("adoptSchedulers: [volcano, \"true\"]"), "{text}");
    }
}
