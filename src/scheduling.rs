//! Which pod next, which node, which cards, and what has to be written for it: decisions only.
//!
//! No client, no async, no clock, no log, no wire name: inputs are [`Event`]s with the time, outputs are [`Effect`]s and values.
//! The way of a pod: [`queue`] → [`filter`] → [`allocate`] → [`score`] → [`mod@line`] of its node → lock → bind → the agent's answer.

pub mod decide;
pub mod effect;
pub mod event;
pub mod model;
pub mod node_flow;
pub mod outlook;
pub mod plan;
pub mod plugin;
pub mod queue;
pub mod scheduler;
pub mod shadow;
pub mod world;

pub use decide::fit_error::FitError;
pub use effect::{Concern, Effect};
pub use event::{
    BindOutcome, Event, EvictionOutcome, LockOutcome, ReleaseOutcome, Setback, TellOutcome, WithdrawOutcome,
    WriteOutcome,
};
pub use model::footprint::Footprint;
pub use model::measure::{Attempt, Measure, Standing};
pub use model::node::{NodeInfo, NodeName, Offer};
pub use model::pod::{
    Ask, Claim, Constraints, Demand, Holding, Importance, PodInfo, PodKey, PreemptionPolicy, Stage, Uid,
};
pub use model::reason::{CardReason, NodeReasons, Reason};
pub use model::resources::ResourceAmounts;
pub use outlook::{Outlook, Prospect};
pub use plugin::dynamic_resources;
pub use scheduler::Scheduler;
pub use world::quota::{QuotaInfo, QuotaKey};
pub use world::snapshot::Snapshot;
