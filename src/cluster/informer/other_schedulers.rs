//! Which schedulers of HAMi and Volcano run, by their own pods: a name that is still served by one is not served by Berth too.
//!
//! A pod that is being deleted counts until it is gone, since its process may still write. Whoever may create pods in a namespace can make one look
//! like a scheduler, so pods count in namespaces that the settings name. It must not decide what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use kube::Client;
use serde::Deserialize;
use tokio::sync::watch;

use super::{keep::keep_selected, wire::Wire};
use crate::{
    dialect::schedulers::{INSTALLED, Installed},
    object::Metadata,
};

/// A namespace, and a name that a pod in it serves.
type Served = (String, String);

/// What pods that look like schedulers serve, by the selector of their pods; a selector is missing until its pods are listed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Running {
    by_selector: BTreeMap<&'static str, BTreeSet<Served>>,
}

impl Running {
    /// Every name that is served in one of these namespaces; `None` until the pods of all schedulers are listed.
    pub fn names(&self, namespaces: &[String]) -> Option<BTreeSet<&str>> {
        let known = INSTALLED.iter().all(|installed| self.by_selector.contains_key(installed.selector));
        let counts = |(namespace, _): &&Served| namespaces.contains(namespace);
        known.then(|| self.served().filter(counts).map(|(_, name)| name.as_str()).collect())
    }

    /// The other namespaces in which a pod looks like a scheduler that serves this name.
    pub fn elsewhere(&self, name: &str, namespaces: &[String]) -> BTreeSet<&str> {
        let others = self.served().filter(|(namespace, _)| !namespaces.contains(namespace));
        others.filter(|(_, served)| served == name).map(|(namespace, _)| namespace.as_str()).collect()
    }

    fn served(&self) -> impl Iterator<Item = &Served> {
        self.by_selector.values().flatten()
    }
}

/// Publishes which schedulers run, whenever that changes. It never ends.
pub async fn follow(client: &Client, running: &watch::Sender<Running>) {
    join_all(INSTALLED.iter().map(|installed| follow_one(client, *installed, running))).await;
}

async fn follow_one(client: &Client, installed: Installed, running: &watch::Sender<Running>) {
    let read = |pod: &SchedulerPod| pod.serves(installed);
    keep_selected(client, installed.selector, read, |pods| {
        let served = pods.iter().flat_map(|((namespace, _), names)| {
            names.iter().map(move |name| (namespace.clone(), name.clone()))
        });
        let served: BTreeSet<Served> = served.collect();
        running.send_if_modified(|running| {
            running.by_selector.insert(installed.selector, served.clone()).as_ref() != Some(&served)
        });
    })
    .await;
}

/// A pod of a scheduler, as far as it tells what the scheduler serves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct SchedulerPod {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    containers: Vec<Process>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Process {
    command: Vec<String>,
    args: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

impl SchedulerPod {
    /// The names that it serves; none once it has ended.
    fn serves(&self, installed: Installed) -> BTreeSet<String> {
        if matches!(self.status.phase.as_str(), "Succeeded" | "Failed") {
            return BTreeSet::new();
        }
        let words =
            self.spec.containers.iter().flat_map(|process| process.command.iter().chain(&process.args));
        installed.names(words.map(String::as_str))
    }
}

impl Wire for SchedulerPod {
    type Scope = k8s_openapi::NamespaceResourceScope;
    const KIND: &'static str = "Pod";
    const PLURAL: &'static str = "pods";

    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_looks_like_a_scheduler_counts_where_the_settings_say_so() {
        let pair = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let mut running = Running::default();
        let trusted = ["kube-system".to_owned(), "gpu".to_owned()];
        assert_eq!(running.names(&trusted), None, "no pods are listed yet");
        let served = [pair("team-a", "hami-scheduler"), pair("gpu", "other"), pair("team-b", "other")];
        running.by_selector.insert(INSTALLED[0].selector, served.into());
        running.by_selector.insert(INSTALLED[1].selector, [pair("kube-system", "volcano")].into());
        assert_eq!(running.names(&trusted), Some(["other", "volcano"].into()));
        assert_eq!(running.names(&trusted[..1]), Some(["volcano"].into()));
        assert_eq!(running.elsewhere("hami-scheduler", &trusted), ["team-a"].into());
        assert_eq!(running.elsewhere("other", &trusted), ["team-b"].into());
        assert_eq!(running.elsewhere("volcano", &trusted), [].into());
    }
}
