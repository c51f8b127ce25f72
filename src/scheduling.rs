//! Which pod next, which node, which cards, and what has to be written for it: decisions only.
//!
//! No client, no async, no clock, no log, no wire name: inputs are [`Event`]s with the time, outputs are [`Effect`]s and values.
//! The way of a pod: [`queue`] → [`mod@plugin`] → [`decide`] → [`mod@prebind`]: its claims → [`node_flow`]: its line → lock → bind → the
//! agent's answer. Each folder imports only those above it in this order: [`model`], [`packing`],
//! [`world`], [`mod@plugin`], [`mod@snapshot`], [`decide`],
//! [`plan`], [`queue`], [`mod@prebind`], [`node_flow`], [`mod@preempt`], [`finding`].

pub mod decide;
pub mod effect;
pub mod event;
pub mod finding;
#[cfg(test)]
#[path = "../tests/support/fixtures.rs"]
pub(crate) mod fixtures;
pub mod model;
pub mod node_flow;
pub mod packing;
pub mod pending;
pub mod plan;
pub mod plugin;
pub mod prebind;
pub mod preempt;
pub mod queue;
pub mod scheduler;
pub mod shadow;
pub mod showback;
pub mod snapshot;
pub mod world;

pub use decide::dry_runs::DryRuns;
pub use decide::fit_error::FitError;
pub use decide::outlook::{Outlook, Prospect};
pub use effect::{AgentFailure, Effect, ReadRequest};
pub use event::{
    BindOutcome, Computed, Event, EvictionOutcome, LockOutcome, NodeChange, ObjectChange, PodChange, PodList,
    QuotaChange, ReadAnswer, ReleaseOutcome, Setback, TellOutcome, WithdrawOutcome, WriteOutcome,
};
pub use finding::{Concern, DoubleAllocation, Drift, Finding, FindingCounts, NodeFindings};
pub use model::footprint::Footprint;
pub use model::measure::{Attempt, Measure, Standing};
pub use model::message::Details;
pub use model::resources::ResourceAmounts;
pub use model::{
    name::NodeName,
    node::{NodeInfo, Offer},
};
pub use model::{
    name::Uid,
    pod::{
        Ask, Claim, Constraints, Demand, Holding, Importance, Lifetime, PodGroups, PodInfo, PodKey,
        PreemptionPolicy, Stage, WaitingPodStatus,
    },
};
pub use pending::PendingReason;
pub use plugin::{
    NodeReasons, Reason,
    devices::{CardReason, DeviceReason},
    dynamic_resources,
};
pub use scheduler::Scheduler;
pub use snapshot::Snapshot;
pub use world::quota::{QuotaInfo, QuotaKey};
