//! What stops HAMi's scheduler and webhook, and starts them again: the values of its chart where Helm keeps them, and kubectl's commands.
//!
//! Source: HAMi v2.10 `charts/hami/values.yaml` and `templates/scheduler/{deployment,webhook}.yaml`: without `leaderElect` the chart makes one replica, whatever
//! `replicas` says. It has no value `scheduler.enabled`.

use std::collections::BTreeMap;

use super::step::{CommandStage, Step, Tool};
use crate::cli::preflight::{
    examination::Examination,
    program::{Program, Project},
    release::Release,
    shell::quoted,
    webhooks::SeenWebhook,
};

/// HAMi's chart in the repository that its manual adds.
const CHART: &str = "hami-charts/hami";
/// The chart's name.
const NAME: &str = "hami";

/// What of HAMi is stopped.
pub(super) struct StoppedHami<'a> {
    webhooks: Vec<&'a SeenWebhook>,
    schedulers: Vec<&'a Program>,
}

/// Values of a release: what stops, and what starts again.
#[derive(Default)]
struct Values {
    off: Vec<String>,
    on: Vec<String>,
}

impl Values {
    fn add(&mut self, key: &str, off: &str, on: &str) {
        let key = format!("scheduler.{key}");
        if self.off.iter().any(|known| known.starts_with(&format!("{key}="))) {
            return;
        }
        self.off.push(format!("{key}={off}"));
        self.on.push(format!("{key}={on}"));
    }
}

impl<'a> StoppedHami<'a> {
    pub(super) fn of(examination: &Examination<'a>, webhooks: &'a [SeenWebhook]) -> Self {
        let schedulers = examination.schedulers(Project::Hami).filter(|program| scaled(program, 0).is_some());
        let webhooks = webhooks.iter().filter(|webhook| webhook.project == Project::Hami);
        Self { webhooks: webhooks.collect(), schedulers: schedulers.collect() }
    }

    /// The commands that stop it. The webhook goes first, since the scheduler's process answers it.
    pub(super) fn off(&self, step: CommandStage) -> Vec<Step> {
        let by_helm = self.releases().into_iter().map(|(release, values)| upgraded(release, &values.off));
        let webhooks = self.webhooks.iter().map(|webhook| (webhook.release.is_some(), webhook.switch_off()));
        let schedulers =
            self.schedulers.iter().filter_map(|one| Some((one.release.is_some(), scaled(one, 0)?)));
        steps(step, by_helm, webhooks.chain(schedulers))
    }

    /// The commands that start it again, as it was.
    pub(super) fn on(&self, step: CommandStage) -> Vec<Step> {
        let by_helm = self.releases().into_iter().map(|(release, values)| upgraded(release, &values.on));
        let schedulers = self.schedulers.iter();
        let schedulers =
            schedulers.filter_map(|one| Some((one.release.is_some(), scaled(one, replicas(one))?)));
        let webhooks = self.webhooks.iter().map(|webhook| (webhook.release.is_some(), webhook.switch_on()));
        steps(step, by_helm, schedulers.chain(webhooks))
    }

    fn releases(&self) -> BTreeMap<&'a Release, Values> {
        let mut releases: BTreeMap<&Release, Values> = BTreeMap::new();
        for scheduler in &self.schedulers {
            let Some(release) = &scheduler.release else { continue };
            let values = releases.entry(release).or_default();
            values.add("replicas", "0", &replicas(scheduler).to_string());
            if scheduler.flags.iter().any(|(flag, value)| flag == "leader-elect" && value == "false") {
                values.add("leaderElect", "true", "false");
            }
        }
        for webhook in &self.webhooks {
            let Some(of_webhook) = &webhook.release else { continue };
            // The chart gives its label to the scheduler alone.
            let same = |release: &&&Release| {
                (&release.name, &release.namespace) == (&of_webhook.name, &of_webhook.namespace)
            };
            let release = releases.keys().find(same).copied().unwrap_or(of_webhook);
            releases.entry(release).or_default().add("admissionWebhook.enabled", "false", "true");
        }
        releases
    }
}

/// With Helm the releases; with kubectl everything; what Helm does not keep, with both.
fn steps(
    step: CommandStage,
    by_helm: impl Iterator<Item = String>,
    by_kubectl: impl Iterator<Item = (bool, String)>,
) -> Vec<Step> {
    let by_helm = by_helm.map(|command| Step { step, with: Some(Tool::Helm), command });
    let by_kubectl = by_kubectl.map(|(kept_by_helm, command)| {
        let with = kept_by_helm.then_some(Tool::Kubectl);
        Step { step, with, command }
    });
    by_helm.chain(by_kubectl).collect()
}

/// The chart's version stays: a take-over is no upgrade of HAMi.
fn upgraded(release: &Release, values: &[String]) -> String {
    let version = release.version(NAME).map(|version| format!(" --version {}", quoted(&version)));
    format!(
        "helm upgrade {} {CHART}{} --namespace {} --reuse-values --set {}",
        quoted(&release.name),
        version.unwrap_or_default(),
        quoted(&release.namespace),
        values.join(",")
    )
}

fn replicas(program: &Program) -> i64 {
    program.replicas.unwrap_or(1).max(1)
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
