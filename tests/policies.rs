//! What stands around the webhook, asked of a real API server: policies, webhook configurations, and what they leave alone.
//!
//! Everything is installed as `berth manifests` prints it.
#![cfg(feature = "sandbox")]
#![allow(clippy::needless_pass_by_value, reason = "a value of a test is written where it is used")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "policies/applied.rs"]
mod applied;
#[path = "policies/flow.rs"]
mod flow;
#[path = "policies/hami.rs"]
mod hami;
#[path = "policies/protection.rs"]
mod protection;
#[path = "policies/schedulers.rs"]
mod schedulers;
#[path = "policies/settings.rs"]
mod settings;
#[path = "support/lib.rs"]
mod support;
#[path = "policies/updates.rs"]
mod updates;
#[path = "policies/webhooks.rs"]
mod webhooks;
#[path = "policies/world.rs"]
mod world;
