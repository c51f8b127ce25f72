//! One pod in, a [`Verdict`] out: the rules that every pod of an opted-in namespace meets.
//!
//! A pure function over the request and read-only [`Facts`]: no client, no async, no clock, nothing of scheduling.

pub mod draft;
pub mod facts;
pub mod hints;
pub mod modes;
pub mod quantities;
pub mod request;
pub mod review;
pub mod rules;
pub mod scheduler_name;
pub mod verdict;

pub use facts::{DefaultScheduler, Facts, Settings};
pub use request::{Operation, Request, Stage};
pub use review::review;
pub use verdict::{Rule, Verdict, Violation};
