//! A cluster and the pods that want a place in it, out of documents, for whoever plays them otherwise than all at once.

use anyhow::Result;
use jiff::Timestamp;

use super::{
    admit::Entrance,
    enter::Entry,
    input::{self, SimulationInput},
    lists::SimulationLists,
    reader,
    report::SimulatedOutcome,
};
use crate::{
    admission::Facts,
    cli::{documents::Document, simulated_cluster::ClusterLists},
    cluster::Reader,
    config::Config,
    scheduling::{PodInfo, scheduler::Settings},
};

/// What the documents hold.
pub(in crate::cli) struct Prepared {
    /// What has read them.
    pub(in crate::cli) reader: Reader,
    /// The settings of the scheduler.
    pub(in crate::cli) settings: Settings,
    /// Everything but the pods that want a place.
    pub(in crate::cli) lists: ClusterLists,
    /// The pods that want a place, in the order of the input.
    pub(in crate::cli) incoming: Vec<PodInfo>,
    /// What was odd about the input.
    pub(in crate::cli) warnings: Vec<String>,
}

/// Reads the documents. A pod without a creation time is created at `now`.
pub(in crate::cli) fn prepare(documents: &[Document], config: &Config, now: Timestamp) -> Result<Prepared> {
    let input = input::read(documents, config)?;
    let reader = reader::of(&input, config);
    let settings = Settings { device_resources: reader.device_resources(), ..config.scheduler_settings() };
    let mut lists = SimulationLists::read(&input, &reader, settings.claims);
    let warnings = enter(&input, &reader, now, &mut lists)?;
    let wants = |pod: &PodInfo| lists.positions.contains_key(&pod.key.uid);
    let (incoming, others) = std::mem::take(&mut lists.lists.pods).into_iter().partition(wants);
    lists.lists.pods = others;
    let warnings =
        input.warnings.into_iter().chain(std::mem::take(&mut lists.warnings)).chain(warnings).collect();
    Ok(Prepared { reader, settings, lists: lists.into_lists(), incoming, warnings })
}

/// Admits the pods; which of them want no place.
fn enter(
    input: &SimulationInput,
    reader: &Reader,
    now: Timestamp,
    lists: &mut SimulationLists,
) -> Result<Vec<String>> {
    let facts = Facts { dialects: reader.dialects().clone(), ..input.facts.clone() };
    let entry = Entry { input, reader, facts, entrance: Entrance::Guarded, now };
    let mut warnings = Vec::new();
    for incoming in &input.pods {
        let row = entry.enter(incoming, lists)?;
        let why = match row.outcome {
            SimulatedOutcome::Denied => row.violations.first().map(ToString::to_string).unwrap_or_default(),
            SimulatedOutcome::Unschedulable => row.message.unwrap_or_default(),
            SimulatedOutcome::Bound | SimulatedOutcome::Ignored => match row.warnings.first() {
                Some(warning) => warning.clone(),
                None => continue,
            },
        };
        warnings.push(format!("Pod {}/{} is left out: {why}", row.namespace, row.name));
    }
    Ok(warnings)
}
