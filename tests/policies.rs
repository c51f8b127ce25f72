//! What stands around the webhook, asked of a real API server: policies, webhook configurations, and what they leave alone.
//!
//! Everything is installed as `berth manifests` prints it.
#![cfg(feature = "sandbox")]
#![allow(clippy::needless_pass_by_value, reason = "a value of a test is written where it is used")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod applied;
mod flow;
mod hami;
mod protection;
mod schedulers;
mod settings;
mod updates;
mod webhooks;
mod world;

use crate::support;
