//! Where the tables are, and how a table's cases add up.

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// A table by its file's name; `None`, said aloud, where the tables are not there.
pub(crate) fn table(name: &str) -> Option<Value> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors");
    let folder = std::env::var_os("BERTH_VECTORS").map_or_else(beside, PathBuf::from);
    let path = folder.join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        say(&format!(
            "NOT RUN: {} is not there; BERTH_VECTORS names the folder of the tables",
            path.display()
        ));
        return None;
    };
    Some(serde_json::from_str(&text).unwrap())
}

/// Written past the test harness, which keeps the output of a passing test to itself.
fn say(text: &str) {
    // Written past the capture of the test runner: totals are to be seen.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "conformance: {text}").unwrap();
}

/// What came of a table's cases.
pub(crate) struct Tally<'a> {
    table: &'a str,
    differences: &'a [(&'a str, &'a str)],
    met: BTreeSet<&'a str>,
    alike: u32,
    different: u32,
    elsewhere: u32,
    faults: Vec<String>,
}

impl<'a> Tally<'a> {
    /// `differences` are the cases, by name, in which ours answers otherwise, with the reason.
    pub(crate) fn new(table: &'a str, differences: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            table,
            differences,
            met: BTreeSet::new(),
            alike: 0,
            different: 0,
            elsewhere: 0,
            faults: Vec::new(),
        }
    }

    /// A case was answered. A named difference that has gone is a fault too.
    pub(crate) fn case(&mut self, name: &str, theirs: &Value, ours: &Value) {
        let named = self.differences.iter().find(|(difference, _)| *difference == name);
        match (named, theirs == ours) {
            (None, true) => self.alike += 1,
            (Some((name, _)), false) => {
                self.met.insert(name);
                self.different += 1;
            }
            (None, false) => self.faults.push(format!("{name}: theirs {theirs}, ours {ours}")),
            (Some(_), true) => self.faults.push(format!("{name}: no longer different")),
        }
    }

    /// A case about something that is no pod's admission.
    pub(crate) fn not_ours(&mut self) {
        self.elsewhere += 1;
    }

    pub(crate) fn end(self) {
        let Self { table, alike, different, elsewhere, .. } = self;
        say(&format!(
            "{table}: {alike} alike, {different} different for a reason, {elsewhere} not about pods"
        ));
        for (name, reason) in self.differences {
            assert!(self.met.contains(name), "{table}: the difference {name} was not met");
            say(&format!("  {name}: {reason}"));
        }
        assert!(self.faults.is_empty(), "{table}:\n{}", self.faults.join("\n"));
    }
}
