//! What the in-process API server answers, seen through kube's client; nothing here looks inside it.
#![cfg(feature = "sandbox")]
#![expect(clippy::unwrap_used, reason = "a test ends at the first thing that should not happen")]

mod admission;
mod binding;
mod delete;
mod objects;
mod patches;
mod replay;
mod serve;
mod tables;
mod watches;
mod world;
