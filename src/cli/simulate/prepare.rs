//! A cluster and the pods that want a place in it, out of documents, for whoever plays them otherwise than all at once.

use std::collections::BTreeSet;

use anyhow::Result;
use jiff::Timestamp;

use super::{
    admit::Entrance,
    gather::{SimulationStart, gather},
    input,
};
use crate::{
    cli::documents::Document,
    cluster::Reader,
    config::Config,
    object::Pod,
    scheduling::{
        PodInfo,
        scheduler::{Pace, Settings},
    },
    simulation::{ClusterLists, SimulatedOutcome, SimulatedPod},
};

/// What the documents hold.
pub(in crate::cli) struct PreparedSimulation {
    /// What has read them.
    pub(in crate::cli) reader: Reader,
    /// The settings of the scheduler.
    pub(in crate::cli) settings: Settings,
    /// Everything but the pods that want a place.
    pub(in crate::cli) lists: ClusterLists,
    /// The pods that want a place, in the order of the input.
    pub(in crate::cli) incoming: Vec<PodInfo>,
    /// The pods that want no place, or may have none.
    pub(in crate::cli) left_out: Vec<SimulatedPod>,
    /// The pods that hold something, as they were read.
    pub(in crate::cli) state: Vec<Pod>,
    /// What was odd about the input.
    pub(in crate::cli) warnings: Vec<String>,
}

/// Reads the documents. A pod without a creation time is created at `now`.
pub(in crate::cli) fn prepare(
    documents: &[Document],
    config: &Config,
    now: Timestamp,
) -> Result<PreparedSimulation> {
    let input = input::read(documents, config)?;
    let SimulationStart { reader, settings, mut lists, rows } =
        gather(&input, config, Pace::Shared, Entrance::Guarded, now)?;
    let wants = |pod: &PodInfo| lists.positions.contains_key(&pod.key.uid);
    let (incoming, others) = std::mem::take(&mut lists.lists.pods).into_iter().partition(wants);
    lists.lists.pods = others;
    let wanting: BTreeSet<u64> = lists.positions.values().copied().collect();
    let left_out = rows.into_iter().filter(|(position, _)| !wanting.contains(position));
    let left_out: Vec<_> = left_out.map(|(_, row)| row).collect();
    let warnings = input.warnings.into_iter().chain(std::mem::take(&mut lists.warnings)).collect();
    let state = input.state.into_iter().map(|(pod, _)| pod).collect();
    let lists = lists.into_lists();
    Ok(PreparedSimulation { reader, settings, lists, incoming, left_out, state, warnings })
}

/// Says that the pod wants no place, and why; `None`: there is nothing to say.
pub(in crate::cli) fn why_left_out(row: &SimulatedPod) -> Option<String> {
    let why = match row.outcome {
        SimulatedOutcome::Denied => row.violations.first().map(ToString::to_string).unwrap_or_default(),
        SimulatedOutcome::Unschedulable => row.message.clone().unwrap_or_default(),
        SimulatedOutcome::Bound | SimulatedOutcome::Ignored => row.warnings.first()?.clone(),
    };
    Some(format!("Pod {}/{} is left out: {why}", row.namespace, row.name))
}
