//! The ledger's rows of GPUs by model: how many are given away, and what of the rest is of use.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cluster::report::gpus::{FITTED, Lack, models::FleetGpus};

/// All GPUs of one model, in parts of a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetRow {
    /// The model, as device plugins spell it.
    model: String,
    /// Those that work.
    capacity: f64,
    /// Of each card the larger part of its memory and compute that is given away.
    allocated: f64,
    free: f64,
    /// FGD's fragmentation.
    fragmented: f64,
    /// What is free and could be given to no typical pod, by what is lacking first.
    stranded_by_reason: BTreeMap<&'static str, f64>,
    /// How many pods would fit that each ask for so many cards of one node.
    fitting_pods: BTreeMap<&'static str, u64>,
}

impl FleetRow {
    pub(super) fn new(model: String, fleet: &FleetGpus) -> Self {
        let stranded = Lack::ALL.into_iter().zip(fleet.stranded).filter(|(_, gpus)| *gpus > 0.0);
        let fitting = FITTED.into_iter().zip(fleet.fitting).map(|((_, cards), pods)| (cards, pods));
        Self {
            model,
            capacity: fleet.gpus.capacity,
            allocated: fleet.allocated(),
            free: fleet.free(),
            fragmented: fleet.fragmented(),
            stranded_by_reason: stranded.map(|(lack, gpus)| (lack.as_str(), gpus)).collect(),
            fitting_pods: fitting.collect(),
        }
    }
}
