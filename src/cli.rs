//! The commands of `berth`, one file each.
//!
//! Reads flags and prints; decides nothing.

pub mod certs;
#[cfg(feature = "sandbox")]
pub mod demo;
pub mod manifests;
pub mod serve;
