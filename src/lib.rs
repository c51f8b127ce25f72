//! Berth admits GPU-sharing pods to a Kubernetes cluster and gives each one its place: which node, which card, how much of it.
//!
//! ```text
//! kubectl apply ─► API server ─► webhook ─► admission ─► (deny | patch, warnings)
//!                      │
//!                      ▼ the stored pod
//!               cluster::watch ─► cluster::read (dialect) ─► scheduling: queue ─► filter ─► allocate ─► score
//!                                                                                    │ the line of the node
//!               cluster::lock (compare-and-swap) ◄── cluster::act ◄──────────────────┘
//!               cluster::bind: node and cards in ONE write
//!                      │
//! the node's device plugin allocates and frees the lock ─► cluster::watch ─► confirmed; the node's next pod goes
//! ```
//!
//! Layers, imports point down only: `cli`, `app`, `config` → `api` → `simulation` → `webhook`, `cluster` → `admission`, `scheduling` →
//! `object`, `dialect`, `dra` → `device`, `excerpt`. A test reads the imports.

#![warn(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what can't be written there is a panic: see `cli::output`"
)]

#[cfg(test)]
extern crate self as berth;

pub mod admission;
pub mod api;
pub mod app;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod device;
pub mod dialect;
pub mod dra;
pub mod excerpt;
pub mod extender;
pub mod object;
pub mod persistent;
pub mod scheduling;
pub mod simulation;
pub mod webhook;
