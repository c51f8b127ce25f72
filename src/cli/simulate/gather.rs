//! The cluster of a simulation and the pods that want a place in it: the documents read, admitted and listed.

use std::collections::BTreeMap;

use anyhow::Result;
use jiff::Timestamp;

use super::{admit::Entrance, enter::PodEntry, input::SimulationInput, lists::SimulationLists, reader};
use crate::{
    admission::Facts,
    cluster::Reader,
    config::Config,
    scheduling::scheduler::{Pace, Settings},
    simulation::SimulatedPod,
};

/// What a simulation starts with.
pub(super) struct SimulationStart {
    /// What has read the documents.
    pub(super) reader: Reader,
    /// The settings of the scheduler.
    pub(super) settings: Settings,
    /// What the scheduler lists, the pods that want a place among it.
    pub(super) lists: SimulationLists,
    /// The row of each pod so far, by its place in the input.
    pub(super) rows: BTreeMap<u64, SimulatedPod>,
}

/// Reads the objects and admits the pods, for a scheduler of this pace. A pod without a creation time is created at `now`.
pub(super) fn gather(
    input: &SimulationInput,
    config: &Config,
    pace: Pace,
    entrance: Entrance,
    now: Timestamp,
) -> Result<SimulationStart> {
    let reader = reader::of(input, config);
    let settings =
        Settings { device_resources: reader.device_resources(), pace, ..config.scheduler_settings() };
    let mut lists = SimulationLists::read(input, &reader, settings.claims);
    let facts = Facts { dialects: reader.dialects().clone(), ..input.facts.clone() };
    let entry = PodEntry { input, reader: &reader, facts, entrance, now };
    let mut rows = BTreeMap::new();
    for incoming in &input.pods {
        rows.insert(incoming.position, entry.enter(incoming, &mut lists)?);
    }
    Ok(SimulationStart { reader, settings, lists, rows })
}
