//! Whether the simulated nodes do with an assignment what the real device plugins and kubelets do with it.
//!
//! It must not test Berth's choices: assignments are written by hand here.
#![cfg(feature = "sandbox")]
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod case;
mod hami;
mod koordlet;
mod kubelet;
mod vendors;
mod volcano;
