//! One pod in, a [`Verdict`] out: the rules that every pod of an opted-in namespace meets.
//!
//! A pure function over the request and read-only [`Facts`]: no client, no async, no clock, nothing of scheduling.

pub mod amounts;
pub mod bypasses;
pub mod capacity;
pub mod defaults;
pub mod draft;
pub mod facts;
pub mod findings;
pub mod hint_keys;
pub mod hint_lists;
pub mod hint_values;
pub mod hints;
pub mod inventory;
pub mod modes;
pub mod named_nodes;
pub mod namespace_pods;
pub mod namespace_quota;
pub mod passage;
pub mod preemptable;
pub mod quantities;
pub mod quota;
pub mod request;
pub mod resource_names;
pub mod review;
pub mod rules;
pub mod scheduler_name;
pub mod settings;
pub mod shares;
pub mod verdict;
pub mod work;

pub use facts::Facts;
pub use inventory::{InventorySummary, NodeOffer};
pub use namespace_quota::NamespaceQuota;
pub use request::{AdmissionStage, Operation, Request};
pub use review::{review, review_within};
pub use settings::{AdmissionSettings, DefaultScheduler, Guards, Severity};
pub use verdict::{Rule, Verdict, Violation};
pub use work::Work;
