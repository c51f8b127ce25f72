//! The commands that take over, in the order in which they are run, and those that go back, with Helm and with kubectl.

mod hami;
mod installation;
mod step;

use super::{
    agents::AgentAccount,
    examination::Examination,
    namespaces,
    phases::{Edit, Phases},
    program::Project,
    shell::quoted,
    webhooks::{Covers, SeenWebhook},
};
use crate::{
    admission::review::OPT_OUT,
    config::{AdmissionScope, Protection},
    dialect::hami::names,
};

use hami::StoppedHami;
pub use installation::Installation;
pub use step::{CommandStage, SETTINGS_FILE, Step, Tool};

/// Every command, in order.
pub fn commands(
    examination: &Examination<'_>,
    installation: &Installation<'_>,
    agents: &[AgentAccount],
    webhooks: &[SeenWebhook],
    to_label: &[String],
) -> Vec<Step> {
    let mut way =
        DraftedCommands { steps: Vec::new(), berth: installation.commands(examination.namespace, agents) };
    let phases = installation.takes_over.then(|| Phases::to(examination.config));
    way.settings(examination, installation);
    let kept_out = kept_out(examination, webhooks);
    // Settings of the site's own are in force from the first command on.
    if phases.is_none() {
        way.add_all(CommandStage::KeepOut, None, kept_out.iter().map(|(keep, _)| keep.clone()));
    }
    way.both(CommandStage::Install, |berth| (&berth.install_by_helm, &berth.apply));
    way.add(CommandStage::Install, None, way.berth.wait.clone());
    way.add_all(CommandStage::LetIn, None, to_label.iter().map(|name| namespaces::label(name)));
    if phases.is_some() {
        way.add_all(CommandStage::KeepOut, None, kept_out.iter().map(|(keep, _)| keep.clone()));
    }
    let hami = StoppedHami::of(examination, webhooks);
    if let Some(phases) = &phases {
        way.change(CommandStage::Switch, &phases.switch);
    }
    way.steps.extend(hami.off(CommandStage::Switch));
    let of_protection = (Edit::protection("deny"), Edit::protection("warn"));
    let (protect, unprotect) = phases
        .as_ref()
        .map_or((&of_protection.0, &of_protection.1), |phases| (&phases.protect, &phases.unprotect));
    let warns = installation.settings.lines().any(|line| line == PROTECTION);
    let protects = examination.config.protection == Protection::Warn && warns;
    if protects {
        way.change(CommandStage::Protect, protect);
        way.change(CommandStage::BackFromProtect, unprotect);
    }
    if let Some(phases) = &phases {
        way.change(CommandStage::BackFromSwitch, &phases.give_back);
    }
    way.steps.extend(hami.on(CommandStage::BackFromSwitch));
    if let Some(phases) = &phases {
        way.change(CommandStage::BackFromSwitch, &phases.withdraw);
    }
    way.add_all(CommandStage::BackFromSwitch, None, kept_out.into_iter().map(|(_, back)| back));
    way.add_all(CommandStage::BackFromLetIn, None, to_label.iter().map(|name| unlabel(name)));
    way.remove(examination);
    way.steps
}

/// The line of the settings without which the last change is left to the reader.
const PROTECTION: &str = "protection: warn";

/// The commands as they are put together, and those that change Berth's installation.
struct DraftedCommands {
    steps: Vec<Step>,
    berth: installation::Commands,
}

impl DraftedCommands {
    fn add(&mut self, step: CommandStage, with: Option<Tool>, command: String) {
        self.steps.push(Step { step, with, command });
    }

    fn add_all(&mut self, step: CommandStage, with: Option<Tool>, commands: impl Iterator<Item = String>) {
        self.steps.extend(commands.map(|command| Step { step, with, command }));
    }

    /// A command for each of the two ways.
    fn both(&mut self, step: CommandStage, of: impl Fn(&installation::Commands) -> (&String, &String)) {
        let (helm, kubectl) = of(&self.berth);
        let (helm, kubectl) = (helm.clone(), kubectl.clone());
        self.add(step, Some(Tool::Helm), helm);
        self.add(step, Some(Tool::Kubectl), kubectl);
    }

    fn settings(&mut self, examination: &Examination<'_>, installation: &Installation<'_>) {
        let file = self.berth.file.clone();
        if installation.config.is_none() {
            let flags = installation.flags(examination.namespace);
            let trusted = examination.seen.trust.flags();
            self.add(
                CommandStage::Settings,
                None,
                format!("berth preflight{flags}{trusted} --settings > {file}"),
            );
        }
        self.add(CommandStage::Settings, None, format!("berth config --config {file}"));
    }

    /// Edits the settings file, and lets Berth read it.
    fn change(&mut self, step: CommandStage, edit: &Edit) {
        if edit.is_empty() {
            return;
        }
        self.add(step, None, edit.command(&self.berth.file));
        self.both(step, |berth| (&berth.upgrade_by_helm, &berth.apply));
        self.add(step, None, self.berth.restart.clone());
        self.add(step, None, self.berth.wait.clone());
    }

    fn remove(&mut self, examination: &Examination<'_>) {
        let step = CommandStage::BackFromInstall;
        let name = quoted(&examination.config.scheduler_name);
        self.add(
            step,
            None,
            format!("kubectl get pods -A --field-selector spec.schedulerName={name},spec.nodeName="),
        );
        self.add(step, Some(Tool::Helm), self.berth.uninstall_by_helm.clone());
        let configurations = "mutatingwebhookconfiguration/berth validatingwebhookconfiguration/berth";
        self.add(step, Some(Tool::Kubectl), format!("kubectl delete {configurations} --ignore-not-found"));
        self.add(step, Some(Tool::Kubectl), self.berth.delete.clone());
    }
}

fn unlabel(namespace: &str) -> String {
    format!("kubectl label namespace {namespace} {OPT_OUT}-")
}

/// The commands that keep namespaces out that HAMi leaves alone and that would come in by `scope: opt-out`, each with what undoes it.
fn kept_out(examination: &Examination<'_>, webhooks: &[SeenWebhook]) -> Vec<(String, String)> {
    if examination.config.scope != AdmissionScope::OptOut {
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
    let (mut by_label, mut kept) = (false, Vec::new());
    for namespace in examination.seen.namespaces.values() {
        let metadata = &namespace.metadata;
        let system = namespaces::coverage(namespace, examination) == namespaces::Coverage::System;
        if system || metadata.label(OPT_OUT).is_some() {
            continue;
        }
        if metadata.label(names::OPT_OUT) == Some("ignore") {
            by_label = true;
        } else if except.contains(&&metadata.name) {
            let name = &metadata.name;
            kept.push((format!("kubectl label namespace {name} {OPT_OUT}=ignore"), unlabel(name)));
        }
    }
    if by_label {
        let (hami, berth) = (names::OPT_OUT, OPT_OUT);
        kept.push((
            format!("kubectl label namespaces -l '{hami}=ignore,!{berth}' {berth}=ignore"),
            format!("kubectl label namespaces -l {hami}=ignore,{berth}=ignore {berth}-"),
        ));
    }
    kept
}

#[cfg(test)]
mod tests;
