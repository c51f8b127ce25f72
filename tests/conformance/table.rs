//! One file of cases: reads it, puts each case to its adapter, and holds the outcome against the list of differences.
//!
//! Knows nothing of what the cases are about.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use serde_json::Value;

/// One case of an upstream test.
pub(crate) struct Case {
    /// The upstream test.
    pub(crate) test: String,
    /// The case within it; with the test it names the case in lists of differences.
    pub(crate) name: String,
    /// What is put in.
    pub(crate) input: Value,
    /// What is expected.
    pub(crate) expect: Value,
    /// What holds for all cases of the test.
    pub(crate) context: Value,
}

/// What became of a case.
pub(crate) enum Verdict {
    /// Berth answers the same.
    Equal,
    /// Berth answers something else: what.
    Differs(String),
}

impl Verdict {
    /// Equal where both are; otherwise what Berth has and what upstream has.
    pub(crate) fn of<T: PartialEq + std::fmt::Debug>(berth: &T, upstream: &T) -> Self {
        if berth == upstream {
            return Self::Equal;
        }
        Self::Differs(format!("berth {berth:?}, upstream {upstream:?}"))
    }
}

/// A file of cases and how Berth stands to it.
pub(crate) struct Table<'a> {
    /// The file's name.
    pub(crate) file: &'static str,
    /// Cases that differ by intent, with the reason.
    pub(crate) differences: &'a [(&'a str, &'a str)],
    /// Upstream tests, or cases of them, about something that Berth does not have, with the reason.
    pub(crate) not_served: &'a [(&'a str, &'a str)],
}

impl Table<'_> {
    /// Puts every case to the adapter; panics unless every outcome is as listed.
    pub(crate) fn check(&self, adapter: impl Fn(&Case) -> Verdict) {
        let Some(cases) = read(self.file, "") else { return };
        self.check_all(self.file, &cases, adapter);
    }

    /// Likewise, of the cases whose test stands in this folder upstream.
    pub(crate) fn check_folder(&self, folder: &str, adapter: impl Fn(&Case) -> Verdict) {
        let Some(cases) = read(self.file, folder) else { return };
        assert!(!cases.is_empty(), "{}: no cases of {folder}", self.file);
        self.check_all(&format!("{} ({folder})", self.file), &cases, adapter);
    }

    /// Counts the cases of a folder that Berth has no counterpart of, with the reason.
    pub(crate) fn leave_folder(&self, folder: &str, reason: &str) {
        let Some(cases) = read(self.file, folder) else { return };
        assert!(!cases.is_empty(), "{}: no cases of {folder}", self.file);
        say(&format!("{} ({folder}): {} cases, not served: {reason}", self.file, cases.len()));
    }

    fn check_all(&self, title: &str, cases: &[Case], adapter: impl Fn(&Case) -> Verdict) {
        let mut tally = Tally::default();
        for case in cases {
            self.judge(case, &adapter, &mut tally);
        }
        self.report_unknown(cases, &mut tally);
        let Tally { equal, named, not_served, faults } = tally;
        let faulty = faults.len();
        say(&format!(
            "{title}: {} cases, {equal} equal, {named} named differences, {not_served} not served, {faulty} faults",
            cases.len()
        ));
        assert!(faults.is_empty(), "{title}:\n{}", faults.join("\n"));
    }

    fn judge(&self, case: &Case, adapter: &impl Fn(&Case) -> Verdict, tally: &mut Tally) {
        if self.not_served.iter().any(|(name, _)| *name == case.test || *name == case.name) {
            tally.not_served += 1;
            return;
        }
        let listed = self.differences.iter().find(|(name, _)| *name == case.name);
        match (adapter(case), listed) {
            (Verdict::Equal, None) => tally.equal += 1,
            (Verdict::Differs(_), Some(_)) => tally.named += 1,
            (Verdict::Equal, Some(_)) => {
                tally.faults.push(format!("{}: listed as a difference, but equal", case.name));
            }
            (Verdict::Differs(how), None) => tally.faults.push(format!("{}: {how}", case.name)),
        }
    }

    fn report_unknown(&self, cases: &[Case], tally: &mut Tally) {
        let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let tests: BTreeSet<&str> = cases.iter().map(|case| case.test.as_str()).collect();
        let gone = self.differences.iter().filter(|(name, _)| !names.contains(name));
        let known = |name: &str| tests.contains(name) || names.contains(name);
        let gone_tests = self.not_served.iter().filter(|(name, _)| !known(name));
        tally.faults.extend(gone.chain(gone_tests).map(|(name, _)| format!("{name}: listed, but not there")));
    }
}

