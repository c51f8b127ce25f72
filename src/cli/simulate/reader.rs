//! What reads the cluster of a simulation.

use std::sync::Arc;

use super::input::SimulationInput;
use crate::{
    cluster::Reader,
    config::Config,
    dialect::koordinator::{self, Koordinator, WholeCards},
};

/// What reads the cluster: where there are Devices, Koordinator's dialect too. Whole cards by their vendors' names are Koordinator's unless another
/// plugin has registered cards; where the settings give them to Koordinator, they are read as in a cluster.
pub(super) fn of(input: &SimulationInput, config: &Config) -> Reader {
    let reader = config.reader();
    let koordinator = &config.dialects.koordinator;
    if input.devices.is_empty() || !koordinator.enabled || koordinator.whole_cards {
        return reader;
    }
    let registered = input.nodes.iter().any(|(node, _)| !reader.node(node).0.devices.offers.is_empty());
    let others = reader.dialects().clone().without(koordinator::NAME);
    let devices = Arc::new(Koordinator::new(WholeCards::Included));
    let dialects = if registered { others.before(devices) } else { others.after(devices) };
    reader.speaking(dialects)
}
