//! Admission as a function: golden cases, one file each, and properties over pods that nobody thought of.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "admission/cases.rs"]
mod cases;
#[path = "admission/facts.rs"]
mod facts;
#[path = "admission/hostile.rs"]
mod hostile;
#[path = "admission/parsing.rs"]
mod parsing;
#[path = "admission/pods.rs"]
mod pods;
#[path = "admission/properties.rs"]
mod properties;
#[path = "admission/reviews.rs"]
mod reviews;
