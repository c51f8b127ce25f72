//! What would come of pods: the scheduler of the live binder in a cluster that answers at once, and what is told of the pods that it decides.
//!
//! Whoever asks brings what the scheduler lists, as it is read, and pods that have been admitted: from documents, or from what a running binder has seen.

mod claims;
mod entry;
mod explain;
mod report;
mod run;
mod shown;
mod simulated_cluster;
mod volume;
mod what_if;

pub use claims::ClaimRow;
pub use entry::{Entered, Wants};
pub use report::{
    EvictionRow, LockRow, NamedVictims, SimulatedOutcome, SimulatedPod, Simulation, ViolationRow,
    verdict::{self, SimulatedVerdict},
};
pub use run::{Explain, Halt, SimulationError, SimulationStage, simulate};
pub use simulated_cluster::{ClusterLists, SimulatedCluster};
pub use volume::VolumeRow;
pub use what_if::{AddedNodes, ClusterChange, UnknownName, added_names, renamed};
