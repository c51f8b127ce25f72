//! What the end-to-end tests and the benches stand on: a cluster to talk to, started and cleared away.
//!
//! It must not hold assertions about Berth: those belong to the test that makes them.
#![allow(dead_code, reason = "each test binary uses its own part of the support")]
#![allow(unreachable_pub, reason = "the module is private to each test binary")]
#![allow(missing_docs, reason = "the test binary is not a library")]

pub mod build;
pub mod checker;
pub mod controlplane;
pub mod devices;
pub mod floor;
pub mod identity;
pub mod installed;
pub mod objects;
pub mod server;
