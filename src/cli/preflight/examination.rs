//! What every examination asks of: what was read, the settings to judge by, and where Berth would stand.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize as _;

use super::{
    program::{Part, Program, Project},
    seen::Seen,
};
use crate::{
    admission::{Facts, InventorySummary, NodeOffer, modes::Ways},
    cluster::read::by_class::modes_by_class,
    config::Config,
    dialect::schedulers,
    dra::ExtendedResources,
    object::{DeviceClass, Pod, pod::DEFAULT_SCHEDULER},
};

/// The question and all that it is asked of.
#[derive(Debug)]
pub struct Examination<'a> {
    /// What was read.
    pub seen: &'a Seen,
    /// The settings to judge by.
    pub config: &'a Config,
    /// What the rules of admission know.
    pub facts: Facts,
    /// The namespace in which Berth is, or will be, installed.
    pub namespace: &'a str,
    /// The present.
    pub now: Timestamp,
}

impl<'a> Examination<'a> {
    /// An examination by these settings. Quotas are left out: a workload's pods count in them already.
    pub fn new(seen: &'a Seen, config: &'a Config, namespace: &'a str, now: Timestamp) -> Self {
        let mut facts = Facts::new(config.admission_settings(), config.dialects());
        facts.namespaces = seen.namespaces.clone().into();
        facts.pod_groups = seen.pod_groups.clone().into();
        let offers = seen.nodes.iter().map(|node| NodeOffer::read(node, &facts.dialects));
        let mut classes = ExtendedResources::default();
        let read = seen.device_classes.iter().filter_map(|class| DeviceClass::deserialize(class).ok());
        read.for_each(|class| classes.set(&class));
        let summary =
            || InventorySummary::new(offers).serving_by_class(modes_by_class(&facts.dialects, &classes));
        facts.inventory = (!seen.nodes.is_empty()).then(|| summary().into());
        Self { seen, config, facts, namespace, now }
    }

    /// Whether the pod asks for a share.
    pub fn asks(&self, pod: &Pod) -> bool {
        Ways::of(pod, &self.facts).ask_for_a_share()
    }

    /// The names of schedulers that the installed policies would let share pods name.
    pub fn known_schedulers(&self) -> BTreeSet<&str> {
        let adopted = self.config.adopt_schedulers.iter().map(String::as_str);
        adopted.chain(schedulers::NAMES).chain([self.config.scheduler_name.as_str()]).collect()
    }

    /// Whether a scheduler of this name was found: kube-scheduler, a program that serves it, or, where its program would not be known, a pod that it has bound.
    pub fn runs(&self, name: &str) -> bool {
        let programs = self.seen.programs.iter().chain(&self.seen.strangers);
        let mut serving = programs.filter(|program| program.replicas != Some(0));
        let serves = serving.any(|program| program.scheduler_names().iter().any(|served| served == name));
        let binds = |pod: &Pod| {
            let is_bound = pod.spec.node_name.as_deref().is_some_and(|node| !node.is_empty());
            is_bound && pod.spec.scheduler_name.as_deref() == Some(name)
        };
        let is_known = schedulers::NAMES.contains(&name);
        name == DEFAULT_SCHEDULER || serves || (!is_known && self.seen.pods.iter().any(binds))
    }

    /// The schedulers of a project that run.
    pub fn schedulers(&self, project: Project) -> impl Iterator<Item = &'a Program> {
        let programs = self.seen.programs.iter();
        programs.filter(move |program| program.project == project && program.part == Part::Scheduler)
    }
}
