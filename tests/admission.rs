//! Admission as a function: golden cases, one file each, and properties over pods that nobody thought of.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

mod cases;
mod facts;
mod hostile;
mod namespaces;
mod parsing;
mod pods;
mod properties;
mod reviews;
