//! Whether the simulated nodes do with an assignment what the real device plugins and kubelets do with it.
//!
//! It must not test Berth's choices: assignments are written by hand here.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

#[path = "agents/case.rs"]
mod case;
#[path = "agents/hami.rs"]
mod hami;
#[path = "agents/koordlet.rs"]
mod koordlet;
#[path = "agents/kubelet.rs"]
mod kubelet;
#[path = "support/lib.rs"]
mod support;
#[path = "agents/vendors.rs"]
mod vendors;
#[path = "agents/volcano.rs"]
mod volcano;
