//! The answer of `berth preflight`: all findings, what follows from them, as JSON has it and as a person reads it.

use std::{collections::BTreeMap, fmt::Display};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    agents::{self, AgentAccount},
    api::{self, Kubernetes},
    commands::{self, CommandStage, Installation, Step, Tool},
    examination::Examination,
    finding::{FindingSeverity, PreflightFinding},
    namespaces,
    phases::Phases,
    pods, rules,
    seen::Seen,
    settings::{Converted, convert},
    shell, trust, webhooks, workloads,
};
use crate::{
    cli::{manifests::ManifestsError, output::Shown, table::Table},
    config::{Config, UnmanagedPods},
};

/// So many findings of one rule are shown in the table; JSON has all.
const SHOWN: usize = 10;

/// What it comes to.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub enum PreflightVerdict {
    /// Nothing stands in the way.
    #[serde(rename = "ready")]
    Ready,
    /// Berth can be installed; the warnings say what will not be as before.
    #[serde(rename = "ready with warnings")]
    ReadyWithWarnings,
    /// A finding has to be resolved first.
    #[serde(rename = "blocked")]
    Blocked,
}

/// The whole answer.
#[derive(Clone, Debug, Serialize)]
pub struct PreflightReport {
    /// What it comes to.
    pub verdict: PreflightVerdict,
    /// The API server.
    pub kubernetes: Kubernetes,
    /// Everything that was found, the gravest first.
    pub findings: Vec<PreflightFinding>,
    /// The accounts that write what the policies protect.
    pub agents: Vec<AgentAccount>,
    /// The text of the settings to begin with; the commands of a take-over change them to those that the report judges by.
    pub settings: String,
    /// What to run, in order.
    pub commands: Vec<Step>,
    /// How much was read, in words.
    #[serde(skip)]
    pub read: String,
}

/// The settings of `--config`.
#[derive(Clone, Debug)]
pub struct Given {
    /// The file, as it was named.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The same, read.
    pub config: Config,
}

/// How Berth is, or will be, installed.
#[derive(Clone, Copy, Debug)]
pub struct InstallationPlace<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// The built-in one.
    pub default_namespace: &'a str,
    /// The image, where one was named.
    pub image: Option<&'a str>,
}

impl PreflightReport {
    /// Judges what was read, by the settings that were given or else by those of what runs.
    pub fn of(
        seen: &Seen,
        given: Option<&Given>,
        place: InstallationPlace<'_>,
        now: Timestamp,
    ) -> Result<Self, ManifestsError> {
        let Converted { text, config, findings } = match given {
            Some(Given { text, config, .. }) => {
                Converted { text: text.clone(), config: config.clone(), findings: Vec::new() }
            }
            None => proposed(seen, place.namespace, now),
        };
        let examination = Examination::new(seen, &config, place.namespace, now);
        let (templates, unreadable) = workloads::templates(&examination);
        let mut found = api::findings(seen, &examination.facts.dialects)?;
        found.extend(trust::findings(&seen.strangers));
        found.extend(agents::findings(&examination));
        found.extend(webhooks::findings(seen));
        found.extend(namespaces::findings(&examination, &templates));
        found.extend(namespaces::labels_without_effect(&examination));
        found.extend(pods::findings(&examination).into_iter().filter(|_| seen.reads_the_cluster()));
        found.extend(unreadable);
        found.extend(workloads::findings(&examination, &templates));
        found.extend(findings);
        let order = |finding: &PreflightFinding| rules::ALL.iter().position(|rule| rule.name == finding.rule);
        found.sort_by_cached_key(|finding| (finding.severity, order(finding), finding.object.clone()));
        let agents = agents::agents(seen);
        let takes_over = given.is_none() && !config.adopt_schedulers.is_empty();
        let text = if takes_over { Phases::to(&config).beside.applied(&text) } else { text };
        let installation = Installation {
            config: given.map(|given| given.file.as_str()),
            settings: &text,
            takes_over,
            image: place.image,
            default_namespace: place.default_namespace,
        };
        let to_label = namespaces::to_label(&examination, &templates);
        let commands =
            commands::commands(&examination, &installation, &agents, &webhooks::webhooks(seen), &to_label);
        let kubernetes = Kubernetes::of(seen);
        let verdict = verdict(&found);
        Ok(Self { verdict, kubernetes, findings: found, agents, settings: text, commands, read: read(seen) })
    }

    /// With these flags in each command that talks to the cluster, so that the commands reach the cluster that was examined.
    #[must_use]
    pub fn for_cluster(mut self, flags: &str) -> Self {
        let printed = self.commands.iter_mut().map(|step| &mut step.command);
        let found = self.findings.iter_mut().filter_map(|finding| finding.command.as_mut());
        for command in printed.chain(found) {
            *command = shell::with_flags(command, flags);
        }
        self
    }

