//! One pod, one mode: gpushare, gpunumber, vgpu and HAMi don't mix, and only those that are served are taken.

use std::collections::BTreeMap;

use super::{facts::Facts, rules, verdict::Violation};
use crate::{
    dialect::SharingMode,
    object::{Container, Pod},
};

/// Where a mode was first asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Asked {
    field: String,
    resource: String,
}

/// The modes that a pod asks in, and where each was first.
pub fn asked(pod: &Pod, facts: &Facts) -> BTreeMap<SharingMode, Asked> {
    let mut modes = BTreeMap::new();
    for (path, container) in pod.containers() {
        for (mode, asked) in of_container(&path, container, facts) {
            modes.entry(mode).or_insert(asked);
        }
    }
    modes
}

/// What is wrong with the pod's modes.
pub fn violations(modes: &BTreeMap<SharingMode, Asked>, facts: &Facts) -> Vec<Violation> {
    let mut asked = modes.iter();
    let Some((first, at)) = asked.next() else { return Vec::new() };
    let conflicts = asked.map(|(mode, other)| Violation {
        rule: rules::MODE_CONFLICT,
        field: other.field.clone(),
        message: format!(
            "`{}` ({mode}) conflicts with `{}` ({first}) of {}; a pod may use one mode only",
            other.resource, at.resource, at.field
        ),
    });
    let unserved = modes.iter().filter(|(mode, _)| !facts.settings.modes.contains(mode));
    let disabled = unserved.map(|(mode, asked)| Violation {
        rule: rules::MODE_DISABLED,
        field: asked.field.clone(),
        message: format!(
            "`{}` asks in mode {mode}, which is not enabled; enabled: {}",
            asked.resource,
            enabled(facts)
        ),
    });
    conflicts.chain(disabled).collect()
}

fn enabled(facts: &Facts) -> String {
    let modes: Vec<_> = facts.settings.modes.iter().map(ToString::to_string).collect();
    if modes.is_empty() { "none".to_owned() } else { modes.join(", ") }
}

fn of_container(path: &str, container: &Container, facts: &Facts) -> Vec<(SharingMode, Asked)> {
    let resources = &container.resources;
    let sections = [("limits", &resources.limits), ("requests", &resources.requests)];
    let stated = sections.into_iter().flat_map(|(section, amounts)| {
        amounts.iter().flat_map(move |amounts| amounts.keys().map(move |resource| (section, resource)))
    });
    let modes = stated.filter_map(|(section, resource)| {
        let field = format!("{path}.resources.{section}");
        Some((facts.dialects.mode_of(resource)?, Asked { field, resource: resource.clone() }))
    });
    modes.collect()
}
