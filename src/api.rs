//! Read-only JSON about the cluster as one replica sees it, under `/api/v1/`: cards and who holds them, pods that wait and why.
//!
//! Each answer is made from an [`Overview`](crate::cluster::report::overview::Overview), which the loop that owns the scheduler gives out at most once a
//! second while somebody looks. Whoever the API server knows sees all amounts, and the names of pods in namespaces whose pods she may list:
//! who that is, is asked of the functions that this module is given. It changes nothing. The web page stands beside it and asks it.

pub mod bound;
pub mod change;
mod changes;
pub mod closed;
mod error;
pub mod explanation;
pub mod fits;
mod fleet;
pub mod gpu_parts;
pub mod history;
pub mod moves;
mod namespace;
mod node;
pub mod page;
mod pod;
mod queue;
pub mod router;
pub mod server;
pub mod source;
mod streams;
pub mod top;
pub mod usage;
pub mod viewer;
pub mod what_if;
mod words;

pub use error::ApiError;
pub use router::router;
pub use server::Api;
