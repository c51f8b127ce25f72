//! What `/metrics` shows of a cluster, and that dashboards, alert rules and documentation name just that.
//!
//! Queries and rules are judged by promtool, which is Prometheus' own parser and engine.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod alerts;
#[path = "scheduler/discreet.rs"]
#[allow(dead_code, reason = "the scheduler's tests use all of it")]
mod discreet;
mod exposition;
mod hami;
#[path = "scheduler/machine.rs"]
#[allow(dead_code, reason = "the scheduler's tests use all of it")]
mod machine;
mod monitoring;
mod promtool;
mod scale;
mod world;
