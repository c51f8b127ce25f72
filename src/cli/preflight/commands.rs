//! The commands that take over, in the order in which they are run, and those that go back.

use serde::Serialize;

use super::{
    agents::Agent,
    examination::Examination,
    namespaces,
    program::{Program, Project},
    webhooks::{Covers, Webhook},
};
use crate::{
    admission::review::OPT_OUT,
    config::{Protection, Scope},
    dialect::hami::names,
};

/// Where the commands keep the converted settings.
pub const SETTINGS_FILE: &str = "berth.yaml";

/// One command.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Step {
    /// Which part of the way it belongs to.
    pub step: Stage,
    /// What to run in a POSIX shell.
    pub command: String,
}

/// A part of the way.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Keep the settings in a file, and check it.
    Settings,
    /// Keep namespaces out that HAMi's webhook does not cover either.
    KeepOut,
    /// Install Berth.
    Install,
    /// Let namespaces in.
    LetIn,
    /// Stop what Berth takes the place of.
    Switch,
    /// Once no warnings are left: let the policies deny.
    Protect,
    /// Go back.
    Back,
}

impl Stage {
    /// The heading above its commands.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Settings => "keep the settings, and check them",
            Self::KeepOut => "keep out what HAMi's webhook leaves alone",
            Self::Install => "install Berth beside what runs",
            Self::LetIn => "let namespaces in, one after the other",
            Self::Switch => "stop what Berth takes the place of",
            Self::Protect => "later, once the policies warn of nothing: let them deny",
            Self::Back => "to go back, in this order",
        }
    }
}

/// How Berth is installed.
#[derive(Clone, Debug)]
pub struct Installation<'a> {
    /// The settings file of `--config`; `None`: the settings are converted.
    pub config: Option<&'a str>,
    /// The text of the settings.
    pub settings: &'a str,
    /// The image, where one was named.
    pub image: Option<&'a str>,
    /// The built-in namespace, for which no flag is needed.
    pub default_namespace: &'a str,
}

/// Every command, in order.
pub fn commands(
    examination: &Examination<'_>,
    installation: &Installation<'_>,
    agents: &[Agent],
    webhooks: &[Webhook],
    to_label: &[String],
) -> Vec<Step> {
    let mut steps = Steps::default();
    let namespace = examination.namespace;
    let flags = flag_of(examination, installation);
    let file = quoted(installation.config.unwrap_or(SETTINGS_FILE));
    if installation.config.is_none() {
        let trusted = examination.seen.trust.flags();
        steps.add(Stage::Settings, format!("berth preflight{flags}{trusted} --settings > {file}"));
    }
    steps.add(Stage::Settings, format!("berth config --config {file}"));
    for kept in kept_out(examination, webhooks) {
        steps.add(Stage::KeepOut, format!("kubectl label namespace {kept} {OPT_OUT}=ignore --overwrite"));
    }
    let manifests = manifests(&file, &flags, installation, agents);
    steps.add(Stage::Install, format!("{manifests} | kubectl apply -f -"));
    steps.add(Stage::Install, format!("kubectl -n {namespace} rollout status deployment/berth"));
    for name in to_label {
        steps.add(Stage::LetIn, namespaces::label(name));
    }
    let replaced: Vec<_> = webhooks.iter().filter(|webhook| webhook.project == Project::Hami).collect();
    let stopped: Vec<_> =
        examination.schedulers(Project::Hami).filter(|program| scaled(program, 0).is_some()).collect();
    steps.extend(Stage::Switch, replaced.iter().map(|webhook| webhook.switch_off()));
    steps.extend(Stage::Switch, stopped.iter().filter_map(|program| scaled(program, 0)));
    if examination.config.protection == Protection::Warn
        && installation.settings.lines().any(|line| line == PROTECTION)
    {
        let edit =
            format!("sed 's/^{PROTECTION}$/protection: deny/' {file} > {file}.new && mv {file}.new {file}");
        steps.add(Stage::Protect, edit);
        steps.add(Stage::Protect, format!("{manifests} | kubectl apply -f -"));
        steps.add(Stage::Protect, format!("kubectl -n {namespace} rollout restart deployment/berth"));
    }
    let replicas = |program: &Program| program.replicas.unwrap_or(1).max(1);
    steps.extend(Stage::Back, stopped.iter().filter_map(|program| scaled(program, replicas(program))));
    steps.extend(Stage::Back, replaced.iter().map(|webhook| webhook.switch_on()));
    let configurations = "mutatingwebhookconfiguration/berth validatingwebhookconfiguration/berth";
    steps.add(Stage::Back, format!("kubectl delete {configurations} --ignore-not-found"));
    for name in to_label {
        steps.add(Stage::Back, format!("kubectl label namespace {name} {OPT_OUT}-"));
    }
    steps.add(Stage::Back, format!("{manifests} | kubectl delete --ignore-not-found -f -"));
    steps.0
}

