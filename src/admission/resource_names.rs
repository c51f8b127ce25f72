//! Resources whose names are nearly one of ours: no node offers them, so the pod would wait without end.
//!
//! A warning only: the name may be another device plugin's.

use super::{facts::Facts, findings::ReviewFindings, rules};
use crate::{
    dialect::volcano,
    object::{Container, Pod, ResourceMap},
};

/// More changed letters than this make another word; of a short name a single one does.
const FAR: usize = 2;

/// Names up to this length are short.
const SHORT: usize = 4;

/// Resources of one pod that are told.
const MOST_TOLD: usize = 16;

/// Judges the names of what a pod asks for; of many, the first for which there is work left.
pub fn judge(findings: &mut ReviewFindings, pod: &Pod, facts: &Facts) {
    let lists = [("initContainers", &pod.spec.init_containers), ("containers", &pod.spec.containers)];
    let mut told = 0;
    for (list, containers) in lists {
        for (at, container) in containers.iter().enumerate() {
            for (section, resource) in unknown(container, facts) {
                if told == MOST_TOLD || !findings.work().afford(steps(resource, facts)) {
                    return;
                }
                if let Some(meant) = meant(resource, facts) {
                    let field = format!("spec.{list}[{at}].resources.{section}[{resource}]");
                    let message =
                        format!("no program that Berth knows offers this resource; did you mean `{meant}`?");
                    findings.warn(rules::RESOURCE_NAME, field, message);
                    told += 1;
                }
            }
        }
    }
}

/// The resources of a container that are none of ours; the API server copies limits to requests.
fn unknown<'a>(container: &'a Container, facts: &'a Facts) -> impl Iterator<Item = (&'static str, &'a str)> {
    let limits = container.resources.limits.as_ref();
    let requests = container.resources.requests.as_ref();
    let names =
        |amounts: Option<&'a ResourceMap>| amounts.into_iter().flatten().map(|(name, _)| name.as_str());
    let limited = move |name: &&str| limits.is_some_and(|limits| limits.contains_key(*name));
    let limited_alone = names(limits).map(|name| ("limits", name));
    let requested = names(requests).filter(move |name| !limited(name)).map(|name| ("requests", name));
    limited_alone.chain(requested).filter(|(_, name)| name.contains('/') && !is_known(name, facts))
}

/// Every name that begins as a vGPU's does speaks that mode; which of them are read is a closed list.
fn is_known(name: &str, facts: &Facts) -> bool {
    if name.starts_with(volcano::names::VGPU_PREFIX) {
        return volcano::names::RESOURCES.contains(&name);
    }
    facts.dialects.mode_of(name).is_some()
}

fn known(facts: &Facts) -> impl Iterator<Item = &str> {
    facts.dialects.iter().flat_map(|dialect| dialect.resources())
}

/// What looking for the meant name costs.
fn steps(resource: &str, facts: &Facts) -> usize {
    known(facts).map(|known| known.len() * resource.len().min(known.len() + FAR)).sum()
}

/// The known name that this one was meant to be: the nearest, with the same digits, which number models.
fn meant<'a>(resource: &str, facts: &'a Facts) -> Option<&'a str> {
    let (domain, name) = resource.split_once('/')?;
    let near = |known: &'a str| {
        let (its_domain, its_name) = known.split_once('/')?;
        let digits = |name: &str| name.chars().filter(char::is_ascii_digit).collect::<String>();
        let lengths = [(its_domain, domain), (its_name, name)];
        let alike = lengths.iter().all(|(one, other)| one.len().abs_diff(other.len()) <= FAR);
        if !alike || digits(its_name) != digits(name) {
            return None;
        }
        let far =
            (strsim::damerau_levenshtein(its_domain, domain), strsim::damerau_levenshtein(its_name, name));
        let most = if its_name.len() <= SHORT { 1 } else { FAR };
        let near = matches!(far, (0, of_name) if of_name <= most) || matches!(far, (1..=FAR, 0));
        near.then_some((far.0 + far.1, known))
    };
    known(facts).filter_map(near).min().map(|(_, known)| known)
}
