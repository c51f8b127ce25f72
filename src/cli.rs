//! The commands of `berth`, one file each.
//!
//! Reads flags and prints; decides nothing.

pub mod certs;
pub mod manifests;
