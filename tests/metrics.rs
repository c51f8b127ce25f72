//! What `/metrics` shows of a cluster, and that dashboards, alert rules and documentation name just that.
//!
//! Queries and rules are judged by promtool, which is Prometheus' own parser and engine.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "metrics/alerts.rs"]
mod alerts;
#[path = "scheduler/discreet.rs"]
#[allow(dead_code, reason = "the scheduler's tests use all of it")]
mod discreet;
#[path = "metrics/exposition.rs"]
mod exposition;
#[path = "metrics/hami.rs"]
mod hami;
#[path = "scheduler/machine.rs"]
#[allow(dead_code, reason = "the scheduler's tests use all of it")]
mod machine;
#[path = "metrics/monitoring.rs"]
mod monitoring;
#[path = "metrics/promtool.rs"]
mod promtool;
#[path = "metrics/scale.rs"]
mod scale;
#[path = "support/lib.rs"]
mod support;
#[path = "metrics/world.rs"]
mod world;
