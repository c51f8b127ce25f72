//! What is in the repository beside the code: pages, charts, alerts, releases and the rules of the house; and the program from outside.
//!
//! Each module says what it is about; `cargo test --test repository docs::` runs the cases of one. None needs an API server.

mod chart;
mod cli;
mod docs;
mod house;
mod layers;
mod metrics;
mod release;
mod replay;
#[cfg(feature = "sandbox")]
#[path = "support/lib.rs"]
mod support;