#[derive(Default)]
struct Tally {
    equal: usize,
    named: usize,
    not_served: usize,
    faults: Vec<String>,
}

/// The file's cases, of tests whose path has this part; `None`, loudly, where the folder is not there.
fn read(file: &str, part: &str) -> Option<Vec<Case>> {
    let folder = std::env::var_os("BERTH_VECTORS")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/vectors"), PathBuf::from);
    let Ok(text) = fs::read_to_string(folder.join(file)) else {
        say(&format!("{file}: NOT CHECKED, it is not in {}; set BERTH_VECTORS", folder.display()));
        return None;
    };
    Some(cases(&serde_json::from_str(&text).unwrap(), part))
}

/// Cases stand in `groups` or `tests`, in lists whose names begin with `cases`, or directly in the file.
fn cases(file: &Value, part: &str) -> Vec<Case> {
    let lists = file.as_object().into_iter().flatten().filter(|(key, _)| key.starts_with("cases"));
    let lists: Vec<_> = lists.filter(|(_, cases)| cases[0]["id"].is_string()).collect();
    if !lists.is_empty() {
        let of = |(key, cases): (&String, &Value)| {
            cases.as_array().unwrap().iter().map(|case| listed(key, case, file)).collect::<Vec<_>>()
        };
        return lists.into_iter().flat_map(of).collect();
    }
    let groups = ["groups", "tests"].iter().find_map(|key| file[key].as_array());
    let whole = vec![file.clone()];
    let mut cases = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let of_part = |group: &&Value| group["file"].as_str().unwrap_or_default().contains(part);
    for group in groups.unwrap_or(&whole).iter().filter(of_part) {
        for case in group["cases"].as_array().unwrap() {
            let test = group["test"].as_str();
            let mut case = one(test, group, case);
            let times = seen.entry(case.name.clone()).or_default();
            *times += 1;
            if *times > 1 {
                case.name = format!("{} ({times})", case.name);
            }
            cases.push(case);
        }
    }
    cases
}

/// A case of Koordinator's: it has an `id`, and what is put in stands beside what is expected. The whole file is its context.
fn listed(list: &str, case: &Value, file: &Value) -> Case {
    let name = case["id"].as_str().unwrap().to_owned();
    let (input, expect) = (case.clone(), case.clone());
    Case { test: list.to_owned(), name, input, expect, context: file.clone() }
}

fn one(test: Option<&str>, group: &Value, case: &Value) -> Case {
    let name = case["name"].as_str().or_else(|| case["case"].as_str()).unwrap();
    let test = test.unwrap_or_else(|| name.split('#').next().unwrap_or(name));
    let prefixed = case["name"].is_string();
    // Volcano's rows hold input and expectation side by side in `data`.
    let row = &case["data"];
    let pick = |key: &str| if row.is_null() { case[key].clone() } else { row.clone() };
    let expect = if case["expected"].is_null() && row.is_null() { "expect" } else { "expected" };
    Case {
        test: test.to_owned(),
        name: if prefixed { name.to_owned() } else { format!("{test} / {name}") },
        input: pick("input"),
        expect: pick(expect),
        context: group["context"].clone(),
    }
}

/// Says something past the test harness, which shows a passing test's output to nobody.
fn say(line: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "{line}").unwrap();
}
