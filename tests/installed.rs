//! Berth as it is installed: what `berth manifests` prints, on a real API server, and the program as operators run it.
//!
//! Each module says what it is about; `cargo test --test installed upgrade::` runs the cases of one.
#![cfg(feature = "sandbox")]

mod inspect;
mod migrate;
mod policies;
mod preflight;
mod serve;
#[path = "support/lib.rs"]
mod support;
mod take_over;
mod upgrade;
