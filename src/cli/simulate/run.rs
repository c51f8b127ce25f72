//! A simulation under way: what is known and held at one moment. What is done with it stands beside it, one file for each thing.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

use super::{input::SimulationInput, report::SimulatedPod};
use crate::{
    admission::Facts,
    cluster::Reader,
    scheduling::{
        NodeName, PodInfo, Snapshot, Uid,
        decide::class::Classes,
        model::gang::{GangName, Member},
        plan::preemption,
        plugin::score::weights::ScoreWeights,
    },
};

/// A pod that waits for its turn: its place in the input, its row so far, and the pod as it was read.
pub(super) type Entry = (u64, SimulatedPod, PodInfo);

/// The pods that wait for their turn.
pub(super) type Entries = BTreeMap<Uid, Entry>;

/// The pods that hold a place, by gang, each with what it is there and its node.
pub(super) type Holders = BTreeMap<GangName, Vec<(Arc<Member>, NodeName)>>;

/// Which nodes the output explains.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Explain {
    /// None.
    Nothing,
    /// All: whether the pod fits there, and if not, why.
    EveryNode,
}

/// A simulation under way.
pub(super) struct SimulationRun<'a> {
    /// What reads objects.
    pub(super) reader: Reader,
    /// The cluster as it fills up.
    pub(super) snapshot: Snapshot,
    /// What is known of pods that are alike.
    pub(super) classes: Classes,
    /// How nodes are compared.
    pub(super) weights: ScoreWeights,
    /// The rules by which victims are chosen; `None`: no pod is preempted.
    pub(super) preemption: Option<preemption::Rules>,
    /// Whether the pods of a PodGroup are placed together.
    pub(super) gangs: bool,
    /// The pods of gangs that hold a place.
    pub(super) holders: Holders,
    /// Which nodes are explained.
    pub(super) explain: Explain,
    /// The present.
    pub(super) now: Timestamp,
    /// Every pod's name, for the picture of the cards.
    pub(super) names: BTreeMap<Uid, String>,
    /// What could not be read.
    pub(super) warnings: Vec<String>,
    /// What the rules may know, in the dialects that are read.
    pub(super) facts: Facts,
    /// What the documents hold.
    pub(super) input: &'a SimulationInput,
}
