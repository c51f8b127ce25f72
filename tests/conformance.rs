//! Conformance with HAMi and Volcano, case by case: what their own unit tests expect, and what Berth does with the same input.
//!
//! The tables are kept outside of the project, in the folder that `BERTH_VECTORS` names or else in `../shared/vectors` beside it;
//! where neither is there, each test says so on standard error and passes. A case is equal, or it stands in its file's list of
//! differences with the reason; a listed case that turns out equal fails the test, so that the lists stay honest.
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "conformance/call.rs"]
mod call;
#[path = "conformance/hami_codec.rs"]
mod hami_codec;
#[path = "conformance/hami_fit.rs"]
mod hami_fit;
#[path = "conformance/hami_recorded_fit_calls.rs"]
mod hami_recorded_fit_calls;
#[path = "conformance/hami_selectors.rs"]
mod hami_selectors;
#[path = "conformance/table.rs"]
mod table;
#[path = "conformance/upstream.rs"]
mod upstream;
#[path = "conformance/volcano.rs"]
mod volcano;
#[path = "conformance/volcano_vgpu_unit.rs"]
mod volcano_vgpu_unit;
