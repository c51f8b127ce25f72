//! One pod in, a [`Verdict`] out: the rules that every pod of an opted-in namespace meets.
//!
//! A pure function over the request and read-only facts: no client, no async, no clock, nothing of scheduling.

pub mod facts;
pub mod patch;
pub mod request;
pub mod verdict;

pub use request::{Operation, Request, Stage};
pub use verdict::{Rule, Verdict, Violation};
