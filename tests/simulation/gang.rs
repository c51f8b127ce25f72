//! What must hold of gangs: none is bound before enough of its pods are there, and none is left bound in part.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::Value;

use crate::record::{Pod, text};

/// The annotation by which a pod names its group.
pub(crate) const GROUP: &str = "scheduling.k8s.io/group-name";

/// Gangs, as the API server has shown them.
#[derive(Debug, Default)]
pub(crate) struct Gangs {
    /// Those that were bound as a whole at one time.
    complete: BTreeSet<String>,
    /// Those of which a pod was bound.
    begun: BTreeSet<String>,
}

/// The pods of each group that have not ended.
fn by_group(pods: &[Arc<Pod>]) -> BTreeMap<&str, Vec<&Pod>> {
    let mut groups: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| pod.is_live()) {
        if let Some(group) = &pod.group {
            groups.entry(group).or_default().push(pod);
        }
    }
    groups
}

/// How many pods of this group are placed together.
fn least(groups: &[Arc<Value>], name: &str) -> Option<usize> {
    let group = groups.iter().find(|group| text(group, "/metadata/name") == name)?;
    group["spec"]["minMember"].as_u64().and_then(|least| usize::try_from(least).ok())
}

fn bound<'a>(pods: &'a [&Pod]) -> impl Iterator<Item = &'a Pod> {
    pods.iter().copied().filter(|pod| !pod.node.is_empty())
}

impl Gangs {
    /// Takes in all pods as they are, and names the gangs that are begun with too few pods.
    pub(crate) fn see(&mut self, pods: &[Arc<Pod>], groups: &[Arc<Value>]) -> Vec<String> {
        let mut violations = Vec::new();
        for (name, pods) in by_group(pods) {
            let Some(least) = least(groups, name) else { continue };
            let bound = bound(&pods).count();
            if bound > 0 && self.begun.insert(name.to_owned()) && pods.len() < least {
                violations.push(format!("{name} was begun with {} of {least} pods", pods.len()));
            }
            if bound >= least {
                self.complete.insert(name.to_owned());
            }
            if bound == 0 {
                self.begun.remove(name);
                self.complete.remove(name);
            }
        }
        violations
    }

    /// Once all is calm: the gangs that are bound in part, were never whole, and have enough pods to be.
    pub(crate) fn judge_the_end(&self, pods: &[Arc<Pod>], groups: &[Arc<Value>]) -> Vec<String> {
        let mut violations = Vec::new();
        for (name, pods) in by_group(pods) {
            let Some(least) = least(groups, name).filter(|_| !self.complete.contains(name)) else { continue };
            let bound = bound(&pods).count();
            if (1..least).contains(&bound) && pods.len() >= least {
                violations.push(format!("{name} is left with {bound} of {least} pods bound"));
            }
        }
        violations
    }
}
