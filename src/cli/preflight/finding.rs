//! What an examination can find: the rules by name, how grave each is, and one finding.

use std::fmt;

use serde::Serialize;

use crate::excerpt::{FIELD, SUMMARY, shortened};

/// How grave a finding is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingSeverity {
    /// Berth must not be installed, or not be relied on, before this is resolved.
    Blocker,
    /// Something will not work, or not as before, unless it is looked after.
    Warning,
    /// A fact that the commands already allow for.
    Info,
}

impl fmt::Display for FindingSeverity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Blocker => "blocker",
            Self::Warning => "warning",
            Self::Info => "info",
        })
    }
}

/// A kind of finding. Names are stable.
#[derive(Debug, Eq, PartialEq)]
pub struct PreflightRule {
    /// In kebab case.
    pub name: &'static str,
    /// How grave it is.
    pub severity: FindingSeverity,
    /// What it means, for the documentation.
    pub meaning: &'static str,
}

/// One finding.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PreflightFinding {
    /// The rule's name.
    pub rule: &'static str,
    /// How grave it is.
    pub severity: FindingSeverity,
    /// Kind, namespace and name, such as `Deployment kube-system/hami-scheduler`.
    pub object: String,
    /// What is the case, and what follows from it.
    pub message: String,
    /// What resolves it, where one command does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl PreflightFinding {
    /// A finding of this rule about an object. Texts from the cluster are shortened, and characters that forge lines are escaped.
    pub fn new(rule: &PreflightRule, object: impl Into<String>, message: impl Into<String>) -> Self {
        let PreflightRule { name, severity, .. } = *rule;
        let (object, message) = (shortened(object, FIELD), shortened(message, SUMMARY));
        Self { rule: name, severity, object, message, command: None }
    }

    /// The same finding with the command that resolves it.
    #[must_use]
    pub fn with_command(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }
}

/// How findings name an object: `Deployment team-a/train`, `Node gpu-1`.
pub fn called(kind: &str, namespace: &str, name: &str) -> String {
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}
