//! HAMi's and Volcano's own settings as a `berth.yaml`.
//!
//! What comes out is read by the settings' own code: a key that it refuses, or that changes nothing, is left out and named.

mod sources;
mod tree;

use std::{
    collections::{BTreeMap, BTreeSet},
    iter,
};

use serde_json::{Map, Value, json};

use super::{
    finding::{PreflightFinding, PreflightRule},
    phases, rules,
    seen::Seen,
    trust::KUBE_SYSTEM,
};
use crate::{
    cli::output,
    config::{Config, ConfigError, UnmanagedPods},
};

/// What the keys of HAMi's and Volcano's settings begin with in a berth.yaml.
const SECTIONS: [&str; 2] = ["dialects.hami.", "dialects.volcano."];

/// What errors of the converted settings would name as their file.
const NAME: &str = "berth.yaml";

/// Settings that `berth config` accepts.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The file's text.
    pub text: String,
    /// The same, read.
    pub config: Config,
    /// What could not be carried over, or has no use.
    pub findings: Vec<PreflightFinding>,
}

/// A key that was left out, or that stays without all of its effect.
#[derive(Clone, Debug, Eq, PartialEq)]
struct LeftOut {
    key: String,
    message: String,
    because: Because,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Because {
    /// It can't be read, contradicts another key, or is unknown.
    Refused,
    /// It is read and has not all of its effect.
    Partial,
    /// Berth has no use for it.
    Unused,
}

/// The settings of what runs in the cluster; without HAMi and Volcano, the defaults with all keys that a site decides on.
pub fn convert(seen: &Seen, unmanaged: UnmanagedPods) -> Converted {
    let sources = sources::read(seen);
    let mut tree = Map::new();
    tree.insert("scope".to_owned(), sources.scope.into());
    tree.insert("adoptSchedulers".to_owned(), json!(sources.adopted));
    if !sources.elsewhere.is_empty() {
        let namespaces: Vec<&str> =
            iter::once(KUBE_SYSTEM).chain(sources.elsewhere.iter().map(String::as_str)).collect();
        tree.insert("schedulerNamespaces".to_owned(), json!(namespaces));
    }
    let unmanaged = if unmanaged == UnmanagedPods::Deny { "deny" } else { "warn" };
    tree.insert("unmanagedPods".to_owned(), unmanaged.into());
    tree.insert("protection".to_owned(), "warn".into());
    let sections = [("hami", sources.hami), ("volcano", sources.volcano)];
    let dialects: Map<_, _> = sections
        .into_iter()
        .filter(|(_, section)| !section.is_empty())
        .map(|(name, section)| (name.to_owned(), Value::Object(section)))
        .collect();
    if !dialects.is_empty() {
        tree.insert("dialects".to_owned(), Value::Object(dialects));
    }
    let (tree, config, left_out) = settle(Value::Object(tree));
    let mut findings = sources.findings;
    findings.extend(told(&left_out, &sources.origins, &sources.flags));
    let origins: BTreeSet<_> = sources.origins.values().chain(sources.flags.values()).collect();
    let header = origins.into_iter().flat_map(|origin| ["# From ", origin, ".\n"]).collect::<String>();
    let text = format!("# Written by `berth preflight --settings`.\n{header}{}", written(&tree));
    Converted { text, config, findings }
}

/// The tree as YAML; what phases of a take-over change stands first, each key on a line of its own.
fn written(tree: &Value) -> String {
    let mut rest = tree.clone();
    let mut lines = String::new();
    for key in phases::KEYS {
        if let Some(value) = rest.as_object_mut().and_then(|keys| keys.shift_remove(key)) {
            lines.extend([key, ": ", &phases::flow(&value), "\n"]);
        }
    }
    if rest.as_object().is_none_or(|keys| !keys.is_empty()) || lines.is_empty() {
        lines += &output::yaml(&rest).expect("a tree of JSON can be written as YAML");
    }
    lines
}

/// Takes away what the settings refuse, then what changes nothing.
fn settle(mut tree: Value) -> (Value, Config, Vec<LeftOut>) {
    let mut left_out = Vec::new();
    loop {
        let (key, message) = match Config::parse(&written(&tree), NAME) {
            Ok((config, notices)) => {
                let unused = notices.iter().find_map(|notice| {
                    let without = tree::without(&tree, &notice.key)?;
                    let same =
                        Config::parse(&written(&without), NAME).is_ok_and(|(other, _)| other == config);
                    same.then_some((without, notice))
                });
                let Some((without, notice)) = unused else {
                    left_out.extend(notices.into_iter().map(|notice| LeftOut {
                        key: notice.key,
                        message: notice.message,
                        because: Because::Partial,
                    }));
                    return (tree, config, left_out);
                };
                let (key, message) = (notice.key.clone(), notice.message.clone());
                left_out.push(LeftOut { key, message, because: Because::Unused });
                tree = without;
                continue;
            }
            // One at a time: without the first key another may be right.
            Err(error) => match error.each().first() {
                Some(ConfigError::Key { key, message, .. }) => (key.clone(), message.clone()),
                _ => ("dialects".to_owned(), error.to_string()),
            },
        };
        match tree::without(&tree, &key) {
            Some(without) => tree = without,
            // Not a key of the tree: the sections are given up, and with them whatever it is.
            None => tree = tree::without(&tree, "dialects").unwrap_or_else(|| json!({})),
        }
        left_out.push(LeftOut { key, message, because: Because::Refused });
    }
}

/// One finding for each reason and source, with all keys.
fn told(
    left_out: &[LeftOut],
    origins: &BTreeMap<&'static str, String>,
    flags: &BTreeMap<String, String>,
) -> Vec<PreflightFinding> {
    let mut by_reason: BTreeMap<(Because, &str, &str), Vec<&str>> = BTreeMap::new();
    for LeftOut { key, message, because } in left_out {
        let section = origins.iter().find(|(prefix, _)| key.starts_with(**prefix)).map(|(_, origin)| origin);
        let origin = flags.get(key).or(section).map_or(NAME, String::as_str);
        let short = SECTIONS.iter().find_map(|section| key.strip_prefix(section)).unwrap_or(key);
        // A key that stands in another program's file is no misspelling of one of ours.
        let message = message.split("; the nearest known one").next().unwrap_or(message);
        by_reason.entry((*because, origin, message)).or_default().push(short);
    }
    let finding = |((because, origin, message), keys): ((Because, &str, &str), Vec<&str>)| {
        let rule: &PreflightRule = match because {
            Because::Unused => &rules::SETTING_UNUSED,
            Because::Refused | Because::Partial => &rules::SETTING_NOT_CARRIED,
        };
        PreflightFinding::new(rule, origin, format!("{}: {message}", keys.join(", ")))
    };
    by_reason.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests;
