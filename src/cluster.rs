//! The connection between the API server and [`scheduling`](crate::scheduling): watch events become the scheduler's events, and its
//! decisions become writes.
//!
//! It contains no rule of admission and makes no decision. One loop owns the scheduler; every write is a task whose answer is an event.

pub mod binder;
pub mod clock;
pub mod compare;
pub mod election;
pub mod extender;
pub mod informer;
pub mod read;
pub mod report;
pub mod shadow;
pub mod write;

pub use binder::handoff::{Handoff, Hinted};
pub use binder::leading::run;
pub use binder::view::BinderView;
pub use binder::{Binder, ClusterError, Leadership, UsageSettings};
pub use clock::Clock;
pub use read::Reader;
pub use report::metrics::Metrics;