/// The line of the converted settings that the last step changes.
pub const PROTECTION: &str = "protection: warn";

#[derive(Default)]
struct Steps(Vec<Step>);

impl Steps {
    fn add(&mut self, step: Stage, command: String) {
        self.0.push(Step { step, command });
    }

    fn extend(&mut self, step: Stage, commands: impl Iterator<Item = String>) {
        self.0.extend(commands.map(|command| Step { step, command }));
    }
}

fn flag_of(examination: &Examination<'_>, installation: &Installation<'_>) -> String {
    let namespace = examination.namespace;
    if namespace == installation.default_namespace {
        String::new()
    } else {
        format!(" --namespace {namespace}")
    }
}

fn manifests(file: &str, flags: &str, installation: &Installation<'_>, agents: &[Agent]) -> String {
    let image = installation.image.map(|image| format!(" --image {}", quoted(image))).unwrap_or_default();
    let mut accounts: Vec<_> = agents.iter().map(|agent| agent.account.as_str()).collect();
    accounts.dedup();
    let accounts = accounts.iter().flat_map(|account| [" --agent ", *account]).collect::<String>();
    format!("berth manifests --config {file}{flags}{image}{accounts}")
}

/// Namespaces that HAMi leaves alone and that would come in by `scope: opt-out`.
fn kept_out(examination: &Examination<'_>, webhooks: &[Webhook]) -> Vec<String> {
    if examination.config.scope != Scope::OptOut {
        return Vec::new();
    }
    let of_hami = webhooks.iter().filter(|webhook| webhook.project == Project::Hami);
    let except: Vec<&String> = of_hami
        .filter_map(|webhook| match &webhook.covers {
            Covers::AllExcept(names) => Some(names),
            Covers::Chosen => None,
        })
        .flatten()
        .collect();
    let namespaces = examination.seen.namespaces.values().filter(|namespace| {
        let metadata = &namespace.metadata;
        let left_alone = metadata.label(names::OPT_OUT) == Some("ignore") || except.contains(&&metadata.name);
        left_alone && namespaces::coverage(namespace, examination) != namespaces::Coverage::System
    });
    let named = |namespace: &crate::object::Namespace| namespace.metadata.name.clone();
    namespaces.filter(|namespace| namespace.metadata.label(OPT_OUT).is_none()).map(named).collect()
}

/// The command that gives a scheduler so many replicas; `None`: its kind has no number of them.
fn scaled(program: &Program, replicas: i64) -> Option<String> {
    let kind = match program.kind.as_str() {
        "Deployment" => "deployment",
        "StatefulSet" => "statefulset",
        _ => return None,
    };
    Some(format!("kubectl -n {} scale {kind}/{} --replicas={replicas}", program.namespace, program.name))
}

/// The command with these flags for each program in its pipe that talks to a cluster: `kubectl` and `berth preflight`.
pub fn with_flags(command: &str, flags: &str) -> String {
    let stages = command.split(" | ").map(|stage| {
        let program = ["kubectl", "berth preflight"].into_iter().find(|program| {
            stage.strip_prefix(program).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        });
        program.map_or_else(
            || stage.to_owned(),
            |program| format!("{program}{flags}{}", &stage[program.len()..]),
        )
    });
    stages.collect::<Vec<_>>().join(" | ")
}

/// A word of a shell command: as it is where the shell takes it so, else in single quotes.
pub fn quoted(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | ',' | '+');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_for_the_cluster_go_to_each_program_that_talks_to_it() {
        let with = |command| with_flags(command, " --context a");
        assert_eq!(
            with("berth manifests --config f | kubectl apply -f -"),
            "berth manifests --config f | kubectl --context a apply -f -"
        );
        assert_eq!(with("berth preflight --settings > f"), "berth preflight --context a --settings > f");
        assert_eq!(with("berth config --config f"), "berth config --config f");
        assert_eq!(with("sed 's/kubectl x/y/' f"), "sed 's/kubectl x/y/' f");
        assert_eq!(with_flags("kubectl get pods", ""), "kubectl get pods");
    }

    #[test]
    fn a_word_that_the_shell_would_take_apart_is_quoted() {
        assert_eq!(quoted("conf/berth.yaml"), "conf/berth.yaml");
        assert_eq!(quoted("my berth.yaml"), "'my berth.yaml'");
        assert_eq!(quoted("it's; $HOME"), r"'it'\''s; $HOME'");
        assert_eq!(quoted(""), "''");
    }
}
