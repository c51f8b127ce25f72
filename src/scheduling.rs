//! Which pod next, which node, which cards, and what has to be written for it: decisions only.
//!
//! No client, no async, no clock, no log, no wire name: inputs are [`Event`]s with the time, outputs are [`Effect`]s and values.
//! The way of a pod: [`queue`] → [`filter`] → [`allocate`] → [`score`] → [`mod@line`] of its node → lock → bind → the agent's answer.

pub mod allocate;
pub mod blame;
pub mod change;
pub mod class;
pub mod cycle;
pub mod decide;
pub mod devices;
pub mod effect;
pub mod evaluation;
pub mod event;
pub mod extended_resources;
pub mod extension;
pub mod filter;
pub mod fit_error;
pub mod footprint;
pub mod gang;
pub mod images;
pub mod ledger;
pub mod line;
pub mod measure;
pub mod message;
pub mod nearest;
pub mod node;
pub mod node_state;
pub mod nominations;
pub mod object;
pub mod origin;
pub mod outlook;
pub mod plan;
pub mod plugin;
pub mod pod;
pub mod pod_counts;
pub mod pod_selector;
pub mod prebind_step;
pub mod preemption;
pub mod queue;
pub mod quota;
pub mod reason;
pub mod remedy;
pub mod reservation;
pub mod resource_claims;
pub mod resources;
pub mod scheduler;
pub mod score;
pub mod shadow;
pub mod snapshot;
pub mod steps;
pub mod tdm;
pub mod topology;
pub mod verdict;

pub use effect::{Concern, Effect};
pub use event::{
    BindOutcome, Event, EvictionOutcome, LockOutcome, ReleaseOutcome, Setback, TellOutcome, WithdrawOutcome,
    WriteOutcome,
};
pub use fit_error::FitError;
pub use footprint::Footprint;
pub use measure::{Attempt, Measure, Standing};
pub use message::Details;
pub use node::{NodeInfo, NodeName, Offer};
pub use outlook::{Outlook, Prospect};
pub use plugin::dynamic_resources;
pub use pod::{
    Ask, Claim, Constraints, Demand, Holding, Importance, PodInfo, PodKey, PreemptionPolicy, Stage, Uid,
};
pub use quota::{QuotaInfo, QuotaKey};
pub use reason::{CardReason, NodeReasons, Reason};
pub use resources::ResourceAmounts;
pub use scheduler::Scheduler;
pub use snapshot::Snapshot;