    /// As a person reads it: what was found, the settings, the commands, the verdict.
    pub fn text(&self) -> Shown {
        let mut text = Shown::default();
        let version = self.kubernetes.version.as_deref().unwrap_or("of an unknown version");
        line(
            &mut text,
            format_args!("Kubernetes {version}; Berth needs {} or newer", self.kubernetes.minimum),
        );
        line(&mut text, format_args!("Read: {}", self.read));
        if !self.agents.is_empty() {
            line(&mut text, "");
            text = text.and(&self.agents_table());
        }
        if !self.findings.is_empty() {
            line(&mut text, "");
            text = text.and(&self.findings_table());
        }
        line(&mut text, "");
        line(&mut text, format_args!("Settings ({}):", commands::SETTINGS_FILE));
        line(&mut text, "");
        self.settings.lines().for_each(|setting| line(&mut text, format_args!("  {setting}")));
        self.write_commands(&mut text);
        line(&mut text, "");
        line(&mut text, format_args!("Verdict: {}", self.summary()));
        text
    }

    fn agents_table(&self) -> Shown {
        let mut table = Table::new(&["ACCOUNT", "ROLE", "OF", "MAY WRITE", "WORKLOAD"]);
        for AgentAccount { account, role, project, workload, bound } in &self.agents {
            let bound = bound.map_or("unknown", |bound| if bound { "yes" } else { "no" });
            table.row([account, *role, *project, bound, workload]);
        }
        table.render()
    }

    fn findings_table(&self) -> Shown {
        let mut table = Table::new(&["SEVERITY", "RULE", "OBJECT", "MESSAGE"]);
        let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, finding) in self.findings.iter().enumerate() {
            let count = shown.entry(finding.rule).or_default();
            *count += 1;
            let severity = finding.severity.to_string();
            if *count <= SHOWN {
                table.row([severity.as_str(), finding.rule, &finding.object, &finding.message]);
            }
            let is_last = self.findings.get(at + 1).is_none_or(|next| next.rule != finding.rule);
            if is_last && *count > SHOWN {
                let more = format!("{} more; -o json lists all", *count - SHOWN);
                table.row([severity.as_str(), finding.rule, "…", &more]);
            }
        }
        table.render()
    }

    fn write_commands(&self, text: &mut Shown) {
        let mut before: (Option<CommandStage>, Option<Tool>) = (None, None);
        for Step { step, with, command } in &self.commands {
            if before.0 != Some(*step) {
                line(text, "");
                line(text, format_args!("# {}", step.heading()));
                before.1 = None;
            }
            if before.1 != *with {
                line(text, format_args!("#   with {}:", with.map_or("either", Tool::name)));
            }
            line(text, command);
            before = (Some(*step), *with);
        }
    }

    /// The verdict, and how many findings of each severity led to it.
    fn summary(&self) -> String {
        let count = |severity| self.findings.iter().filter(|finding| finding.severity == severity).count();
        let (blockers, warnings) = (count(FindingSeverity::Blocker), count(FindingSeverity::Warning));
        match self.verdict {
            PreflightVerdict::Ready => "ready".to_owned(),
            PreflightVerdict::ReadyWithWarnings => format!("ready with warnings ({warnings})"),
            PreflightVerdict::Blocked => {
                let blocking =
                    self.findings.iter().filter(|finding| finding.severity == FindingSeverity::Blocker);
                let mut rules: Vec<_> = blocking.map(|finding| finding.rule).collect();
                rules.dedup();
                format!(
                    "blocked by {blockers} finding(s): {}; resolve them before running the commands",
                    rules.join(", ")
                )
            }
        }
    }
}

/// How much was read: where that is nothing, a right may be missing.
fn read(seen: &Seen) -> String {
    let (pods, workloads) = (seen.pods.len(), seen.workloads.len());
    let (namespaces, nodes) = (seen.namespaces.len(), seen.nodes.len());
    format!(
        "{namespaces} namespace(s), {nodes} node(s), {pods} pod(s) that have not ended, {workloads} workload(s)"
    )
}

fn line(text: &mut Shown, line: impl Display) {
    *text = std::mem::take(text).and(&Shown::line(line));
}

fn verdict(findings: &[PreflightFinding]) -> PreflightVerdict {
    match findings.iter().map(|finding| finding.severity).min() {
        Some(FindingSeverity::Blocker) => PreflightVerdict::Blocked,
        Some(FindingSeverity::Warning) => PreflightVerdict::ReadyWithWarnings,
        Some(FindingSeverity::Info) | None => PreflightVerdict::Ready,
    }
}

/// The settings of what runs. Where share workloads are there and each has a scheduler that is known, unmanaged pods are denied.
fn proposed(seen: &Seen, namespace: &str, now: Timestamp) -> Converted {
    let converted = convert(seen, UnmanagedPods::Warn);
    let managed = {
        let examination = Examination::new(seen, &converted.config, namespace, now);
        let (templates, _) = workloads::templates(&examination);
        let covered = namespaces::findings(&examination, &templates).is_empty();
        covered && !templates.is_empty() && !workloads::any_is_unmanaged(&examination, &templates)
    };
    if managed { convert(seen, UnmanagedPods::Deny) } else { converted }
}
