//! What keeps pods off each other's cards: pod groups that spread, and rules of exclusion.
//!
//! Source: Volcano `vgpu/utils.go` (`getPodGroupKey`), `pkg/scheduler/plugins/deviceshare/gpuexclusive.go`.

use std::collections::BTreeMap;

use super::names;
use crate::{
    device::{Mark, Marks},
    dialect::{Problem, Unreadable},
    object::Pod,
};

/// Labels that a pod must all have to fall under a rule; pods under one rule share no card.
pub type Rule = BTreeMap<String, String>;

/// What the pod bears: its group and the rules that it falls under.
pub(super) fn borne(pod: &Pod, rules: &[Rule]) -> Marks {
    ruled(pod, rules).chain(group(pod)).collect()
}

/// What it shuns: its group where it spreads, and its rules.
pub(super) fn shunned(pod: &Pod, rules: &[Rule]) -> Result<Marks, Unreadable> {
    let policy =
        pod.metadata.annotation(names::PODGROUP_POLICY).map(str::trim).filter(|policy| !policy.is_empty());
    let spread = match policy {
        None => None,
        Some("spread") => group(pod),
        Some(other) => {
            let message = format!("pod group policy `{other}` is not known; there is `spread`");
            return Err(Unreadable::annotation(Problem::Unserved, names::PODGROUP_POLICY, message));
        }
    };
    Ok(ruled(pod, rules).chain(spread).collect())
}

fn group(pod: &Pod) -> Option<Mark> {
    let keys = names::GROUPS.iter().filter_map(|key| pod.metadata.annotation(key));
    let name = keys.into_iter().find(|name| !name.is_empty())?;
    Some(format!("group {}/{name}", pod.metadata.namespace).into())
}

fn ruled<'a>(pod: &'a Pod, rules: &'a [Rule]) -> impl Iterator<Item = Mark> + 'a {
    let falls = |rule: &Rule| {
        !rule.is_empty() && rule.iter().all(|(key, value)| pod.metadata.label(key) == Some(value))
    };
    let numbered = rules.iter().enumerate();
    numbered.filter(move |(_, rule)| falls(rule)).map(|(number, _)| format!("rule {number}").into())
}
