//! The connection between the API server and [`scheduling`](crate::scheduling): watch events become the scheduler's events, and its
//! decisions become writes.
//!
//! It contains no rule of admission and makes no decision. One loop owns the scheduler; every write is a task whose answer is an event.

pub mod act;
pub mod advice;
pub mod bind;
mod binder;
pub mod candidate;
pub mod cards;
pub mod changes;
pub mod clock;
pub mod compare;
pub mod cordon;
pub mod event_loop;
pub mod evict;
pub mod extender;
pub mod fence;
pub mod gpus;
pub mod handoff;
pub mod keep;
mod leading;
pub mod lease;
pub mod ledger;
pub mod list;
pub mod lock;
pub mod metrics;
pub mod other_schedulers;
pub mod overview;
pub mod prebind;
mod preempt;
pub mod pulse;
pub mod questions;
mod quota_use;
pub mod read;
pub mod reflector;
pub mod retry;
pub mod scrape;
pub mod send;
pub mod shadow;
pub mod showback;
pub mod sightings;
pub mod standby;
pub mod takeover;
pub mod tell;
pub mod unread;
pub mod view;
pub mod watch;
pub mod wire;
pub mod withdraw;
mod writes;

pub use binder::{Binder, ClusterError, Leadership, UsageSettings};
pub use clock::Clock;
pub use handoff::{Handoff, Hinted};
pub use leading::run;
pub use metrics::Metrics;
pub use read::Reader;
pub use view::BinderView;
