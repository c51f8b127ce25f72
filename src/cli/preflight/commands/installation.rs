//! The commands that install, change and remove Berth, with its chart and with `berth manifests`.

use super::step::SETTINGS_FILE;
use crate::cli::preflight::{agents::AgentAccount, shell::quoted};

/// The chart in a clone of the repository, which is also the name of its folder there.
const CHART: &str = "deploy/helm/berth";
/// The release's name.
const RELEASE: &str = "berth";
/// Berth's Deployments, of which there are two where webhook and binder are apart.
const DEPLOYMENTS: &str = "deployment -l app.kubernetes.io/name=berth";

/// How Berth is installed.
#[derive(Clone, Copy, Debug)]
pub struct Installation<'a> {
    /// The settings file of `--config`; `None`: the settings are converted.
    pub config: Option<&'a str>,
    /// The text of the settings.
    pub settings: &'a str,
    /// Whether the settings change from phase to phase, since another scheduler's shares become Berth's.
    pub takes_over: bool,
    /// The image, where one was named.
    pub image: Option<&'a str>,
    /// The built-in namespace, for which no flag is needed.
    pub default_namespace: &'a str,
}

/// The commands, each of them whole.
pub(super) struct Commands {
    /// The settings file, as a word of a shell.
    pub(super) file: String,
    pub(super) install_by_helm: String,
    pub(super) upgrade_by_helm: String,
    pub(super) uninstall_by_helm: String,
    pub(super) apply: String,
    pub(super) delete: String,
    pub(super) restart: String,
    pub(super) wait: String,
}

impl Installation<'_> {
    /// The flag for Berth's namespace, with a blank before it; empty for the built-in one.
    pub(super) fn flags(&self, namespace: &str) -> String {
        if namespace == self.default_namespace { String::new() } else { format!(" --namespace {namespace}") }
    }

    pub(super) fn commands(&self, namespace: &str, agents: &[AgentAccount]) -> Commands {
        let file = quoted(self.config.unwrap_or(SETTINGS_FILE));
        let mut accounts: Vec<_> = agents.iter().map(|agent| agent.account.as_str()).collect();
        accounts.dedup();
        let image = self.image.map(|image| format!(" --image {}", quoted(image))).unwrap_or_default();
        let flags = self.flags(namespace);
        let agents = accounts.iter().flat_map(|account| [" --agent ", *account]).collect::<String>();
        let manifests = format!("berth manifests --config {file}{flags}{image}{agents}");
        let mut values = self.image.map(values_of).unwrap_or_default();
        if !accounts.is_empty() {
            values.push(format!("agents={{{}}}", accounts.join(",")));
        }
        let values =
            values.iter().flat_map(|value| [" --set ".to_owned(), quoted(value)]).collect::<String>();
        let helm = format!("helm upgrade {RELEASE} {CHART} --namespace {namespace}");
        Commands {
            install_by_helm: format!("{helm} --install --create-namespace{values} --set-file config={file}"),
            upgrade_by_helm: format!("{helm} --reset-then-reuse-values --set-file config={file}"),
            uninstall_by_helm: format!("helm uninstall {RELEASE} --namespace {namespace}"),
            apply: format!("{manifests} | kubectl apply -f -"),
            delete: format!("{manifests} | kubectl delete --ignore-not-found -f -"),
            restart: format!("kubectl -n {namespace} rollout restart {DEPLOYMENTS}"),
            wait: format!("kubectl -n {namespace} rollout status {DEPLOYMENTS}"),
            file,
        }
    }
}

/// The chart's values for an image.
fn values_of(image: &str) -> Vec<String> {
    let (named, digest) =
        image.split_once('@').map_or((image, None), |(named, digest)| (named, Some(digest)));
    // What follows the last colon may also be a registry's port and a path.
    let (repository, tag) = match named.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (named, None),
    };
    let value = |key: &str, value: &str| format!("image.{key}={value}");
    let tag = tag.filter(|_| digest.is_none()).map(|tag| value("tag", tag));
    let digest = digest.map(|digest| value("digest", digest));
    [Some(value("repository", repository)), tag, digest].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_becomes_the_charts_values() {
        let cases = [
            ("registry:5000/gpu/berth:v9", &["image.repository=registry:5000/gpu/berth", "image.tag=v9"][..]),
            ("registry:5000/gpu/berth", &["image.repository=registry:5000/gpu/berth"]),
            ("a/b:v1@sha256:00", &["image.repository=a/b", "image.digest=sha256:00"]),
        ];
        for (image, expected) in cases {
            assert_eq!(values_of(image), expected, "{image}");
        }
    }
}
