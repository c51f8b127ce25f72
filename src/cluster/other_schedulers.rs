//! Which schedulers of HAMi and Volcano run, by their own pods: a name that is still served by one is not served by Berth too.
//!
//! A pod that is being deleted counts until it is gone, since its process may still write. It must not decide what follows from it.

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

/// The names that running schedulers serve, by the selector of their pods; a selector is missing until its pods are listed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Running {
    by_selector: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Running {
    /// Every name; `None` until the pods of all schedulers are listed.
    pub fn names(&self) -> Option<BTreeSet<&str>> {
        let known = INSTALLED.iter().all(|installed| self.by_selector.contains_key(installed.selector));
        known.then(|| self.by_selector.values().flatten().map(String::as_str).collect())
    }
}

/// Publishes which schedulers run, whenever that changes. It never ends.
pub async fn follow(client: &Client, running: &watch::Sender<Running>) {
    join_all(INSTALLED.iter().map(|installed| follow_one(client, *installed, running))).await;
}

async fn follow_one(client: &Client, installed: Installed, running: &watch::Sender<Running>) {
    let read = |pod: &SchedulerPod| pod.serves(installed);
    keep_selected(client, installed.selector, read, |pods| {
        let names: BTreeSet<String> = pods.values().flatten().cloned().collect();
        running.send_if_modified(|running| {
            running.by_selector.insert(installed.selector, names.clone()).as_ref() != Some(&names)
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
