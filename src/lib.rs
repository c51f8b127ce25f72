//! Berth admits GPU-sharing pods to a Kubernetes cluster and gives each one its place: which node, which card, how much of it.

pub mod admission;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod device;
pub mod dialect;
pub mod object;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod scheduling;
