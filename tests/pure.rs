//! The pure layers: values in, values out, with no API server and no clock.
//!
//! Each module says what it is about; `cargo test --test pure scheduler::` runs the cases of one.

mod admission;
#[path = "support/fixtures.rs"]
mod fixtures;
mod fuzz;
mod properties;
mod rights;
mod scheduler;
